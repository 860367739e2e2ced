"""Names that quax, galax and typinox import from `equinox._module._module`."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from ecliptic.module import Module, ModuleMeta

_ModuleMeta = ModuleMeta


class _HasDataclassInit(Mapping[type, bool]):
    """Whether a Module class has the `__init__` that `dataclasses` writes."""

    def __getitem__(self, cls: type) -> bool:
        try:
            return not cls.__class_spec__.custom_init  # pyright: ignore[reportAttributeAccessIssue]
        except AttributeError:
            raise KeyError(cls) from None

    def __iter__(self) -> Iterator[type]:
        return iter(())

    def __len__(self) -> int:
        return 0


_has_dataclass_init: Mapping[type, bool] = _HasDataclassInit()


def is_abstract_module(cls: Any) -> bool:
    """Whether a Module class cannot be instantiated."""
    return inspect.isclass(cls) and issubclass(cls, Module) and cls.__class_spec__.lacks is not None
