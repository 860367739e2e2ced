"""Copies, pickles, and classes that travel by value."""

import copy
import math
import os
import pickle
import subprocess
import sys
import textwrap
from typing import Any, Generic, TypeVar

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import FrozenError


class Inner(ec.Module):
    w: Any

    def f(self, x):
        return self.w * x


class Outer(ec.Module):
    inner: Inner
    parts: list
    size: int = ec.field(static=True, default=3)
    fn: Any = None


class Slotted(ec.Module):
    __slots__ = ("a",)
    a: Any
    b: Any


class Base(ec.Module):
    w: Any
    log: list = ec.field(default_factory=list)

    def __check_init__(self):
        if self.w is None:
            raise ValueError("no w")


def make():
    return Outer(Inner(jnp.arange(2.0)), [Inner(1), "text"], size=4, fn=len)


WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "cloudpickle": lambda m: cloudpickle.loads(cloudpickle.dumps(m)),
    **{
        f"pickle{p}": lambda m, p=p: pickle.loads(pickle.dumps(m, protocol=p))
        for p in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_is_equal_and_has_an_equal_structure(way):
    m = make()
    other = WAYS[way](m)
    assert other is not m
    assert other == m
    assert type(other) is Outer
    assert jax.tree.structure(other) == jax.tree.structure(m)


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_is_frozen(way):
    with pytest.raises(FrozenError):
        WAYS[way](make()).size = 5


@pytest.mark.parametrize("way", [w for w in WAYS if w not in ("pickle0", "pickle1")])
def test_a_copy_of_a_module_with_slots_is_equal(way):
    m = Slotted(1, [2])
    other = WAYS[way](m)
    assert other == m
    assert "a" not in other.__dict__
    assert jax.tree.structure(other) == jax.tree.structure(m)


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_a_bound_method_is_equal(way):
    f = Inner(2).f
    other = WAYS[way](f)
    assert other == f
    assert other(3) == 6


@pytest.mark.parametrize("way", WAYS)
def test_copies_of_partial_and_static_are_equal(way):
    m = Outer(ec.Partial(max, 1, key=None), [ec.Static((1, "x"))])
    other = WAYS[way](m)
    assert other == m
    assert jax.tree.structure(other) == jax.tree.structure(m)


def test_a_shallow_copy_shares_children_and_a_deep_one_does_not():
    m = make()
    assert copy.copy(m).parts is m.parts
    assert copy.deepcopy(m).parts is not m.parts


def test_copying_does_not_initialise_again():
    calls = []

    class M(ec.Module):
        a: Any

        def __init__(self):
            calls.append(1)
            self.a = 1

    m = M()
    assert copy.deepcopy(copy.copy(m)) == m
    assert calls == [1]


def test_shared_parts_stay_shared_in_a_deep_copy():
    shared = Inner([1])
    left, right = copy.deepcopy([shared, shared])
    assert left is right


def test_a_user_getstate_and_setstate_are_used():
    class M(ec.Module):
        a: Any

        def __getstate__(self):
            return {"stored": self.a}

        def __setstate__(self, state):
            object.__setattr__(self, "a", state["stored"] + 1)

    assert copy.copy(M(1)).a == 2


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is new in Python 3.13")
def test_copy_replace_makes_a_changed_copy():
    assert copy.replace(Inner(1), w=2) == Inner(2)  # pyright: ignore[reportAttributeAccessIssue]


def test_structures_of_arrays_can_be_pickled_with_their_modules():
    m = make()
    leaves, structure = jax.tree.flatten(m)
    assert jax.tree.unflatten(structure, pickle.loads(pickle.dumps(leaves))) == m


def local_classes():
    """Classes that can travel by value only."""
    T = TypeVar("T")

    class Plain(ec.Module):
        a: Any
        b: Any = ec.field(converter=str, default=1)
        s: Any = ec.field(static=True, default="s")

        def f(self):
            return self.a

    class Hand(Base, Generic[T]):
        more: Any = 7

        def __init__(self, w):
            self.w = w

        def both(self):
            return self.w, self.more

    class Empty(Plain):
        pass

    return Plain, Hand, Empty


def test_a_local_class_travels_by_value_in_one_process():
    for cls in local_classes():
        m = cls(1)
        other = cloudpickle.loads(cloudpickle.dumps(m))
        assert other == m
        assert jax.tree.structure(other) == jax.tree.structure(m)


DUMP = """
    import sys, abc, cloudpickle, jax.numpy as jnp
    from typing import Any, Generic, TypeVar
    import ecliptic as ec

    T = TypeVar("T")

    class Plain(ec.Module):
        a: Any
        b: Any = ec.field(converter=str, default=1)
        s: Any = ec.field(static=True, default="s")
        made: list = ec.field(default_factory=list)

        def f(self, x):
            "Doc."
            return self.a * x

        def again(self):
            return Plain(self.a)

    class Hand(Plain, Generic[T]):
        more: Any = 7

        def __init__(self, a):
            self.a = a

        def __check_init__(self):
            if self.a is None:
                raise ValueError("no a")

        @property
        def double(self):
            return 2 * self.a

    class Heir(Hand):
        def sup(self):
            return super().f(2)

    class Node(ec.Module):
        a: Any

        def __init__(self, a):
            self.a = a

        def kid(self):
            return Kid(self.a)

    class Kid(Node):
        more: Any = 5

    class AbstractThing(ec.Module, strict=None):
        v: ec.AbstractVar[int]

        @abc.abstractmethod
        def g(self): ...

    class Thing(AbstractThing):
        v: int
        note: Any = ec.field(compare=False, default=None)

        def g(self):
            return self.v

    objects = dict(
        plain=Plain(2), hand=Hand(3), heir=Heir(4), node=Node(1), kid=Kid(2),
        thing=Thing(5, "n"), equal=Thing(5, "m"), other=Thing(6), abstract=AbstractThing,
        method=Plain(2).f, array=Plain(jnp.arange(3.0)),
    )
    with open(sys.argv[1], "wb") as file:
        cloudpickle.dump(objects, file)
"""

LOAD = """
    import sys, pickle, copy, dataclasses, inspect, jax, jax.numpy as jnp
    from typing import Any
    import cloudpickle
    import ecliptic as ec

    with open(sys.argv[1], "rb") as file:
        o = pickle.load(file)
    relay = cloudpickle.dumps(o)
    assert o["equal"] == o["thing"] and o["other"] != o["thing"]
    plain, hand, heir, thing = o["plain"], o["hand"], o["heir"], o["thing"]
    Plain, Hand, Heir, Thing = map(type, (plain, hand, heir, thing))

    assert [f.name for f in dataclasses.fields(Plain)] == ["a", "b", "s", "made"]
    assert jax.tree.leaves(plain) == [2, "1"], jax.tree.leaves(plain)
    assert jax.tree.map(lambda x: x, plain) == plain
    assert plain == Plain(2) and plain != Plain(3)
    assert jax.tree.structure(plain) == jax.tree.structure(Plain(2))
    assert plain == copy.deepcopy(plain)
    assert plain.f(3) == 6 and isinstance(plain.f, ec.Module) and plain.f.__doc__ == "Doc."
    assert plain.again() == plain and type(plain.again()) is Plain
    assert o["method"](3) == 6 and o["method"] == plain.f
    assert str(inspect.signature(Plain)).startswith("(a: Any, b: Any = 1, s: Any = 's'")
    assert jax.tree.leaves(Plain(1, made=[5])) == [1, "1", 5]
    assert dataclasses.replace(plain, a=9).a == 9
    keys = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(plain)]
    assert keys == [".a", ".b"], keys
    try:
        plain.a = 1
    except dataclasses.FrozenInstanceError:
        pass
    else:
        raise SystemExit("not frozen")

    assert jax.tree.leaves(hand) == [3, "1", 7] == jax.tree.leaves(Hand(3))
    assert hand.double == 6 and hand.f(2) == 6
    assert (heir.sup(), Heir(4), Heir(5).sup()) == (8, heir, 10)
    for cls in (Hand, Heir):
        try:
            cls(None)
        except ValueError as error:
            assert "no a" in str(error)
        else:
            raise SystemExit("not checked")

    assert thing.g() == 5 and thing == Thing(5, "other")
    try:
        o["abstract"]()
    except TypeError as error:
        assert "abstract" in str(error)
    else:
        raise SystemExit("not abstract")

    assert o["node"].kid() == type(o["kid"])(1)
    assert jax.tree.leaves(o["kid"]) == [2, 5] == jax.tree.leaves(type(o["kid"])(2))

    class Sub(Plain):
        z: Any = 0

    class SubHand(Hand):
        z: Any = 1

    assert jax.tree.leaves(Sub(1)) == [1, "1", 0]
    assert jax.tree.leaves(SubHand(1)) == [1, "1", 7, 1]
    try:
        Sub()
    except TypeError as error:
        assert "missing 1 required positional argument" in str(error)
    else:
        raise SystemExit("no argument was required")
    assert o["array"].f(2.0)[2] == 4.0

    with open(sys.argv[1], "rb") as file:
        again = pickle.load(file)
    assert type(again["heir"]) is Heir
    assert again["plain"] == plain and again["heir"] == heir
    assert jax.tree.structure(plain) == jax.tree.structure(again["plain"])
    assert pickle.loads(relay)["heir"] == heir
    print("loaded")
"""


def run(program, path):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program), str(path)],
        env={**os.environ, "JAX_NUMPY_DTYPE_PROMOTION": "standard"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_classes_of_main_travel_by_value_to_another_process(tmp_path):
    path = tmp_path / "objects"
    dumped = run(DUMP, path)
    assert dumped.returncode == 0, dumped.stderr
    loaded = run(LOAD, path)
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.strip() == "loaded"


@pytest.mark.parametrize(
    "function",
    [
        jax.nn.relu, jax.nn.silu, jax.nn.softplus, jax.nn.gelu, jnp.tanh, jnp.add, jax.lax.tanh,
        jnp.linalg.norm, len, math.sin, np.sin, jax.numpy.float32,
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)),
     lambda m: cloudpickle.loads(cloudpickle.dumps(m))],
    ids=["copy", "deepcopy", "pickle", "cloudpickle"],
)  # fmt: skip
def test_a_function_that_jax_made_stays_the_same_function(function, copied):
    m = ec.Partial(len, function, [function], {"f": (function, None)}, inner=ec.Partial(function))
    again = copied(m)
    assert again == m
    assert jax.tree.structure(again) == jax.tree.structure(m)
    assert jax.tree.leaves(again)[2] is function


def test_a_function_that_jax_made_under_no_name_is_left_to_python():
    m = ec.Partial(jax.custom_jvp(lambda x: x))
    assert copy.copy(m) == m
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(m)
