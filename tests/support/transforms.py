"""The table of transforms: a row is enough for one to be tested with every tree, and under others.

A row says how the transform is used on a function of a tree and an array, and what plain JAX makes
of the same function when the tree is gone: a function of `(weights, x)`, two flat lists of arrays.
Both give the arrays of the result; what is no array is for the unit tests.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec, SingleDeviceSharding

import ecliptic as ec

Function = Callable[[Any, Any], Any]


@dataclasses.dataclass(frozen=True)
class Transform:
    """A transform to test.

    Args:
        name: its public name.
        use: applies it to the function `f` of a tree and an array.
        plain: what should come out, for a function of `(weights, x)`.
    """

    name: str
    use: Callable[[Function, Any, Any], Any]
    plain: Callable[[Function, Any, Any], Any]


def _scalar(f: Function) -> Function:
    return lambda *args: jnp.sum(f(*args) ** 2)


def _value(f: Function, w: Any, x: Any) -> Any:
    return f(w, x)


def _pair(f: Function, w: Any, x: Any) -> Any:
    return jnp.stack([f(w, x), f(w, 2 * x)])


def _stack(f: Function, tree: Any, x: Any) -> Any:
    """The tree is an output of one map, and an input of another."""
    xs = jnp.stack([x, 2 * x])
    trees, _ = ec.filter_vmap(lambda x: (tree, x))(xs)
    return ec.filter_vmap(f)(trees, xs)


def _tangents(tree: Any) -> Any:
    return jax.tree.map(jnp.ones_like, ec.filter(tree, ec.is_inexact_array))


# ------------------------------------------------------------------------------------- derivatives


def _jvp(f: Function, tree: Any, x: Any) -> Any:
    return ec.filter_jvp(f, (tree, x), (_tangents(tree), _tangents(x)))


def _plain_jvp(f: Function, w: Any, x: Any) -> Any:
    return jax.jvp(f, (w, x), (jax.tree.map(jnp.ones_like, w), jnp.ones_like(x)))


def _vjp(f: Function, tree: Any, x: Any) -> Any:
    out, pullback = ec.filter_vjp(f, tree, x)
    return out, pullback(jnp.ones_like(out))


def _plain_vjp(f: Function, w: Any, x: Any) -> Any:
    out, pullback = jax.vjp(f, w, x)
    return out, pullback(jnp.ones_like(out))


def _linearize(f: Function, tree: Any, x: Any) -> Any:
    out, pushforward = ec.filter_linearize(f, tree, x)
    return out, pushforward(_tangents(tree), _tangents(x))


def _custom_jvp(f: Function, tree: Any, x: Any) -> Any:
    @ec.filter_custom_jvp
    def tripled(tree: Any, x: Any) -> Any:
        return f(tree, x)

    @tripled.def_jvp
    def _(primals: Any, tangents: Any) -> Any:
        out, slope = ec.filter_jvp(f, primals, tangents)
        return out, None if slope is None else 3 * slope

    return tripled(tree, x)


def _custom_vjp(f: Function, tree: Any, x: Any) -> Any:
    @ec.filter_custom_vjp
    def tripled(both: Any) -> Any:
        return f(*both)

    @tripled.def_fwd
    def _(perturbed: Any, both: Any) -> Any:
        return f(*both), None

    @tripled.def_bwd
    def _(residuals: Any, grad_out: Any, perturbed: Any, both: Any) -> Any:
        _, pullback = ec.filter_vjp(f, *both)
        return jax.tree.map(lambda slope: 3 * slope, pullback(grad_out))

    return tripled((tree, x))


def _plain_tripled(f: Function, w: Any, x: Any) -> Any:
    y = f(w, x)
    return 3 * y - jax.lax.stop_gradient(2 * y)


# ---------------------------------------------------------------------------------------- programs


def _eval_shape(f: Function, tree: Any, x: Any) -> Any:
    struct = ec.filter_eval_shape(f, tree, x)
    return jnp.ones(struct.shape, struct.dtype) * jnp.sum(x)


def _make_jaxpr(f: Function, tree: Any, x: Any) -> Any:
    _, struct, _ = ec.filter_make_jaxpr(f)(tree, x)
    return jnp.ones(struct.shape, struct.dtype) * jnp.sum(x)


def _plain_shape(f: Function, w: Any, x: Any) -> Any:
    return jnp.ones_like(x) * jnp.sum(x)


def _stopped(tree: Any) -> Any:
    arrays, rest = ec.partition(tree, ec.is_inexact_array)
    return ec.combine(jax.lax.stop_gradient(arrays), rest)


def _pure_callback(f: Function, tree: Any, x: Any) -> Any:
    def on_host(tree: Any, x: Any) -> Any:
        (weight,) = jax.tree.leaves(ec.filter(tree, ec.is_inexact_array))
        return np.asarray(x) * np.asarray(weight)

    struct = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return ec.filter_pure_callback(
        on_host, _stopped(tree), _stopped(x), result_shape_dtypes=struct, vmap_method="sequential"
    )


def _plain_callback(f: Function, w: Any, x: Any) -> Any:
    return jax.lax.stop_gradient(w[0] * x)


# ----------------------------------------------------------------------------------------- devices

_PAIR = jax.make_mesh((2,), ("pair",), axis_types=(AxisType.Auto,))
_WHOLE = PartitionSpec()


def _shard(f: Function, tree: Any, x: Any) -> Any:
    return f(ec.filter_shard(tree, SingleDeviceSharding(jax.devices()[0])), x)


def _shard_map(f: Function, tree: Any, x: Any) -> Any:
    mapped = ec.filter_shard_map(f, mesh=_PAIR, in_specs=_WHOLE, out_specs=_WHOLE)
    return mapped(tree, x)


def _pmap(f: Function, tree: Any, x: Any) -> Any:
    return ec.filter_pmap(f, in_axes=(None, 0))(tree, jnp.stack([x, 2 * x]))


# ----------------------------------------------------------------------------------------- the rows


def _of_loss(derivative: Callable[..., Any]) -> Callable[[Function, Any, Any], Any]:
    return lambda f, tree, x: derivative(_scalar(f))(tree, x)


def _of_output(derivative: Callable[..., Any]) -> Callable[[Function, Any, Any], Any]:
    return lambda f, tree, x: derivative(f)(tree, x)


TRANSFORMS = (
    Transform("filter_jit", lambda f, tree, x: ec.filter_jit(f)(tree, x), _value),
    Transform("filter_vmap", _stack, _pair),
    Transform("filter_grad", _of_loss(ec.filter_grad), _of_loss(jax.grad)),
    Transform(
        "filter_value_and_grad",
        _of_loss(ec.filter_value_and_grad),
        _of_loss(jax.value_and_grad),
    ),
    Transform("filter_jvp", _jvp, _plain_jvp),
    Transform("filter_vjp", _vjp, _plain_vjp),
    Transform("filter_linearize", _linearize, _plain_jvp),
    Transform("filter_jacfwd", _of_output(ec.filter_jacfwd), _of_output(jax.jacfwd)),
    Transform("filter_jacrev", _of_output(ec.filter_jacrev), _of_output(jax.jacrev)),
    Transform("filter_hessian", _of_loss(ec.filter_hessian), _of_loss(jax.hessian)),
    Transform("filter_custom_jvp", _custom_jvp, _plain_tripled),
    Transform("filter_custom_vjp", _custom_vjp, _plain_tripled),
    Transform("filter_checkpoint", lambda f, tree, x: ec.filter_checkpoint(f)(tree, x), _value),
    Transform(
        "filter_closure_convert",
        lambda f, tree, x: ec.filter_closure_convert(f, tree, x)(tree, x),
        _value,
    ),
    Transform("filter_eval_shape", _eval_shape, _plain_shape),
    Transform("filter_make_jaxpr", _make_jaxpr, _plain_shape),
    Transform("filter_pure_callback", _pure_callback, _plain_callback),
    Transform("filter_shard", _shard, _value),
    Transform("filter_shard_map", _shard_map, _value),
    Transform("filter_pmap", _pmap, _pair),
)
