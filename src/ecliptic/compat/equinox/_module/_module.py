"""Names that quax, galax and typinox import from `equinox._module._module`."""

from collections.abc import Iterator, Mapping
from typing import Any

from ecliptic.module import ModuleMeta
from ecliptic.module._initialise import initialising

_ModuleMeta = ModuleMeta


class _HasDataclassInit(Mapping[type, bool]):
    """Whether a Module class has the `__init__` that `dataclasses` writes."""

    def __getitem__(self, cls: type) -> bool:
        try:
            return not cls.__class_spec__.custom_init
        except AttributeError:
            raise KeyError(cls) from None

    def __iter__(self) -> Iterator[type]:
        return iter(())

    def __len__(self) -> int:
        return 0


_has_dataclass_init: Mapping[type, bool] = _HasDataclassInit()


def is_abstract_module(cls: Any) -> bool:
    """Whether a Module class cannot be instantiated."""
    return isinstance(cls, ModuleMeta) and cls.__class_spec__.lacks is not None


class _CurrentlyInitialising:
    """Where quax, which makes instances itself, says which of them may be assigned to."""

    def add(self, module: Any) -> None:
        """Starts the initialisation of an instance."""
        # What a custom `__init__` finds set already.
        for name, value, factory in type(module).__class_spec__.defaults:
            object.__setattr__(module, name, value if factory is None else factory())
        initialising.add(id(module))

    def remove(self, module: Any) -> None:
        """Ends it."""
        initialising.discard(id(module))


_currently_initialising = _CurrentlyInitialising()
