"""A table of things made for a key, of limited size."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

_missing: Any = object()


class Memo:
    """Remembers what was made for a key, for the keys that were asked for last.

    Args:
        size: how many are remembered.
    """

    __slots__ = ("__weakref__", "_entries", "_lock", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.RLock()
        _every.add(self)

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made for the key, or else what `make` makes.

        A key that has no hash, or that cannot be compared, is not remembered.
        """
        with self._lock:
            try:
                made = self._entries.get(key, _missing)
                if made is not _missing:
                    self._entries.move_to_end(key)
                    return made
            except Exception:
                return make()
        made = make()
        with self._lock:
            self._entries[key] = made
            if len(self._entries) > self._size:
                self._entries.popitem(last=False)
        return made

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


_every: weakref.WeakSet[Memo] = weakref.WeakSet()
_shared: weakref.WeakKeyDictionary[type, dict[Any, Memo]] = weakref.WeakKeyDictionary()
_shared_lock = threading.Lock()


def shared_memo(owner: type, key: Any, size: int) -> Memo:
    """The table for a class and a key, the same one each time.

    Args:
        owner: the class, with which the table goes.
        key: what tells its tables apart. If it has no hash, the table is a new one.
        size: how much a new table remembers.
    """
    with _shared_lock:
        try:
            return _shared.setdefault(owner, {}).setdefault(key, Memo(size))
        except TypeError:
            return Memo(size)


def clear_memos() -> None:
    """Forgets what any table of this kind remembers."""
    for memo in list(_every):
        memo.clear()
