"""Abstract attributes: what a base class wants its subclasses to have.

`AbstractVar` and `AbstractClassVar` do for attributes what `abc.abstractmethod` does for methods.
They are annotations, and no fields: a class that has one unfulfilled cannot be instantiated.
"""

import inspect
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_origin

from ecliptic.errors import DefinitionError

_T = TypeVar("_T")

if TYPE_CHECKING:
    # To a type checker an abstract variable is a variable like any other.
    AbstractVar = Annotated[_T, "AbstractVar"]
    from typing import ClassVar as AbstractClassVar
else:

    class AbstractVar(Generic[_T]):
        """Annotation of an instance attribute that subclasses have to supply.

        A subclass fulfils `x: AbstractVar[T]` by a field, a class attribute or a property of that
        name, its own or that of another base. Until then it cannot be instantiated.

        !!! Example

            >>> import ecliptic as ec
            >>> class Shape(ec.Module):
            ...     sides: ec.AbstractVar[int]
            >>> class Polygon(Shape):
            ...     sides: int
            >>> Polygon(5)
            Polygon(sides=5)
            >>> Shape()
            Traceback (most recent call last):
                ...
            ecliptic.errors.AbstractError: Can't instantiate abstract class Shape with...
        """

    class AbstractClassVar(Generic[_T]):
        """Annotation of a class attribute that subclasses have to supply.

        A subclass fulfils `x: AbstractClassVar[T]` by a value on the class. A field does as well,
        though without a default only the instances have it.

        !!! Example

            >>> import ecliptic as ec
            >>> class Method(ec.Module):
            ...     order: ec.AbstractClassVar[int]
            >>> class Euler(Method):
            ...     order = 1
            >>> Euler().order
            1
        """


_KINDS: dict[str, Any] = {"AbstractVar": AbstractVar, "AbstractClassVar": AbstractClassVar}

# Name of the class attribute that holds what one class itself declares as abstract.
DECLARED = "__abstract_declarations__"


def _kind_of_text(annotation: str, module: str | None) -> str | None:
    """Which kind of abstract attribute a string annotation means."""
    head = annotation.split("[", 1)[0].strip().strip("\"'")
    first, *rest = head.split(".")
    scope = getattr(sys.modules.get(module or ""), "__dict__", {})
    value = scope.get(first)
    for name in rest:
        value = getattr(value, name, None)
    for kind, marker in _KINDS.items():
        if value is marker:
            return kind
    # A name from an enclosing function is not to be found in the module; go by its spelling then.
    last = rest[-1] if rest else first
    return last if value is None and last in _KINDS else None


def _kind_of(annotation: Any, module: str | None) -> str | None:
    """Which kind of abstract attribute an annotation means; None for an ordinary one."""
    if isinstance(annotation, str):
        return _kind_of_text(annotation, module)
    origin = get_origin(annotation) or annotation
    return next((kind for kind, marker in _KINDS.items() if origin is marker), None)


def declarations(namespace: Mapping[str, Any], name: str) -> dict[str, str]:
    """What a class body declares as abstract: attribute name to kind.

    Raises:
        DefinitionError: if an abstract attribute also has a value, or no type.
    """
    module = namespace.get("__module__")
    declared = {}
    annotations = namespace.get("__annotations__", {})
    bare = [a for a, kind in annotations.items() if any(kind is each for each in _KINDS.values())]
    if bare:
        raise DefinitionError(
            f"The annotation of `{bare[0]}` in `{name}` is unsubscripted. Say of which type it "
            f"shall be: `{bare[0]}: AbstractVar[int]`, or `AbstractVar[Any]`."
        )
    for attribute, annotation in annotations.items():
        kind = _kind_of(annotation, module)
        if kind is None:
            continue
        if attribute in namespace:
            raise DefinitionError(
                f"The abstract attribute `{attribute}` of `{name}` cannot have value "
                f"{namespace[attribute]!r}, or any. Drop the value, or annotate `{attribute}: ...` "
                f"without `{kind}`."
            )
        declared[attribute] = kind
    return declared


def _is_concrete(base: type, attribute: str, kind: str) -> bool:
    """Whether `base` itself supplies `attribute`, which is abstract in this way."""
    if attribute in base.__dict__.get(DECLARED, {}):
        return False
    if attribute in base.__dict__:
        return True
    if attribute not in inspect.get_annotations(base):
        return False
    # An annotation alone makes a field of a dataclass, or says by `ClassVar` that there is a value
    # on the class; by `InitVar` neither.
    entry = base.__dict__.get("__dataclass_fields__", {}).get(attribute)
    made = {"_FIELD", "_FIELD_CLASSVAR"} if kind == "AbstractClassVar" else {"_FIELD"}
    return entry is not None and repr(entry._field_type) in made


def unfulfilled(cls: type) -> dict[str, str]:
    """The abstract attributes that `cls` still lacks: name to kind.

    An attribute is there if some class of the MRO supplies it, in whichever order the bases
    stand; except that a subclass may declare abstract again what its base had.
    """
    mro = cls.__mro__
    wanted: dict[str, str] = {}
    for base in reversed(mro):
        declared = base.__dict__.get(DECLARED, {})
        # What has to be on the class has to be there still if a subclass asks for less.
        wanted.update({a: k for a, k in declared.items() if wanted.get(a) != "AbstractClassVar"})
    missing = {}
    for attribute, kind in wanted.items():
        declaring = [base for base in mro if attribute in base.__dict__.get(DECLARED, {})]
        supplying = [base for base in mro if _is_concrete(base, attribute, kind)]
        if all(any(issubclass(d, s) for d in declaring) for s in supplying):
            missing[attribute] = kind
    return missing
