"""Every exception and warning that Ecliptic raises.

```
EclipticError
├── TreeError                 a PyTree is not what the function was told
│   ├── StructureError        (ValueError)  two trees, or a tree and its specification, do not fit
│   ├── LeafError             (TypeError)   a leaf has a type that cannot be used here
│   ├── SelectionError        (ValueError)  `tree_at`'s `where` does not pick what it must
│   │   └── SelectionTypeError (TypeError)  one replacement was given for several nodes
│   └── PathError             (ValueError)  a path cannot be read, or matches nothing
├── ModuleError               a class or an instance breaks the rules of Modules
│   ├── DefinitionError       (TypeError)   the class statement itself is wrong
│   ├── AbstractError         (TypeError)   an abstract class was instantiated
│   ├── InitialisationError   (TypeError)   `__init__` left a field unset, or set what it must not
│   ├── FieldError            (ValueError)  a field was given a value that it must not hold
│   ├── UnhashableError       (TypeError)   `hash(module)` met a value without a hash
│   └── FrozenError           (dataclasses.FrozenInstanceError)  assignment after initialisation
├── TransformError            a filtered transformation got something that it cannot use
│   ├── ArgumentError         (ValueError)  an argument or option has a wrong value
│   ├── ArgumentTypeError     (TypeError)   an argument or option has a wrong type
│   ├── RuleError             (RuntimeError)  a rule for derivatives is missing or wrong
│   └── StaticError           (TypeError)   a static value cannot be compared from call to call
├── BarrierError              a value met a transformation that its author rules out
│   ├── NonTraceableError     (RuntimeError)  any
│   ├── NonDifferentiableError  (RuntimeError)  differentiation
│   └── NonBatchableError     (ValueError)  `jax.vmap`
├── ControlError              a loop or a branch got something that it cannot use
│   └── CarryError            (TypeError)   a step or a branch changed what has to stay
├── RuntimeCheckError         (jax.errors.JaxRuntimeError)  an `error_if` found something
│   └── TracetimeCheckError   the same, found before the program ran
├── StateError                a state, or what is put into it, cannot be used
│   ├── OldStateError         (ValueError)  a state was used after a newer one was made of it
│   ├── StateValueError       (ValueError)  a value does not fit into the state
│   └── StateKeyError         (KeyError)    the state has no value for an index
├── LayerError                a layer got an input that it cannot use
│   ├── ShapeError            (ValueError)  the shape is wrong
│   ├── LayerArgumentError    (ValueError)  another argument is wrong or missing
│   ├── AxisNameError         (NameError)   a layer needs a mapped axis of a name, and there is none
│   └── MissingKeyError       (RuntimeError)  a layer that draws random numbers was given no key
├── EnumerationError          (ValueError)  items of different enumerations were mixed
├── SerialisationError        (RuntimeError)  a tree cannot be written, or a file not be read
│   ├── FileFormatError       a file is cut off, damaged, or of another kind
│   └── MismatchError         a file does not hold what its skeleton says; it has a `report`
├── InstallError              (RuntimeError) Ecliptic cannot stand in for another library now
├── DebugError                (RuntimeError) a tool of `ecliptic.debug` stops the program
└── MissingPackageError       (ImportError) an optional package is needed, and is not installed

EclipticWarning               (UserWarning) a probable mistake that still has a meaning
└── LargeConstantWarning      large arrays become constants of a compiled program
```

Each class that has a counterpart, built in or JAX's, derives from it too, so `except ValueError`
works as it does elsewhere in the field. Each exception has a note, shown under the message in a
traceback: it names the page of the family in the documentation. This module imports nothing of
Ecliptic.
"""

import dataclasses
from typing import Any, ClassVar, TypeVar

from jax.errors import JaxRuntimeError

_Error = TypeVar("_Error")


class EclipticError(Exception):
    """Base class of all exceptions of Ecliptic."""

    # The page of the family, in the folder `errors` of the documentation.
    _page: ClassVar[str] = "index"

    # (Not `Self`: checkers at run time look at a method alone.)
    def __new__(cls: type[_Error], *args: Any, **kwargs: Any) -> _Error:
        """Adds the note, which leaves `str(error)` as it is."""
        error: Any = Exception.__new__(cls, *args, **kwargs)  # pyright: ignore[reportArgumentType]
        error.add_note(f"See errors/{error._page} in Ecliptic's documentation.")
        return error


class TreeError(EclipticError):
    """A PyTree is not what the function was told."""

    _page = "trees"


class StructureError(TreeError, ValueError):
    """Two PyTrees, or a PyTree and its specification, do not fit."""


class LeafError(TreeError, TypeError):
    """A leaf has a type that cannot be used here."""


class SelectionError(TreeError, ValueError):
    """The `where` of `tree_at` does not pick what it must."""


class SelectionTypeError(SelectionError, TypeError):
    """`tree_at` got one replacement where it needs a sequence of them."""


class PathError(TreeError, ValueError):
    """A path cannot be read, or it matches nothing."""


class ModuleError(EclipticError):
    """A Module class or instance breaks the rules of Modules."""

    _page = "modules"


class DefinitionError(ModuleError, TypeError):
    """The class statement of a Module is wrong."""


class AbstractError(ModuleError, TypeError):
    """An abstract Module was instantiated."""


class InitialisationError(ModuleError, TypeError):
    """Initialisation left a field unset, or set something that it must not."""


class FieldError(ModuleError, ValueError):
    """A field was given a value that it must not hold."""


class UnhashableError(ModuleError, TypeError):
    """`hash(module)` met a value that has no hash."""


class FrozenError(ModuleError, dataclasses.FrozenInstanceError):
    """A Module was assigned to after its initialisation."""


class TransformError(EclipticError):
    """A filtered transformation got something that it cannot use."""

    _page = "transformations"


class ArgumentError(TransformError, ValueError):
    """An argument or option of a transformation has a wrong value."""


class ArgumentTypeError(TransformError, TypeError):
    """An argument or option of a transformation has a wrong type."""


class RuleError(TransformError, RuntimeError):
    """A rule for derivatives is missing, is asked for what it has not, or breaks its contract."""


class StaticError(TransformError, TypeError):
    """A static value cannot be compared from call to call."""


class BarrierError(EclipticError):
    """A value met a transformation that the author of the function rules out."""

    _page = "transformations"


class NonTraceableError(BarrierError, RuntimeError):
    """A value that must not be transformed at all was."""


class NonDifferentiableError(BarrierError, RuntimeError):
    """A value that must not be differentiated was."""


class NonBatchableError(BarrierError, ValueError):
    """A value that must not be batched was."""


class ControlError(EclipticError):
    """A loop or a branch got something that it cannot use."""

    _page = "loops-and-branches"


class CarryError(ControlError, TypeError):
    """A step of a loop, or a branch, changed what has to stay as it is."""


class RuntimeCheckError(EclipticError, JaxRuntimeError):
    """An `error_if` in a program found what it looks for.

    JAX's own class for an error of a program is a base, so `except jax.errors.JaxRuntimeError`
    finds it, too.
    """

    _page = "runtime-checks"


class TracetimeCheckError(RuntimeCheckError):
    """An `error_if` will always fail, which is known before the program runs."""


class StateError(EclipticError):
    """A state of a model, or what is put into it, cannot be used."""

    _page = "layers-and-states"


class OldStateError(StateError, ValueError):
    """A state was used after a newer one was made of it."""


class StateValueError(StateError, ValueError):
    """A value does not fit into the state, or is none that a state can hold."""


class StateKeyError(StateError, KeyError):
    """The state has no value for an index."""

    # That of `KeyError` shows the message in quotes, with its line ends escaped.
    __str__ = Exception.__str__


class LayerError(EclipticError):
    """A layer got an input that it cannot use."""

    _page = "layers-and-states"


class ShapeError(LayerError, ValueError):
    """The input of a layer has a wrong shape."""


class LayerArgumentError(LayerError, ValueError):
    """An argument of a layer is wrong or missing."""


class AxisNameError(LayerError, NameError):
    """A layer needs a mapped axis of a name, and there is none."""


class MissingKeyError(LayerError, RuntimeError):
    """A layer that draws random numbers was given no key."""


class EnumerationError(EclipticError, ValueError):
    """Items of different enumerations were mixed, or others than items were used as such."""

    _page = "transformations"


class SerialisationError(EclipticError, RuntimeError):
    """A tree cannot be written, or a file cannot be read as what its skeleton says.

    Attributes:
        key_path: the path of the leaf, as `jax.tree_util` has paths; None if it is about no leaf.
    """

    _page = "serialisation"
    key_path: tuple[object, ...] | None = None


class FileFormatError(SerialisationError):
    """A file is cut off, damaged, or of another kind."""


class MismatchError(SerialisationError):
    """A file does not hold the leaves of its skeleton.

    Attributes:
        report: every difference, by path.
    """

    report: object = None


class DebugError(EclipticError, RuntimeError):
    """A tool of `ecliptic.debug` stops the program, or is used where it cannot work."""

    _page = "layers-and-states"


class InstallError(EclipticError, RuntimeError):
    """Ecliptic cannot stand in for another library any more."""

    _page = "layers-and-states"


class MissingPackageError(EclipticError, ImportError):
    """An optional package is needed, and it is not installed."""

    _page = "layers-and-states"


class EclipticWarning(UserWarning):
    """A probable mistake that still has a meaning."""


class LargeConstantWarning(EclipticWarning):
    """A function that is compiled captures large arrays, which become constants of its program."""
