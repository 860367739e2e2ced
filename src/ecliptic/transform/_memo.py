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


def clear_memos() -> None:
    """Forgets what any table of this kind remembers."""
    for memo in list(_every):
        memo.clear()
