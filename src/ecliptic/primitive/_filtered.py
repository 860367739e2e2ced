"""Filtered primitives: operations of JAX over any PyTrees.

`filter_primitive_bind` calls such an operation. Its rules are written for whole trees too, and
adapters make of them what JAX's registries expect.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import jax
import numpy as np

from ecliptic import _jax
from ecliptic._jax._define import no_tangent
from ecliptic.errors import ArgumentError, RuleError
from ecliptic.primitive._operands import ARRAY, Given, Output, as_arrays, fill, split, spread


def filter_primitive_bind(prim: Any, *args: Any) -> Any:
    """Calls a primitive with any PyTrees.

    Arrays go through JAX. All other leaves are in the parameter `static` of the operation, programs
    (`jax.extend.core.ClosedJaxpr`) among them as they are, so that what rewrites the programs in an
    operation's parameters finds these.

    Args:
        prim: a primitive with `multiple_results = True`, whose rules were made by
            `filter_primitive_def`, `filter_primitive_jvp`, `filter_primitive_transpose` and
            `filter_primitive_batching`.
        *args: its arguments: any PyTrees.

    Returns:
        What the rule for the kind of evaluation at hand returned: any PyTree.

    Raises:
        ArgumentError: if the primitive has a single result.

    !!! Example

        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> from jax.extend.core import Primitive
        >>> call = Primitive("call")
        >>> call.multiple_results = True
        >>> @call.def_impl
        ... @exp.filter_primitive_def
        ... def _(f, tree):
        ...     return {"by": f.__name__, "out": f(tree["x"])}
        >>> exp.filter_primitive_bind(call, jnp.negative, {"x": jnp.ones(2)})
        {'by': 'negative', 'out': Array([-1., -1.], dtype=float32)}
    """
    if not prim.multiple_results:
        raise ArgumentError(
            f"`filter_primitive_bind` needs a primitive with several results, since a tree has "
            f"several leaves, and `{prim}` has one. Set `multiple_results = True` on it."
        )
    given = split(args)
    output = Output()
    arrays = prim.bind(*given.arrays, static=given.static, treedef=given.treedef, output=output)
    return output.tree(arrays, prim)


def filter_primitive_def(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a rule for a filtered primitive that says what it computes, or of which type that is.

    Args:
        rule: takes the arguments of `filter_primitive_bind`, and returns any PyTree. As the rule
            for abstract evaluation it finds a `jax.core.ShapedArray` in place of each array, and
            puts one in place of each array in its output.

    Returns:
        The rule for `Primitive.def_impl`, `Primitive.def_abstract_eval`, or
        `jax.interpreters.mlir.lower_fun(..., multiple_results=True)`.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> from jax.extend.core import Primitive
        >>> scale = Primitive("scale")
        >>> scale.multiple_results = True
        >>> @scale.def_abstract_eval
        ... @exp.filter_primitive_def
        ... def _(x, by):
        ...     return x
        >>> scaled = lambda x: exp.filter_primitive_bind(scale, x, 2)
        >>> jax.eval_shape(scaled, jnp.ones(3))
        ShapeDtypeStruct(shape=(3,), dtype=float32)
    """

    @functools.wraps(rule)
    def flat(*arrays: Any, static: Any, treedef: Any, output: Output) -> list[Any]:
        return output.put(rule(*fill(static, treedef, as_arrays(arrays))))

    return flat


def filter_primitive_jvp(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a rule for the derivative of a filtered primitive.

    Args:
        rule: takes the arguments and their tangents, each as one tuple of trees, and returns the
            output and its tangents. A tangent is `None` where it is zero, as it is for each leaf
            that is no array. `None` can stand for the tangents of a whole part of the output.

    Returns:
        The rule for `jax.interpreters.ad.primitive_jvps`.

    Raises:
        RuleError: once it runs, if the rule returns no pair, or tangents that do not fit.

    !!! Example

        >>> import ecliptic.primitive as exp
        >>> @exp.filter_primitive_jvp
        ... def rule(primals, tangents):
        ...     (f, x), (_, t_x) = primals, tangents
        ...     return f(x), None if t_x is None else 2 * t_x
    """

    @functools.wraps(rule)
    def flat(
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        static: Any,
        treedef: Any,
        output: Output,
    ) -> tuple[list[Any], list[Any]]:
        args = fill(static, treedef, as_arrays(primals))
        t_args = fill(static, treedef, _or_none(tangents), None)
        out, t_out = _pair(rule(args, t_args), "derivative", "output, tangents")
        arrays = output.put(out)
        found = _for_arrays(t_out, output, "The tangents that the rule of a derivative returns")
        return arrays, [
            no_tangent(x) if t is None or is_zero(t) else t
            for x, t in zip(arrays, found, strict=True)
        ]

    return flat


@overload
def filter_primitive_transpose(
    rule: Callable[..., Any], *, materialise_zeros: bool = False
) -> Callable[..., Any]: ...


@overload
def filter_primitive_transpose(
    *, materialise_zeros: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...


def filter_primitive_transpose(
    rule: Callable[..., Any] | None = None, *, materialise_zeros: bool = False
) -> Callable[..., Any]:
    """Makes a rule for the transpose of a filtered primitive.

    Args:
        rule: takes the arguments as one tuple of trees, in which each array that it is to be
            transposed with respect to is a `jax.interpreters.ad.UndefinedPrimal`, and the
            cotangents of the output, as a tree like that. A cotangent is `None` where it is
            zero, as it is for each leaf that is no array. It returns cotangents for the arguments,
            as a tuple of trees like these, where `None` can stand for any part.
        materialise_zeros: whether the cotangents of arrays are never `None` but arrays of zeros.
            Not by default, since a rule can save work where it knows of zeros.

    Returns:
        The rule for `jax.interpreters.ad.primitive_transposes`; a decorator if no rule was given.

    Raises:
        RuleError: once it runs, if the rule returns cotangents that do not fit.

    !!! Example

        >>> import ecliptic.primitive as exp
        >>> @exp.filter_primitive_transpose(materialise_zeros=True)
        ... def rule(inputs, cotangents):
        ...     factor, x = inputs
        ...     return None, factor * cotangents
    """
    if rule is None:
        return functools.partial(filter_primitive_transpose, materialise_zeros=materialise_zeros)

    @functools.wraps(rule)
    def flat(
        cotangents: Sequence[Any], *arrays: Any, static: Any, treedef: Any, output: Output
    ) -> list[Any]:
        if materialise_zeros:
            cotangents = [_jax.instantiate_zeros(ct) for ct in cotangents]
        inputs = fill(static, treedef, as_arrays(arrays))
        cts = fill(output.static or (), output.treedef, _or_none(cotangents), None)
        returned = rule(inputs, cts)
        returned = tuple(returned) if isinstance(returned, list) else returned
        what = "The cotangents that the rule of a transpose returns"
        found = _for_arrays(returned, Given(list(arrays), static, treedef), what)
        return [
            ct if _jax.is_undefined_primal(x) else None for x, ct in zip(arrays, found, strict=True)
        ]

    return flat


def filter_primitive_batching(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a rule for a filtered primitive under `jax.vmap`.

    Args:
        rule: takes the arguments and their mapped axes, each as one tuple of trees, and returns the
            output and its mapped axes. An axis is `None` where nothing is mapped, as it is for each
            leaf that is no array. One axis can stand for all of a part of the output.

    Returns:
        The rule for `jax.interpreters.batching.primitive_batchers`.

    Raises:
        RuleError: once it runs, if the rule returns no pair, or axes that do not fit.

    !!! Example

        >>> import jax
        >>> import ecliptic.primitive as exp
        >>> @exp.filter_primitive_batching
        ... def rule(inputs, axes):
        ...     f, x = inputs
        ...     return jax.vmap(f, axes[1])(x), 0
    """

    @functools.wraps(rule)
    def flat(
        arrays: Sequence[Any], axes: Sequence[Any], *, static: Any, treedef: Any, output: Output
    ) -> tuple[list[Any], list[Any]]:
        inputs = fill(static, treedef, as_arrays(arrays))
        returned = rule(inputs, fill(static, treedef, axes, None))
        out, axes_out = _pair(returned, "batch", "output, axes")
        flat_out = output.put(out)
        return flat_out, _for_arrays(axes_out, output, "The axes that the rule of a batch returns")

    return flat


def is_zero(tangent: Any) -> bool:
    """Whether a tangent or cotangent is known to be zero."""
    if isinstance(tangent, _jax.Zero | jax.custom_derivatives.SymbolicZero):
        return True
    return getattr(tangent, "dtype", None) == np.dtype(jax.dtypes.float0)


def _or_none(tangents: Sequence[Any]) -> list[Any]:
    return [None if is_zero(t) else as_arrays([t])[0] for t in tangents]


def _pair(returned: Any, rule: str, what: str) -> Any:
    if isinstance(returned, tuple | list) and len(returned) == 2:
        return returned
    raise RuleError(
        f"The rule for the {rule} of a filtered primitive must return a pair, `{what}`; it "
        f"returned a `{type(returned).__qualname__}`."
    )


def _for_arrays(tree: Any, like: Given | Output, what: str) -> list[Any]:
    """What a rule returned for the arrays of a tree; for other leaves that has to be `None`."""
    static = like.static or ()
    leaves = spread(tree, like, what)
    return [leaf for leaf, mark in zip(leaves, static, strict=True) if mark is ARRAY]
