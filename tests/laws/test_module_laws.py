"""Laws that all Modules obey, whatever their fields."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import InitVar
from typing import Any, ClassVar

import cloudpickle
import jax
from hypothesis import given
from hypothesis import strategies as st

import ecliptic as ec


class One(ec.Module):
    a: Any


class Two(ec.Module):
    left: Any
    mark: Any = ec.field(static=True)
    right: Any


class Hand(ec.Module):
    a: Any
    b: Any = 0

    def __init__(self, a):
        self.a = a


class Partly(ec.Module):
    a: Any
    note: Any = ec.field(compare=False)


class Empty(ec.Module):
    def f(self):
        pass


leaves = st.one_of(
    st.integers(-3, 3), st.booleans(), st.text(max_size=2), st.sampled_from([len, int])
)
hashables = st.one_of(leaves, st.none(), st.tuples(leaves, leaves))


def trees(leaf, *, containers):
    def grow(children):
        kinds = [
            st.builds(One, children),
            st.builds(Two, children, hashables, children),
            st.builds(Hand, children),
            st.builds(Partly, children, children),
            st.builds(Empty),
            st.builds(lambda: Empty().f),
            st.tuples(children, children),
            st.builds(ec.Static, hashables),
            st.builds(lambda x: jax.tree_util.Partial(max, x), children),
        ]
        if containers:
            kinds += [
                st.lists(children, max_size=3),
                st.dictionaries(st.text(max_size=2), children, max_size=3),
                st.builds(lambda x, y: ec.Partial(max, x, key=y), children, children),
            ]
        return st.one_of(kinds)

    return st.builds(One, st.recursive(st.one_of(leaf, st.none()), grow, max_leaves=8))


modules = trees(leaves, containers=True)
hashable_modules = trees(leaves, containers=False)


@given(modules)
def test_flatten_and_unflatten_are_inverse(m):
    parts, structure = jax.tree.flatten(m)
    rebuilt = jax.tree.unflatten(structure, parts)
    assert rebuilt == m
    assert jax.tree.structure(rebuilt) == structure
    assert all(x is y for x, y in zip(jax.tree.leaves(rebuilt), parts, strict=True))


@given(modules)
def test_paths_lead_to_their_leaves(m):
    pairs, structure = jax.tree_util.tree_flatten_with_path(m)
    assert structure == jax.tree.structure(m)
    assert [x for _, x in pairs] == jax.tree.leaves(m)
    for path, leaf in pairs:
        text = jax.tree_util.keystr(path)
        if "flat" not in text:  # `jax.tree_util.Partial` has children without names
            node = m
            for key in path:
                if isinstance(key, jax.tree_util.GetAttrKey):
                    node = getattr(node, key.name)
                elif isinstance(key, jax.tree_util.DictKey):
                    node = node[key.key]
                elif isinstance(key, jax.tree_util.SequenceKey):
                    node = node[key.idx]
                else:
                    break
            else:
                assert node is leaf


@given(modules)
def test_mapping_the_identity_changes_nothing(m):
    assert jax.tree.map(lambda x: x, m) == m


@given(modules)
def test_mapping_composes(m):
    both = jax.tree.map(lambda x: [str(x)], m)
    apart = jax.tree.map(lambda x: [x], jax.tree.map(str, m))
    assert both == apart


@given(modules)
def test_copies_are_equal_with_equal_structures(m):
    structure = jax.tree.structure(m)
    for other in (
        copy.copy(m),
        copy.deepcopy(m),
        pickle.loads(pickle.dumps(m)),
        cloudpickle.loads(cloudpickle.dumps(m)),
    ):
        assert other == m
        assert jax.tree.structure(other) == structure


@given(modules, modules)
def test_equality_is_symmetric_and_never_says_nothing(x, y):
    assert x == x
    assert (x == y) is (y == x)
    assert (x == y) is not (x != y)


@given(st.lists(hashable_modules, min_size=2, max_size=6))
def test_equal_modules_hash_equal(ms):
    for x in ms:
        assert hash(x) == hash(copy.deepcopy(x))
        for y in ms:
            if x == y:
                assert hash(x) == hash(y)


@given(hashable_modules)
def test_equal_structures_hash_equal(m):
    x, y = jax.tree.structure(m), jax.tree.structure(copy.deepcopy(m))
    assert x == y
    assert hash(x) == hash(y)


@given(modules)
def test_partition_and_combine_are_inverse(m):
    chosen, rest = ec.partition(m, lambda x: isinstance(x, int))
    assert ec.combine(chosen, rest) == m


# A Module and a dataclass with the same body have the same constructor.

INIT_VARIABLE = InitVar[int]
kinds = st.sampled_from(["field", "default", "factory", "later", "later_factory", "class", "var"])


@dataclasses.dataclass
class Line:
    """One annotated line of a class body."""

    name: str
    kind: str
    kw_only: bool

    def write(self, body: dict[str, Any], make_field) -> None:
        annotation = {"class": ClassVar[int], "var": INIT_VARIABLE}.get(self.kind, int)
        body["__annotations__"][self.name] = annotation
        value = sum(map(ord, self.name))
        if self.kind == "class":
            body[self.name] = value
            return
        options: dict[str, Any] = {"kw_only": self.kw_only}
        if self.kind == "default":
            options["default"] = value
        elif self.kind == "factory":
            options["default_factory"] = lambda: [value]
        elif self.kind == "later":
            options |= {"default": value, "init": False}
        elif self.kind == "later_factory":
            options |= {"default_factory": lambda: [value], "init": False}
        body[self.name] = make_field(**options)


lines = st.lists(
    st.builds(Line, st.sampled_from("abcdef"), kinds, st.booleans()),
    max_size=5,
    unique_by=lambda line: line.name,
)


def _build(base, levels, make_field, decorate):
    cls = base
    for number, level in enumerate(levels):
        body: dict[str, Any] = {"__annotations__": {}, "__module__": __name__, "__qualname__": "C"}
        for line in level:
            line.write(body, make_field)

        def __post_init__(self, *given):
            object.__setattr__(self, "_given", given)

        body["__post_init__"] = __post_init__
        cls = decorate(type(cls)(f"C{number}", (cls,), body))
    return cls


def _outcome(function):
    try:
        return function()
    except TypeError as error:
        # The name of the class may differ, what is wrong may not.
        return str(error).split("()")[-1]


def _contents(cls, args, kwargs):
    made = cls(*args, **kwargs)
    return {f.name: getattr(made, f.name) for f in dataclasses.fields(cls)}, made._given


@given(
    st.lists(lines, min_size=1, max_size=3),
    st.lists(st.integers(), max_size=5),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(), max_size=5),
)
def test_the_constructor_is_that_of_the_dataclass(levels, args, kwargs):
    def twin():
        return _build(object, levels, dataclasses.field, dataclasses.dataclass)

    def module():
        return _build(ec.Module, levels, ec.field, lambda cls: cls)

    expected, got = _outcome(twin), _outcome(module)
    if isinstance(expected, str):
        assert got == expected
        return
    assert inspect.signature(got) == inspect.signature(expected)
    assert [f.name for f in dataclasses.fields(got)] == [
        f.name for f in dataclasses.fields(expected)
    ]
    assert _outcome(lambda: _contents(got, args, kwargs)) == _outcome(
        lambda: _contents(expected, args, kwargs)
    )
    made = _outcome(lambda: got(*args, **kwargs))
    if isinstance(made, ec.Module):
        assert jax.tree.leaves(made) == jax.tree.leaves(
            [getattr(made, f.name) for f in dataclasses.fields(got)]
        )
