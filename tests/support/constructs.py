"""The table of loops and branches: a row is enough for one to be tested with every tree.

A row says how the construct is used on a step, a function from a tree and an array to the next tree
and array; and what that means in plain Python. The trees are those that a step can change.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

import ecliptic as ec

Pair = tuple[Any, Any]
Step = Callable[[Any, Any], Pair]


@dataclasses.dataclass(frozen=True)
class Construct:
    """A loop or a branch to test.

    Args:
        name: what the test is called.
        use: the construct, on a step, a tree and an array.
        python: what it means.
        reverse: whether it can be differentiated in reverse mode.
    """

    name: str
    use: Callable[[Step, Any, Any], Pair]
    python: Callable[[Step, Any, Any], Pair]
    reverse: bool = True


STEPS = 3


def _amounts(x: Any) -> Any:
    return jnp.asarray([0.25, -0.5, 0.125], x.dtype)


def _scan(**options: Any) -> Callable[[Step, Any, Any], Pair]:
    def use(step: Step, tree: Any, x: Any) -> Pair:
        def advance(carry: Pair, amount: Any) -> tuple[Pair, Any]:
            tree, x = carry
            return step(tree, x + amount), {"x": x, "name": "x"}

        (tree, x), out = ec.filter_scan(advance, (tree, x), _amounts(x), **options)
        assert out["name"] == "x"
        return tree, x + jnp.sum(out["x"], axis=0)

    return use


def _python_scan(step: Step, tree: Any, x: Any) -> Pair:
    seen = []
    for amount in _amounts(x):
        seen.append(x)
        tree, x = step(tree, x + amount)
    return tree, x + sum(seen)


def _while(**options: Any) -> Callable[[Step, Any, Any], Pair]:
    def use(step: Step, tree: Any, x: Any) -> Pair:
        _, tree, x = ec.filter_while_loop(
            lambda carry: carry[0] < STEPS,
            lambda carry: (carry[0] + 1, *step(*carry[1:])),
            (0, tree, x),
            **options,
        )
        return tree, x

    return use


def _fori(step: Step, tree: Any, x: Any) -> Pair:
    return ec.filter_fori_loop(0, STEPS, lambda _, carry: step(*carry), (tree, x))


def _repeat(step: Step, tree: Any, x: Any) -> Pair:
    for _ in range(STEPS):
        tree, x = step(tree, x)
    return tree, x


def _skip(tree: Any, x: Any) -> Pair:
    return tree, 2 * x


def _cond(step: Step, tree: Any, x: Any) -> Pair:
    return ec.filter_cond(jnp.sum(x) > 0, step, _skip, tree, x)


def _switch(step: Step, tree: Any, x: Any) -> Pair:
    index = jnp.where(jnp.sum(x) > 0, 1, 2)
    return ec.filter_switch(index, [lambda *args: args, step, _skip], tree, x)


def _python_cond(step: Step, tree: Any, x: Any) -> Pair:
    return step(tree, x) if jnp.sum(x) > 0 else _skip(tree, x)


def _stacked(tree: Any, count: int = STEPS) -> Any:
    return jax.tree.map(lambda leaf: jnp.stack([leaf] * count) if ec.is_array(leaf) else leaf, tree)


def _last(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[-1] if ec.is_array(leaf) else leaf, tree)


def _map(**options: Any) -> Callable[[Step, Any, Any], Pair]:
    def use(step: Step, tree: Any, x: Any) -> Pair:
        xs = jnp.stack([x + amount for amount in _amounts(x)])
        trees, xs = ec.filter_map(lambda one: step(*one), (_stacked(tree), xs), **options)
        return _last(trees), jnp.sum(xs, axis=0)

    return use


def _python_map(step: Step, tree: Any, x: Any) -> Pair:
    pairs = [step(tree, x + amount) for amount in _amounts(x)]
    return pairs[-1][0], sum(x for _, x in pairs)


def _join(one: Any, other: Any) -> Any:
    return jax.tree.map(lambda a, b: a + b if ec.is_inexact_array(a) else a, one, other)


def _associative(step: Step, tree: Any, x: Any) -> Pair:
    tree, x = step(tree, x)
    return _last(ec.filter_associative_scan(_join, _stacked(tree))), x


def _python_associative(step: Step, tree: Any, x: Any) -> Pair:
    tree, x = step(tree, x)
    return _join(_join(tree, tree), tree), x


CONSTRUCTS = (
    Construct("scan", _scan(), _python_scan),
    Construct("scan, checkpointed", _scan(kind="checkpointed"), _python_scan),
    Construct("while_loop", _while(), _repeat, reverse=False),
    Construct("while_loop, checkpointed", _while(kind="checkpointed"), _repeat),
    Construct("while_loop, bounded", _while(kind="bounded", max_steps=4), _repeat),
    Construct("fori_loop", _fori, _repeat),
    Construct("cond", _cond, _python_cond),
    Construct("switch", _switch, _python_cond),
    Construct("map", _map(), _python_map),
    Construct("map, in batches", _map(batch_size=2), _python_map),
    Construct("associative_scan", _associative, _python_associative),
)


class Unit(ec.Module):
    """A Module with a function, a string and a number among its leaves."""

    weight: Any
    activation: Callable[..., Any] = jnp.tanh
    name: str = "unit"
    rate: float = 0.5


@struct.dataclass
class Parameters:
    """A dataclass of Flax."""

    weight: Any
    name: str = struct.field(pytree_node=False, default="flax")


class Named(NamedTuple):
    """A NamedTuple."""

    weight: Any
    activation: Callable[..., Any] = jnp.sin
    nothing: None = None


@dataclasses.dataclass(frozen=True)
class Carried:
    """A tree to carry.

    Args:
        name: what the test is called.
        make: builds the tree of an array of shape `(2,)`.
        step: makes the next tree and array.
        dtype: of all that is differentiated.
    """

    name: str
    make: Callable[[Any], Any]
    step: Step
    dtype: Any = jnp.float32

    def vector(self, *numbers: float) -> Any:
        """An array of the tree's dtype."""
        return jnp.asarray(numbers, self.dtype)


def _of_unit(unit: Unit, x: Any) -> Pair:
    y = unit.activation(unit.weight * x)
    return ec.tree_at(lambda unit: unit.weight, unit, unit.weight - unit.rate * y), y


def _of_dict(tree: dict[str, Any], x: Any) -> Pair:
    y = tree["f"](tree["w"]) * x
    return {**tree, "w": tree["w"] + y, "n": tree["n"] + 1}, y


def _of_named(tree: Named, x: Any) -> Pair:
    y = tree.activation(tree.weight + x)
    return tree._replace(weight=tree.weight * y), y


def _of_flax(tree: Parameters, x: Any) -> Pair:
    y = jnp.cos(tree.weight * x)
    return tree.replace(weight=tree.weight + y), y  # pyright: ignore


def _of_key(tree: dict[str, Any], x: Any) -> Pair:
    key, other = jax.random.split(tree["key"])
    y = jnp.tanh(tree["w"] * x) + jax.random.normal(other, x.shape, x.dtype)
    return {**tree, "key": key, "w": tree["w"] + y}, y


CARRIED = (
    Carried("Module", Unit, _of_unit),
    Carried("dict", lambda w: {"w": w, "f": jnp.exp, "n": jnp.array(0), "s": "s"}, _of_dict),
    Carried("NamedTuple", Named, _of_named),
    Carried("flax.struct", Parameters, _of_flax),
    Carried("typed key", lambda w: {"key": jax.random.key(3), "w": w, "s": "s"}, _of_key),
    Carried("bfloat16", Unit, _of_unit, jnp.bfloat16),
)
