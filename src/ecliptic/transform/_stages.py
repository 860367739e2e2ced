"""Ahead of time: a filtered function traced, lowered, compiled and exported.

Each stage holds that of JAX and adds the static part: it takes the arguments that the function
itself takes, and gives the output that it gives. Everything else that a stage of JAX can tell
(`cost_analysis`, `memory_analysis`, `as_text`, …) is asked of the one inside.
"""

import contextlib
from typing import Any

import jax
import jax.export
import numpy as np
from jax.tree_util import tree_flatten

from ecliptic.errors import ArgumentError
from ecliptic.transform._failure import waiting
from ecliptic.transform._program import Output, Program
from ecliptic.transform._static import argument_path, same_static
from ecliptic.tree import array_type, first_difference, is_array

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def _stand_in(leaf: Any) -> Any:
    """An array in place of a mere description of one."""
    return np.zeros(()) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf


def with_stand_ins(leaves: list[Any]) -> list[Any]:
    """Leaves as the dispatch sees them, where arrays may be given as `jax.ShapeDtypeStruct`."""
    return [_stand_in(leaf) for leaf in leaves]


class _Stage:
    """One stage of compilation."""

    def __init__(
        self, inner: Any, program: Program, example: _Arguments, bound: tuple[Any, ...]
    ) -> None:
        self._inner = inner
        self._program = program
        self._example = example
        # The callable itself if it is a PyTree, which comes before the arguments of each call.
        self._bound = bound

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    @property
    def out_info(self) -> Any:
        """The output, with a description in place of each array."""
        out = self._inner.out_info
        return out.rebuild() if isinstance(out, Output) else out

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._program.name})"


class Traced(_Stage):
    """A function that is traced: `filter_jit(f).trace(...)`. Wraps `jax.stages.Traced`."""

    def lower(self, **options: Any) -> "Lowered":
        """Lowers the program to the compiler's language."""
        silence = self._program.silence
        quiet = contextlib.nullcontext() if silence is None else silence.quiet()
        with quiet, self._program.watching(compiles=False):
            inner = self._inner.lower(**options)
        return Lowered(inner, self._program, self._example, self._bound)


class Lowered(_Stage):
    """A function that is lowered: `filter_jit(f).lower(...)`. Wraps `jax.stages.Lowered`."""

    def compile(self, compiler_options: dict[str, Any] | None = None) -> "Compiled":
        """Compiles the program."""
        inner = self._inner.compile(compiler_options)
        return Compiled(inner, self._program, self._example, self._bound)


class Compiled(_Stage):
    """A function that is compiled for given shapes, dtypes and static parts.

    Wraps `jax.stages.Compiled`. A call takes what the function takes.

    Raises:
        ArgumentError: at a call with another tree or other static leaves than those it was compiled
            for. Other shapes and dtypes are JAX's to refuse.
    """

    def __init__(self, inner: Any, program: Program, *rest: Any) -> None:
        super().__init__(inner, program, *rest)
        # What is compiled here has been lowered, so it is known by now whether a check is in it.
        self._run = waiting(inner, program.watch) if program.watch.found else inner

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        program = self._program
        args = (*self._bound, *args)
        arrays = None if program.collect is None else program.collect(args, kwargs)
        if arrays is None:
            leaves, treedef = tree_flatten((args, kwargs))
            if not program.matches(leaves, list(map(type, leaves)), treedef):
                self._refuse(args, kwargs)
            arrays = program.arrays_of(leaves, args, kwargs)
        out = self._run(*arrays)
        return out.rebuild() if type(out) is Output else out

    def _refuse(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raises if these arguments really are for another program, and says in what."""
        difference = describe_difference(self._example, (args, kwargs))
        if difference is not None:
            raise ArgumentError(
                f"`{self._program.name}` was compiled for other arguments: {difference}. Static "
                f"values are part of a compiled program: compile another one for these."
            )


def describe_difference(example: _Arguments, given: _Arguments) -> str | None:
    """In what the static part of a call differs from that of an example, in words."""
    leaves, treedef = tree_flatten(example)
    other_leaves, other_treedef = tree_flatten(given)
    if treedef != other_treedef:
        return first_difference(example, given, None)
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(example)[0]]
    for path, one, other in zip(paths, leaves, other_leaves, strict=True):
        where = argument_path(path)
        one_is_array = array_type(type(_stand_in(one)))
        if one_is_array != array_type(type(_stand_in(other))):
            kinds = [("an array" if is_array(_stand_in(x)) else repr(x)) for x in (one, other)]
            return f"the leaf {where} was {kinds[0]} then and is {kinds[1]} now"
        if not one_is_array and not (type(one) is type(other) and same_static(one, other)):
            return f"the static leaf {where} was {one!r} then and is {other!r} now"
    return None


class Exported:
    """A function as a portable program: `filter_jit(f).export(...)`.

    What can be written to a file is the program over arrays (`serialize`). The static part cannot
    be: it may hold any Python object. To read a program back (`deserialize`), give
    arguments and an output that have the right static part; arrays in them may be
    `jax.ShapeDtypeStruct`.

    Args:
        exported: the program of `jax.export`, over flat lists of arrays.
        example: arguments with the static part that the program stands for.
        output: an output, likewise.
        bound: what comes before the arguments of each call: the callable, if it is a PyTree.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> f = ec.filter_jit(lambda x, how: {"y": x * 2, "how": how})
        >>> data = f.export(jnp.ones(3), "doubled").serialize()
        >>> shape = jax.ShapeDtypeStruct((3,), jnp.float32)
        >>> g = ec.Exported.deserialize(
        ...     data, args=(shape, "doubled"), output={"y": shape, "how": "doubled"}
        ... )
        >>> out = g.call(jnp.arange(3.0), "doubled")
        >>> out["how"], out["y"].tolist()
        ('doubled', [0.0, 2.0, 4.0])
    """

    def __init__(
        self,
        exported: "jax.export.Exported",
        example: _Arguments,
        output: Any,
        bound: tuple[Any, ...] = (),
    ) -> None:
        self.exported = exported
        self._example = example
        self._output = output
        self._bound = bound

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the program as the function was called.

        Raises:
            ArgumentError: if the static part is another than that which was exported.
        """
        args = (*self._bound, *args)
        difference = describe_difference(self._example, (args, kwargs))
        if difference is not None:
            raise ArgumentError(
                f"The program was exported for other arguments: {difference}. Static values are "
                f"part of an exported program: export another one for these."
            )
        arrays = self.exported.call(_arrays((args, kwargs)))
        leaves, treedef = tree_flatten(self._output)
        rest = iter(arrays)
        return treedef.unflatten([next(rest) if is_array(_stand_in(x)) else x for x in leaves])

    def serialize(self) -> bytearray:
        """The program over arrays, as bytes that any later version of JAX reads.

        `jax.export` says for how long. Without the static part.
        """
        return self.exported.serialize()

    @staticmethod
    def deserialize(
        data: bytes | bytearray,
        *,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        output: Any,
    ) -> "Exported":
        """Reads a program back, and gives it a static part.

        Args:
            data: what `serialize` returned.
            args: positional arguments, as examples of tree and static leaves.
            kwargs: keyword arguments, likewise. Default: none.
            output: an output, likewise.

        Raises:
            ArgumentError: if the examples hold other numbers of arrays than the program.
        """
        exported = jax.export.deserialize(bytearray(data))
        example = (args, kwargs or {})
        for what, tree, wanted in (
            ("arguments", example, len(exported.in_avals)),
            ("output", output, len(exported.out_avals)),
        ):
            found = len(_arrays(tree))
            if found != wanted:
                raise ArgumentError(
                    f"The exported program has {wanted} arrays as its {what}, and the example of "
                    f"its {what} has {found}."
                )
        return Exported(exported, example, output)


def _arrays(tree: Any) -> list[Any]:
    return [leaf for leaf in jax.tree_util.tree_leaves(tree) if is_array(_stand_in(leaf))]


def export_program(
    program: Program,
    leaves: list[Any],
    example: _Arguments,
    bound: tuple[Any, ...],
    options: dict[str, Any],
) -> Exported:
    """Exports a program for the shapes and dtypes of these leaves."""
    traced = [leaves[i] for i in program.traced]
    split = [i in program.donated for i in program.traced]

    def over_arrays(arrays: list[Any]) -> list[Any]:
        given = [a for a, donated in zip(arrays, split, strict=True) if donated]
        kept = [a for a, donated in zip(arrays, split, strict=True) if not donated]
        return _arrays(program.jitted(given, kept))

    over_arrays.__name__ = program.name
    with program.watching(compiles=False):
        arrays = program.pick_donated(leaves), program.pick_kept(leaves)
        out = jax.eval_shape(program.jitted, *arrays)
        exported = jax.export.export(jax.jit(over_arrays), **options)(traced)
    output = out.rebuild() if isinstance(out, Output) else out
    return Exported(exported, example, output, bound)
