"""Files of leaves: both read what both wrote."""

# ruff: noqa: D103 (the name of a program says what it is about)

import io
import tempfile
from pathlib import Path

import equinox
import jax
import jax.numpy as jnp
import numpy as np

import ecliptic.compat.equinox
from conformance.parity._table import Table

TABLE = Table("serialisation")
OTHER = {"equinox": ecliptic.compat.equinox, "ecliptic.compat.equinox": equinox}


def _key(seed=0):
    return jax.random.PRNGKey(seed)


def _tree(scale=1):
    return {
        "a": jnp.arange(3.0) * scale, "b": np.arange(2) * scale, "c": 2 * scale, "d": 1.5 * scale,
        "e": True, "f": 1j * scale, "g": "text", "h": None, "i": jnp.sin,
        "j": jnp.ones(2, jnp.bfloat16) * scale, "k": np.float32(3) * scale,
        "l": jnp.zeros((0, 2)), "m": jnp.array(4), "n": jnp.array([True, False]),
    }  # fmt: skip


def _written(eqx, tree, **options):
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, tree, **options)
    return file.getvalue()


def _read(eqx, data, like, **options):
    return eqx.tree_deserialise_leaves(io.BytesIO(data), like, **options)


def _trip(eqx, tree, like):
    return _read(eqx, _written(eqx, tree), like)


def _crossed(make):
    """Written by one library, read by the other."""

    def program(eqx):
        other = OTHER[eqx.__name__]
        return _read(eqx, _written(other, make(other, 0)), make(eqx, 1))

    return program


MODELS = {
    "a_tree": lambda eqx, seed: _tree(1 + seed),
    "an_mlp": lambda eqx, seed: eqx.nn.MLP(2, 1, 3, 2, key=_key(seed)),
    "a_conv": lambda eqx, seed: eqx.nn.Conv2d(1, 2, 3, key=_key(seed)),
    "an_attention": lambda eqx, seed: eqx.nn.MultiheadAttention(2, 4, key=_key(seed)),
    "a_sequential": lambda eqx, seed: eqx.nn.Sequential(
        [eqx.nn.Linear(2, 2, key=_key(seed)), eqx.nn.Dropout(0.1 + 0.5 * seed), eqx.nn.PReLU()]
    ),
    "a_norm": lambda eqx, seed: [eqx.nn.LayerNorm(2), eqx.nn.GroupNorm(1, 2), eqx.nn.RMSNorm(3)],
    "a_cell": lambda eqx, seed: [
        eqx.nn.GRUCell(1, 2, key=_key(seed)),
        eqx.nn.LSTMCell(1, 2, key=_key(seed)),
    ],
    "an_embedding": lambda eqx, seed: eqx.nn.Embedding(3, 2, key=_key(seed)),
    "a_weight_norm": lambda eqx, seed: eqx.nn.WeightNorm(eqx.nn.Linear(2, 2, key=_key(seed))),
}
for _name, _make in MODELS.items():
    TABLE.add(f"crossed_{_name}", _crossed(_make))


def _states(eqx, seed):
    return eqx.nn.make_with_state(
        lambda: [eqx.nn.BatchNorm(2, "b", mode=mode) for mode in ("ema", "batch")]
    )()


@TABLE
def crossed_states(eqx):
    other = OTHER[eqx.__name__]
    data = _written(other, jax.tree.map(lambda x: x + 1, _states(other, 0)[1]))
    return [jnp.asarray(leaf) for leaf in jax.tree.leaves(_read(eqx, data, _states(eqx, 0)[1]))]


def _path(eqx, name):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        eqx.tree_serialise_leaves(path, [jnp.ones(2)])
        loaded = eqx.tree_deserialise_leaves(str(path), [jnp.zeros(2)])
        return loaded, sorted(p.name for p in Path(folder).iterdir())


def _mutable(eqx):
    like = [jnp.zeros(2), 0]
    _trip(eqx, [jnp.ones(2), 3], like)
    return like


TABLE.rows(
    bytes_are_the_same=lambda eqx: _written(eqx, _tree()),
    bytes_of_a_layer=lambda eqx: _written(eqx, eqx.nn.Linear(2, 2, key=_key())),
    a_path=lambda eqx: _path(eqx, "model"),
    a_path_with_its_ending=lambda eqx: _path(eqx, "model.eqx"),
    a_path_with_another_ending=lambda eqx: _path(eqx, "model.bin"),
    a_path_that_does_not_exist=lambda eqx: eqx.tree_deserialise_leaves("/no/such/file", [1]),
    another_shape=lambda eqx: _trip(eqx, [jnp.ones(2)], [jnp.ones(3)]),
    another_dtype=lambda eqx: _trip(eqx, [jnp.ones(2)], [jnp.ones(2, int)]),
    another_type=lambda eqx: _trip(eqx, [1], [1.5]),
    too_few_leaves=lambda eqx: _trip(eqx, [jnp.ones(2)], [jnp.ones(2), jnp.ones(2)]),
    into_structs=lambda eqx: _trip(
        eqx, eqx.nn.Linear(2, 1, key=_key()),
        eqx.filter_eval_shape(eqx.nn.Linear, 2, 1, key=_key()),
    ),
    what_is_no_leaf_stays=lambda eqx: _trip(eqx, ["a", jnp.sin], ["b", jnp.cos]),
    nothing_is_changed=_mutable,
    a_spec=lambda eqx: len(_written(
        eqx, [jnp.ones(2), jnp.ones(2)],
        filter_spec=[eqx.default_serialise_filter_spec, lambda f, x: None],
    )),
    a_spec_that_is_read=lambda eqx: _read(
        eqx, _written(eqx, [jnp.ones(2)]), [jnp.zeros(2), 5],
        filter_spec=[eqx.default_deserialise_filter_spec, lambda f, x: x],
    ),
    is_leaf=lambda eqx: _written(
        eqx, [(1, 2)], filter_spec=lambda f, x: f.write(repr(x).encode()),
        is_leaf=lambda x: isinstance(x, tuple),
    ),
    a_spec_that_is_no_function=lambda eqx: _written(eqx, [1], filter_spec=True),
    a_key=lambda eqx: _trip(eqx, [jax.random.PRNGKey(3)], [jax.random.PRNGKey(0)]),
    a_typed_key=lambda eqx: _trip(eqx, [jax.random.key(3)], [jax.random.key(0)]),
    a_double=lambda eqx: _trip(eqx, [np.array(0.1)], [np.array(0.0)]),
    a_number_of_jax=lambda eqx: _trip(eqx, [jnp.array(2)], [jnp.array(0)]),
    default_writer_skips=lambda eqx: (lambda f: (
        eqx.default_serialise_filter_spec(f, "text"), f.getvalue()))(io.BytesIO()),
    default_reader_keeps=lambda eqx: eqx.default_deserialise_filter_spec(io.BytesIO(), "text"),
)  # fmt: skip
