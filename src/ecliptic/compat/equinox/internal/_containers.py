"""A metaclass of `equinox.internal` that old releases of Diffrax use."""

from typing import Any


class ContainerMeta(type):
    """Numbers the attributes in a class body: the class is a container of them.

    `Class.name` is a number, `Class[number]` the value that was written, `len(Class)` their count.
    """

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        values = [key for key in namespace if not (key.startswith("__") and key.endswith("__"))]
        numbered = {key: number for number, key in enumerate(values)}
        cls = super().__new__(mcs, name, bases, {**namespace, **numbered})
        type.__setattr__(cls, "_values", tuple(namespace[key] for key in values))
        return cls

    def __getitem__(cls, item: Any) -> Any:
        return cls._values[item]  # pyright: ignore[reportAttributeAccessIssue]

    def __len__(cls) -> int:
        return len(cls._values)  # pyright: ignore[reportAttributeAccessIssue]
