"""Loops and branches mean what the same lines of Python mean, for trees of any kind."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import ecliptic as ec
from tests.unit.tree.nodes import Affine, Pair

few = settings(max_examples=12)

# Small whole numbers: sums of them are exact in every dtype.
dtypes = st.sampled_from([jnp.float32, jnp.bfloat16, jnp.int32, np.float32])


@st.composite
def arrays(draw, lead=()):
    """An array; `lead` are its first axes."""
    shape = (*lead, *draw(st.sampled_from([(), (2,), (1, 3)])))
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5 - draw(st.integers(0, 3))
    dtype = draw(dtypes)
    return numbers.astype(dtype) if dtype is np.float32 else jnp.asarray(numbers, dtype)


@st.composite
def keys(draw, lead=()):
    key = jax.random.key(draw(st.integers(0, 3)))
    return jax.random.split(key, lead) if lead else key


held = st.sampled_from(["relu", jnp.tanh, None, True, 7, 2.5, ec.Static("s")])


def trees(leaves):
    def nodes(children):
        return (
            st.lists(children, max_size=3)
            | st.dictionaries(st.sampled_from("abc"), children, max_size=3)
            | st.builds(Affine, children, children, st.sampled_from(["x", "y"]))
            | st.builds(Pair, children, children)
        )

    return st.recursive(leaves | held, nodes, max_leaves=6)


anything = trees(arrays() | keys())
# Python numbers that a step changes, wherever they are.
changing = st.lists(st.integers(0, 3) | st.just(0.5), max_size=2)


def add(leaf, i):
    """The next value of an array or a number; keys become other keys."""
    if not ec.is_array(leaf):
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.fold_in(leaf, 1) if leaf.ndim == 0 else leaf
    return leaf + jnp.asarray(i, leaf.dtype)


def advance(tree, i):
    return jax.tree.map(lambda leaf: add(leaf, i), tree)


def equal(found, meant):
    """Whether two results are the same; a number may have become an array."""
    assert jax.tree.structure(found) == jax.tree.structure(meant)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(meant), strict=True):
        if ec.is_array(one):
            other = jnp.asarray(other)
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
                one, other = jax.random.key_data(one), jax.random.key_data(other)
            assert np.array_equal(one, other)
        else:
            assert one is other or (type(one) is type(other) and one == other)
    return True


def stack(trees):
    """Stacks the arrays of trees that are otherwise the same."""
    return jax.tree.map(
        lambda *leaves: jnp.stack(leaves) if ec.is_array(leaves[0]) else leaves[0], *trees
    )


def element(tree, i):
    return jax.tree.map(lambda leaf: leaf[i] if ec.is_array(leaf) else leaf, tree)


@few
@given(anything, changing, trees(arrays((3,)) | keys((3,))), st.booleans())
def test_a_scan_is_a_loop_over_its_inputs(tree, numbers, xs, reverse):
    def step(carry, x):
        tree, numbers = carry
        return (advance(tree, 1), [n + 1 for n in numbers]), {"x": x, "tree": tree, "s": "s"}

    found, outputs = ec.filter_scan(step, (tree, numbers), xs, 3, reverse)
    carry, collected = (tree, numbers), []
    for i in range(3):
        carry, out = step(carry, element(xs, 2 - i if reverse else i))
        collected.append(out)
    assert equal(found, carry)
    assert equal(outputs, stack(collected[::-1] if reverse else collected))


@few
@given(anything, changing, st.integers(0, 3), st.sampled_from(["lax", "checkpointed", "bounded"]))
def test_a_while_loop_is_pythons(tree, numbers, steps, kind):
    carry = {"i": jnp.array(0), "tree": tree, "numbers": numbers}

    def goes_on(carry):
        return carry["i"] < steps

    def body(carry):
        return {
            "i": carry["i"] + 1,
            "tree": advance(carry["tree"], carry["i"]),
            "numbers": [n + 2 for n in carry["numbers"]],
        }

    found = ec.filter_while_loop(goes_on, body, carry, max_steps=5, kind=kind)
    while goes_on(carry):
        carry = body(carry)
    assert equal(found, carry)


@few
@given(anything, changing, st.integers(-1, 1), st.integers(0, 3))
def test_a_fori_loop_is_a_loop_over_a_range(tree, numbers, lower, size):
    def body(i, carry):
        tree, numbers = carry
        return advance(tree, i), [n - 1 for n in numbers]

    found = ec.filter_fori_loop(lower, lower + size, body, (tree, numbers))
    carry = tree, numbers
    for i in range(lower, lower + size):
        carry = body(i, carry)
    assert equal(found, carry)


@few
@given(anything, anything, st.booleans(), st.booleans())
def test_cond_is_if(tree, other, pred, traced):
    def true(tree, other):
        return {"tree": advance(tree, 1), "other": other, "n": 1, "s": "s"}

    def false(tree, other):
        return {"tree": tree, "other": advance(other, 2), "n": 2, "s": "s"}

    found = ec.filter_cond(jnp.array(pred) if traced else pred, true, false, tree, other)
    assert equal(found, (true if pred else false)(tree, other))


@few
@given(anything, st.integers(-2, 4))
def test_switch_is_a_choice_from_a_list(tree, index):
    branches = [lambda tree, i=i: (advance(tree, i), i, "s") for i in range(3)]
    found = ec.filter_switch(index, branches, tree)
    assert equal(found, branches[min(max(index, 0), 2)](tree))


@few
@given(trees(arrays((5,)) | keys((5,))), arrays((5,)), st.sampled_from([None, 1, 2, 5, 7]))
def test_map_is_a_list_comprehension(xs, more, batch_size):
    def f(x):
        return advance(x, 1), "s", 3

    found = ec.filter_map(f, (xs, more), batch_size=batch_size)
    assert equal(found, stack([f(element((xs, more), i)) for i in range(5)]))


@few
@given(trees(arrays((4,)) | keys((4,))), arrays((4,)), st.booleans())
def test_an_associative_scan_is_a_running_sum(elems, more, reverse):
    def join(one, other):
        return jax.tree.map(
            lambda a, b: a + b if ec.is_array(a) and not is_key(a) else a, one, other
        )

    def is_key(a):
        return jnp.issubdtype(a.dtype, jax.dtypes.prng_key)

    elems = (elems, more)
    found = ec.filter_associative_scan(join, elems, reverse=reverse)
    running = []
    for i in reversed(range(4)) if reverse else range(4):
        running.append(join(running[-1], element(elems, i)) if running else element(elems, i))
    assert equal(found, stack(running[::-1] if reverse else running))


# ------------------------------------------------------------------------------------------- vmap


@few
@given(
    trees(arrays((2,)) | keys((2,))),
    st.lists(st.integers(0, 3), min_size=2, max_size=2),
    st.sampled_from(["lax", "checkpointed", "bounded"]),
)
def test_a_batch_of_while_loops_is_a_stack_of_them(tree, steps, kind):
    def run(tree, steps):
        return ec.filter_while_loop(
            lambda carry: carry[0] < steps,
            lambda carry: (carry[0] + 1, advance(carry[1], carry[0])),
            (0, tree),
            max_steps=4,
            kind=kind,
        )

    found = ec.filter_vmap(run)(tree, jnp.array(steps))
    assert equal(found, stack([run(element(tree, i), n) for i, n in enumerate(steps)]))


@few
@given(trees(arrays((2,)) | keys((2,))), arrays((2, 3)), st.sampled_from(["lax", "checkpointed"]))
def test_a_batch_of_scans_is_a_stack_of_them(tree, xs, kind):
    def run(tree, xs):
        return ec.filter_scan(lambda carry, x: (advance(carry, 1), (x, "s")), tree, xs, kind=kind)

    assert equal(
        ec.filter_vmap(run)(tree, xs), stack([run(element(tree, i), xs[i]) for i in range(2)])
    )


@few
@given(trees(arrays((2,)) | keys((2,))), st.lists(st.booleans(), min_size=2, max_size=2))
def test_a_batch_of_branches_is_a_stack_of_them(tree, preds):
    def run(tree, pred):
        return ec.filter_cond(pred, lambda t: (advance(t, 1), "s"), lambda t: (t, "s"), tree)

    found = ec.filter_vmap(run)(tree, jnp.array(preds))
    assert equal(found, stack([run(element(tree, i), pred) for i, pred in enumerate(preds)]))
