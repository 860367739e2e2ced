"""`tree_summary`: a model as a table, compared with counts by hand."""

import io
import re
import threading

import equinox
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rich.console

import ecliptic as ec
from ecliptic import nn
from ecliptic.view import tree_summary

KEY = jax.random.key(0)
X = jnp.ones(2)


class Tied(ec.Module):
    shared: nn.Shared

    def __init__(self):
        parts = nn.Embedding(10, 4, key=KEY), nn.Linear(4, 10, use_bias=False, key=KEY)
        self.shared = nn.Shared(parts, lambda p: p[1].weight, lambda p: p[0].weight)

    def __call__(self, word):
        embedding, linear = self.shared()
        return linear(embedding(word))


class OfEquinox(equinox.Module):
    inner: equinox.nn.Linear
    size: int = equinox.field(static=True)

    def __call__(self, x):
        return jnp.tanh(self.inner(x))


@flax.struct.dataclass
class OfFlax:
    weight: jax.Array
    bias: jax.Array
    name: str = flax.struct.field(pytree_node=False, default="of flax")

    def __call__(self, x):
        return self.weight @ x + self.bias


def batch_norm():
    model, state = nn.make_with_state(nn.BatchNorm)(4, axis_name="batch", mode="ema")
    return model, state


# Weights and biases, layer by layer.
BY_HAND = {
    "MLP": (lambda: nn.MLP(2, 3, 8, 2, key=KEY), (2 * 8 + 8) + (8 * 8 + 8) + (8 * 3 + 3)),
    "Conv": (
        lambda: [nn.Conv2d(1, 4, 3, key=KEY), nn.Conv2d(4, 2, 3, use_bias=False, key=KEY)],
        (1 * 4 * 3 * 3 + 4) + 4 * 2 * 3 * 3,
    ),
    "attention": (lambda: nn.MultiheadAttention(2, 6, key=KEY), 4 * 6 * 6),
    "attention with biases": (
        lambda: nn.MultiheadAttention(
            2, 4, use_query_bias=True, use_key_bias=True, use_value_bias=True,
            use_output_bias=True, key=KEY,
        ),
        4 * (4 * 4 + 4),
    ),
    # In the state are a flag, means and variances.
    "BatchNorm": (lambda: batch_norm()[0], 4 + 4),
    "BatchNorm and state": (batch_norm, (4 + 4) + (1 + 4 + 4)),
    "Shared": (Tied, 10 * 4),
    "Equinox": (lambda: OfEquinox(equinox.nn.Linear(2, 3, key=KEY), size=3), 2 * 3 + 3),
    "flax.struct": (lambda: OfFlax(jnp.ones((3, 2)), jnp.ones(3)), 3 * 2 + 3),
    "dict": (lambda: {"a": jnp.ones(3), "b": [np.ones((2, 2)), 1.0, "x"]}, 3 + 2 * 2),
    "one array in two places": (lambda: [X, (X, X)], 2),
    "nothing": (lambda: (), 0),
    "a leaf": (lambda: X, 2),
}  # fmt: skip


@pytest.mark.parametrize("case", BY_HAND)
def test_parameters_are_those_counted_by_hand(case):
    make, count = BY_HAND[case]
    summary = tree_summary(make())
    assert summary.total.parameters == count
    assert str(summary).splitlines()[-1 - ("places" in case)].startswith(f"{count} parameters")


# (Descriptions of one array in two places are of two arrays.)
@pytest.mark.parametrize("case", [case for case in BY_HAND if "two places" not in case])
def test_a_model_without_memory_counts_alike(case):
    model = BY_HAND[case][0]()
    structs = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype) if ec.is_array(x) else x, model
    )
    assert list(map(numbers, tree_summary(structs))) == list(map(numbers, tree_summary(model)))


def numbers(row):
    return row.path, row.parameters, row.trainable, row.bytes, row.dtypes


def outputs(summary):
    return {
        row.path: [ec.tree_pformat(out, struct_as_array=True) for out in row.outputs]
        for row in summary
        if row.outputs
    }


MLP_OUTPUTS = {
    "model": ["f32[3]"],
    "model.layers[0]": ["f32[8]"],
    "model.layers[1]": ["f32[8]"],
    "model.layers[2]": ["f32[3]"],
}


def test_the_text_is_a_table():
    lines = str(tree_summary(nn.MLP(2, 1, 8, 1, key=KEY), X, leaves=False)).splitlines()
    assert lines[1] == lines[5] == "─" * max(map(len, lines))
    assert [*lines[:1], *lines[2:5], *lines[6:]] == [
        "path             type    output  parameters  bytes  dtype    trainable  static",
        "model            MLP     f32[1]          33  132 B  float32  yes        "
        "use_bias=True, use_final_bias=True, in_size=2, out_size=1, …",
        "model.layers[0]  Linear  f32[8]          24   96 B  float32  yes        "
        "in_features=2, out_features=8, use_bias=True",
        "model.layers[1]  Linear  f32[1]           9   36 B  float32  yes        "
        "in_features=8, out_features=1, use_bias=True",
        "33 parameters (132 B): 33 trainable, 0 not",
    ]


@pytest.mark.parametrize(
    "call",
    [
        None,
        lambda model, x: jax.vmap(model)(jnp.stack([x, x])),
        lambda model, x: ec.filter_vmap(model)(jnp.stack([x, x])),
        lambda model, x: ec.filter_jit(model)(x),
        lambda model, x: ec.filter_checkpoint(model)(x),
        lambda model, x: ec.filter_grad(lambda m: m(x).sum())(model),
        lambda model, x: ec.filter_scan(lambda c, _: (c, model(c)), x, None, length=2),
        lambda model, x: ec.filter_scan(lambda m, x: (m, m(x)), model, jnp.stack([x, x])),
    ],
)
def test_the_parts_are_found_under_transformations(call):
    found = outputs(tree_summary(nn.MLP(2, 3, 8, 2, key=KEY), X, call=call))
    assert {**found, "model": MLP_OUTPUTS["model"]} == MLP_OUTPUTS


class Blocks(ec.Module):
    blocks: list
    stacked: nn.Linear

    def __init__(self):
        self.blocks = [nn.Linear(4, 4, key=KEY) for _ in range(2)] + [nn.Linear(4, 3, key=KEY)]
        self.stacked = ec.filter_vmap(lambda key: nn.Linear(3, 3, key=key))(
            jax.random.split(KEY, 2)
        )

    @ec.filter_jit
    def __call__(self, x):
        for block in self.blocks:
            x = ec.filter_checkpoint(block)(x)
        return ec.filter_scan(lambda x, layer: (layer(x), None), x, self.stacked)[0]


def test_parts_that_are_built_anew_inside_are_told_apart():
    found = outputs(tree_summary(Blocks(), jnp.ones(4)))
    assert found == {
        "model": ["f32[3]"],
        "model.blocks[0]": ["f32[4]"],
        "model.blocks[1]": ["f32[4]"],
        "model.blocks[2]": ["f32[3]"],
        "model.stacked": ["f32[3]"],
    }


def test_what_was_compiled_before_is_seen_too():
    model = Blocks()
    model(jnp.ones(4))
    assert outputs(tree_summary(model, jnp.ones(4))) == outputs(tree_summary(model, jnp.ones(4)))
    assert "model.blocks[0]" in outputs(tree_summary(model, jnp.ones(4)))


@pytest.mark.parametrize("case", ["Equinox", "flax.struct"])
def test_models_of_other_libraries_are_called(case):
    model = BY_HAND[case][0]()
    before = dict(vars(type(model)))
    found = outputs(tree_summary(model, X))
    assert found["model"] == ["f32[3]"]
    assert dict(vars(type(model))) == before


@pytest.mark.parametrize("wrap", [lambda m: m.__call__, ec.Partial, ec.filter_jit, ec.filter_vmap])
def test_the_parts_of_a_wrapped_model_are_called(wrap):
    x = jnp.ones((1, 2)) if wrap is ec.filter_vmap else X
    found = outputs(tree_summary(wrap(nn.MLP(2, 3, 8, 1, key=KEY)), x))
    assert [out for path, out in found.items() if "layers" in path] == [["f32[8]"], ["f32[3]"]]


def test_a_call_of_a_base_class_is_a_part_of_the_call():
    class Twice(nn.Linear):
        def __call__(self, x):
            return super().__call__(x), x

    found = outputs(tree_summary([Twice(2, 3, key=KEY)], call=lambda m: m[0](X)))
    assert found["model[0]"] == ["(f32[3], f32[2])"]


def test_arrays_that_jax_does_not_have_are_left_alone():
    tree = {"words": np.array(["a", "b"]), "x": X}
    summary = tree_summary(tree, call=lambda tree: tree["x"])
    assert outputs(summary) == {"model": ["f32[2]"]}
    assert summary.total.parameters == 4


def test_a_shared_part_has_an_output():
    found = outputs(tree_summary(Tied(), 3))
    assert found["model.shared.pytree[0]"] == ["f32[4]"]
    assert found["model.shared.pytree[1]"] == ["f32[10]"]


def test_a_part_that_is_called_with_other_shapes_has_several_outputs():
    summary = tree_summary(
        [jnp.tanh, nn.Identity()], call=lambda m: (m[1](X), m[1](X[:1]), m[1](X))
    )
    assert outputs(summary)["model[1]"] == ["f32[2]", "f32[1]"]
    assert "f32[2] or f32[1]" in str(summary)


def test_a_state_stays_valid():
    model, state = batch_norm()
    batch = jax.ShapeDtypeStruct((3, 4), jnp.float32)
    axes = dict(axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    summary = tree_summary(
        model, batch, state, call=lambda model, x, state: jax.vmap(model, **axes)(x, state)
    )
    assert not state.is_used
    assert "(f32[3,4], State(...))" in str(summary)


def test_keywords_are_passed_on():
    class Keyed(ec.Module):
        def __call__(self, x, *, key):
            return jax.random.normal(key, (5,))

    assert outputs(tree_summary(Keyed(), X, key=KEY)) == {"model": ["f32[5]"]}


def test_classes_are_as_before_after_an_error():
    layer = nn.Linear(3, 3, key=KEY)
    before = vars(nn.Linear)["__call__"]
    with pytest.raises(ec.errors.ShapeError, match="in_features") as caught:
        tree_summary(nn.Sequential([nn.Identity(), layer]), X)
    assert vars(nn.Linear)["__call__"] is before
    assert any("`model.layers[1]`" in note for note in caught.value.__notes__)


def test_other_threads_see_their_own_calls():
    layer, seen = nn.Linear(2, 3, key=KEY), []

    def call(model, x):
        thread = threading.Thread(target=lambda: seen.append(layer(jnp.ones(2)).shape))
        thread.start()
        thread.join()
        return model(x)

    assert outputs(tree_summary(layer, X, call=call)) == {"model": ["f32[3]"]}
    assert seen == [(3,)]


def test_what_is_trainable_is_a_filter_spec():
    model = {"a": X, "b": jnp.arange(3), "c": jnp.ones((), jnp.bfloat16)}
    rows = {row.path: row for row in tree_summary(model, root="m")}
    assert [rows[path].trainable for path in ("m['a']", "m['b']", "m['c']", "m")] == [2, 0, 1, 3]
    summary = tree_summary(model, filter_spec={"a": False, "b": False, "c": True})
    assert summary.total.trainable == 1
    assert [line.split()[-1] for line in str(summary).splitlines()[2:6]] == [
        "partly", "no", "no", "yes",
    ]  # fmt: skip


def test_the_row_of_the_whole_has_the_totals():
    model = {"a": jnp.ones((300, 1000)), "k": KEY, "n": np.ones(2, np.int8)}
    total = tree_summary(model).total
    assert (total.parameters, total.bytes) == (300_003, 1_200_000 + 8 + 2)
    assert total.dtypes == ("float32", "key<fry>", "int8")
    assert str(tree_summary(model)).endswith(
        "300,003 parameters (1.1 MiB): 300,000 trainable, 3 not"
    )


def test_static_fields_and_leaves_that_are_no_arrays_are_static_values():
    rows = {row.path: row for row in tree_summary({"l": nn.Dropout(0.5), "x": [1, "a"]})}
    assert rows["model"].static == {"['x'][0]": 1, "['x'][1]": "a"}
    assert rows["model['l']"].static == {"p": 0.5, "inference": False}
    assert tree_summary(OfFlax(X, X)).total.static == {"name": "of flax"}


def test_the_second_place_of_an_array_says_where_the_first_is():
    *_, second = tree_summary({"a": X, "b": X})
    assert (second.path, second.same_as, second.parameters) == ("model['b']", "model['a']", 2)


def test_depth_folds():
    model = [nn.MLP(2, 1, 8, 1, key=KEY)]
    assert len(tree_summary(model)) == 8
    for depth, lines in ((0, 5), (1, 6), (2, 8), (3, 12)):
        assert len(str(tree_summary(model, depth=depth)).splitlines()) == lines


def test_rich_prints_a_table():
    console = rich.console.Console(width=120, record=True, file=io.StringIO())
    console.print(tree_summary(nn.Linear(2, 3, key=KEY), X))
    text = console.export_text()
    assert "model.weight" in text
    assert "9 parameters (36 B): 9 trainable" in text


def test_html_folds_below_the_depth_and_escapes():
    html = tree_summary({"<b>": nn.MLP(2, 1, 8, 1, key=KEY)}, depth=1)._repr_html_()
    assert html.count("<details open>") == 1
    assert html.count("<details>") == 3
    assert html.count("</details>") == 4
    assert "&#x27;&lt;b&gt;&#x27;" in html
    assert "http" not in html


def test_html_has_room_for_the_longest_path_with_its_triangle_and_button():
    html = tree_summary(nn.MLP(2, 1, 8, 1, key=KEY))._repr_html_()
    width = int(re.search(r"--columns: (\d+)ch", html)[1])
    indent = 2 * 2  # a leaf of a layer of the model
    assert width >= len("▸ ") + indent + len("model.layers[0].weight") + len(" copy")
    # Where there is no room (the column is as wide as it may be), a button begins no line.
    assert re.search(r"\.ecliptic-summary button \{\s+all: unset; position: absolute", html)
