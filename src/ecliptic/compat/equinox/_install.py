"""`import equinox` as `import ecliptic.compat.equinox`."""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

from ecliptic.errors import InstallError

_PACKAGE = __name__.rpartition(".")[0]
_NAME = "equinox"

# What `importlib` sets on a module that it has found. These have to stay what they were.
_IDENTITY = ("__spec__", "__loader__", "__package__", "__name__")


def _own(name: str) -> str:
    """The name that `equinox` or `equinox.x` has here."""
    return _PACKAGE + name.removeprefix(_NAME)


class _Loader(importlib.abc.Loader):
    """Gives out a module that exists."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module
        self.identity = {key: getattr(module, key) for key in _IDENTITY}

    def create_module(self, spec: Any) -> types.ModuleType:
        return self.module

    def exec_module(self, module: types.ModuleType) -> None:
        for key, value in self.identity.items():
            setattr(module, key, value)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `equinox` and its modules here, installed or not."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _NAME and not fullname.startswith(f"{_NAME}."):
            return None
        own = _own(fullname)
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: Ecliptic stands in for Equinox, and has no "
                f"{own!r}. `ecliptic.compat.equinox.uninstall()` brings the real one back.",
                name=fullname,
            ) from None
        loader = _Loader(module)
        return importlib.machinery.ModuleSpec(
            fullname, loader, origin=module.__file__, is_package=hasattr(module, "__path__")
        )


_finder = _Finder()


def install() -> None:
    """Lets `import equinox` give Ecliptic, from now on and everywhere in this process.

    Each module is one object under both names, so a class is the same whichever name it was
    imported by. It does not matter whether Equinox is installed. Calling it twice does no harm.

    Raises:
        InstallError: if Equinox has been imported already. What holds its classes would not
            know ours.

    !!! Example

        >>> import ecliptic.compat.equinox
        >>> ecliptic.compat.equinox.install()  # doctest: +SKIP
        >>> import equinox  # doctest: +SKIP
    """
    early = sys.modules.get(_NAME)
    if early is not None and early is not sys.modules[_PACKAGE]:
        raise InstallError(
            f"Ecliptic cannot stand in for Equinox any more: Equinox has been imported from "
            f"{getattr(early, '__file__', '?')}. Call `ecliptic.compat.equinox.install()` at the "
            f"very start, or run `python -m ecliptic.compat.equinox program.py`."
        )
    # At the front, also before finders that came there since.
    uninstall()
    sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Lets `import equinox` give Equinox again. What is imported already stays what it is.

    The names `equinox` and `equinox.*` are forgotten, so the next import finds the package that is
    installed, if one is.
    """
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name, module in list(sys.modules.items()):
        ours = name == _NAME or name.startswith(f"{_NAME}.")
        if ours and module is sys.modules.get(_own(name)):
            del sys.modules[name]
