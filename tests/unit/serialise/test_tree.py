"""Writing the leaves of a tree and reading them back."""

import io

import equinox
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.errors import SerialisationError, StructureError
from ecliptic.serialise import (
    default_deserialise_filter_spec,
    default_serialise_filter_spec,
    tree_deserialise_leaves,
    tree_serialise_leaves,
)
from ecliptic.tree import tree_equal

COMMON = {  # leaves that Equinox can write and read as well
    "bool": True,
    "int": 2**40,
    "float": 1e-8,
    "complex": 1 + 2j,
    "jax array": jnp.arange(6.0).reshape(2, 3),
    "scalar": jnp.asarray(3),
    "empty": jnp.zeros((0, 3)),
    "bfloat16": jnp.arange(3, dtype=jnp.bfloat16),
    "bfloat16 scalar": jnp.asarray(1.5, jnp.bfloat16),
    "complex64": jnp.ones(2, jnp.complex64),
    "numpy array": np.arange(3.0),
    "fortran order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big endian": np.arange(3, dtype=">f4"),
    "words": np.array(["one", "two"]),
    "numpy float": np.float64(1e-8),
    "numpy int": np.int64(2**40),
    "numpy bool": np.bool_(True),
    "bfloat16 number": ml_dtypes.bfloat16(1.5),
    "date": np.datetime64("2020-02-29"),
    "function": jnp.tanh,
    "text": "text",
    "none": None,
}
MORE = {
    "float8": jnp.arange(3, dtype=jnp.float8_e4m3fn),
    "int4": jnp.arange(3, dtype=jnp.int4),
    "numpy bfloat16": np.arange(3, dtype=ml_dtypes.bfloat16),
    "numpy float8": np.arange(3, dtype=ml_dtypes.float8_e5m2),
    "nan": float("nan"),
}


def _blank(leaf):
    """A leaf of the same kind with another value."""
    if isinstance(leaf, jax.Array):
        return jnp.zeros_like(leaf)
    if isinstance(leaf, np.ndarray | np.generic):
        return np.zeros_like(leaf)[()]
    return type(leaf)() if isinstance(leaf, bool | int | float | complex) else leaf


def _bytes(tree, serialise=tree_serialise_leaves, **options):
    f = io.BytesIO()
    serialise(f, tree, **options)
    return f.getvalue()


def _read(data, like, deserialise=tree_deserialise_leaves, **options):
    f = io.BytesIO(data)
    result = deserialise(f, like, **options)
    assert f.read() == b""
    return result


def _same(one, other):
    assert type(one) is type(other)
    assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
    np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


class TestBytes:
    @pytest.mark.parametrize("name", COMMON)
    def test_the_bytes_are_those_of_equinox(self, name):
        leaf = COMMON[name]
        assert _bytes([leaf]) == _bytes([leaf], equinox.tree_serialise_leaves)

    def test_equinox_reads_what_is_written_here(self, getkey):
        tree = (COMMON, nn.MLP(2, 2, 4, 2, key=getkey()))
        like = jax.tree.map(_blank, tree)
        loaded = _read(_bytes(tree), like, equinox.tree_deserialise_leaves)
        for one, other in zip(jax.tree.leaves(loaded), jax.tree.leaves(tree), strict=True):
            if not callable(one):
                np.testing.assert_array_equal(np.asarray(one), np.asarray(other))

    def test_a_model_of_equinox_is_loaded_into_one_of_the_same_kind(self, getkey):
        key, x = getkey(), jnp.ones(2)
        theirs = equinox.nn.MLP(2, 2, 4, 2, key=key)
        data = _bytes(theirs, equinox.tree_serialise_leaves)
        ours = _read(data, nn.MLP(2, 2, 4, 2, key=getkey()))
        np.testing.assert_array_equal(ours(x), theirs(x))


class TestRoundTrip:
    @pytest.mark.parametrize("name", [*COMMON, *MORE])
    def test_a_leaf_comes_back_with_type_dtype_and_value(self, name):
        leaf = {**COMMON, **MORE}[name]
        loaded = _read(_bytes([leaf]), [_blank(leaf)])[0]
        if callable(leaf) or leaf is None or isinstance(leaf, str):
            assert loaded is leaf
        else:
            _same(loaded, leaf)

    def test_many_kinds_of_leaves_do_not_shift_each_other(self):
        tree = {**COMMON, **MORE}
        loaded = _read(_bytes(tree), jax.tree.map(_blank, tree))
        for name in tree:
            if tree[name] is not None and not callable(tree[name]):
                _same(loaded[name], tree[name])

    @pytest.mark.parametrize("implementation", ["threefry2x32", "rbg"])
    @pytest.mark.parametrize("shape", [(), (3,)])
    def test_typed_keys_come_back(self, implementation, shape):
        key = jax.random.key(3, impl=implementation)
        key = jax.random.split(key, 3) if shape else key
        data = _bytes(key)
        for like in (jnp.zeros_like(key), jax.ShapeDtypeStruct(key.shape, key.dtype)):
            loaded = _read(data, like)
            assert loaded.dtype == key.dtype
            np.testing.assert_array_equal(jax.random.key_data(loaded), jax.random.key_data(key))

    @pytest.mark.parametrize("value", [1.0, 2, 1j])
    def test_weak_types_are_kept(self, value):
        weak = jnp.broadcast_to(jnp.asarray(value), (2,))
        like = jnp.broadcast_to(jnp.asarray(type(value)(0)), (2,))
        loaded = _read(_bytes(weak), like)
        assert loaded.weak_type
        np.testing.assert_array_equal(loaded, weak)

    @pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.int8])
    def test_a_skeleton_needs_no_values(self, dtype):
        x = jnp.arange(3, dtype=dtype)
        _same(_read(_bytes(x), jax.ShapeDtypeStruct((3,), dtype)), x)

    def test_sixty_four_bits_come_back_where_they_are_enabled(self):
        with jax.enable_x64(True):
            x = jnp.arange(3, dtype=jnp.float64)
            _same(_read(_bytes(x), jnp.zeros(3, jnp.float64)), x)

    def test_the_skeleton_is_not_changed(self):
        like = {"numpy": np.zeros(2), "list": [np.float64(0)], "jax": jnp.zeros(2)}
        loaded = _read(
            _bytes({"numpy": np.ones(2), "list": [np.float64(1)], "jax": jnp.ones(2)}), like
        )
        assert loaded["numpy"] is not like["numpy"]
        assert tree_equal(
            like, {"numpy": np.zeros(2), "list": [np.float64(0)], "jax": jnp.zeros(2)}
        )

    def test_a_number_is_widened_if_no_digit_is_lost(self):
        assert _read(_bytes([3, 2.5]), [0.0, 0j]) == [3.0, 2.5 + 0j]

    def test_several_trees_in_one_file(self):
        f = io.BytesIO()
        f.write(b"header\n")
        for i in range(3):
            tree_serialise_leaves(f, [i, jnp.full(2, i)])
        f.seek(0)
        assert f.readline() == b"header\n"
        assert [tree_deserialise_leaves(f, [0, jnp.zeros(2, int)])[0] for _ in range(3)] == [
            0,
            1,
            2,
        ]


class TestFilterSpec:
    def test_a_prefix_says_how_each_branch_is_written(self):
        def mark(f, x):
            f.write(b"!")

        spec = {"a": mark, "b": default_serialise_filter_spec}
        data = _bytes({"a": [1.0, 2.0], "b": 3.0}, filter_spec=spec)
        assert data[:2] == b"!!"
        assert data[2:] == _bytes(3.0)

    def test_a_prefix_says_how_each_branch_is_read(self):
        def double(f, x):
            return 2 * default_deserialise_filter_spec(f, x)

        spec = {"a": double, "b": lambda f, x: x}
        like = {"a": [0.0, 0.0], "b": "kept"}
        loaded = _read(_bytes([1.0, 2.0]), like, filter_spec=spec)
        assert loaded == {"a": [2.0, 4.0], "b": "kept"}

    def test_a_node_can_be_a_leaf(self):
        def is_list(x):
            return isinstance(x, list)

        def write(f, x):
            f.write(bytes(x))

        def read(f, x):
            return list(f.read(len(x)))

        data = _bytes({"a": [1, 2], "b": [3]}, filter_spec=write, is_leaf=is_list)
        assert data == b"\x01\x02\x03"
        like = {"a": [0, 0], "b": [0]}
        assert _read(data, like, filter_spec=read, is_leaf=is_list) == {"a": [1, 2], "b": [3]}

    def test_a_specification_of_another_structure_is_refused(self):
        with pytest.raises(StructureError, match="`filter_spec` is no prefix of the tree"):
            _bytes([1.0], filter_spec={"a": default_serialise_filter_spec})

    def test_a_specification_without_functions_is_refused(self):
        with pytest.raises(StructureError, match="`filter_spec` holds True of type `bool`"):
            _bytes([1.0], filter_spec=[True])


class TestErrors:
    @pytest.mark.parametrize(
        ("tree", "like", "message"),
        [
            (jnp.ones(2), jnp.ones(3), r"changed shape from \(3,\) in `like` to \(2,\) on disk"),
            (jnp.ones(2), jnp.ones(2, int), "changed dtype from int32 in `like` to float32 on"),
            (np.ones(2), jnp.ones(2), "changed dtype from float32 in `like` to float64 on disk"),
            (np.ones(2), np.ones(2, "f4"), "changed dtype from float32 in `like` to float64 on"),
            (jnp.ones(2, jnp.bfloat16), jnp.ones(2, jnp.float16), "dtype from float16 .* to .*V2"),
            (jnp.ones(2), 1.0, "is the number 1.0 of type `float` .* an array of shape"),
            (2.5, 1, "is the number 1 of type `int` in `like`, .* dtype float64 on disk"),
            (1, True, "is the number True of type `bool` in `like`, .* dtype int64 on disk"),
            (2**53 + 1, 1.0, "9007199254740993 on disk has no exact value of type `float`"),
            (jnp.ones(2, "u4"), jax.random.key(0, impl="rbg"), r"is a PRNG key of shape \(\)"),
            (np.float64(1), np.float32(1), "changed type from .*float32.* to .*float64"),
        ],
    )
    def test_a_leaf_that_does_not_fit_is_named(self, tree, like, message):
        with pytest.raises(SerialisationError, match=rf"path '\['b'\]\[0\]'.*{message}"):
            _read(_bytes({"a": 1.0, "b": [tree]}), {"a": 1.0, "b": [like]})

    def test_the_type_that_a_function_returns_is_checked(self):
        with pytest.raises(
            SerialisationError,
            match=r"path '\[0\]' has changed type from <class 'float'> in `like`",
        ):
            _read(b"1", [1.0], filter_spec=lambda f, x: f.read(1))

    def test_a_file_with_fewer_leaves_names_the_first_that_is_missing(self):
        with pytest.raises(SerialisationError, match=r"'\[1\]': the file ends before it") as caught:
            _read(_bytes([1.0]), [1.0, 2.0])
        assert caught.value.key_path == (jax.tree_util.SequenceKey(1),)

    @pytest.mark.parametrize("cut", [1, 5, 60, 130])
    def test_a_truncated_leaf_is_named(self, cut):
        with pytest.raises(
            SerialisationError, match=r"path '\[0\]': the file holds no array there"
        ):
            _read(_bytes([1.0])[:cut], [1.0])

    def test_a_file_of_something_else_is_named(self):
        with pytest.raises(
            SerialisationError, match=r"path '\[0\]': the file holds no array there"
        ):
            _read(b"something else altogether", [1.0])

    def test_a_pickle_is_neither_written_nor_read(self):
        objects = np.array([1, "a"], object)
        with pytest.raises(
            SerialisationError, match=r"path '\[0\]': .*only be written by pickling"
        ):
            _bytes([objects])
        f = io.BytesIO()
        np.save(f, objects, allow_pickle=True)
        with pytest.raises(SerialisationError, match="holds no array .* without unpickling"):
            _read(f.getvalue(), [np.array([0, 0])])

    def test_a_large_integer_is_not_pickled(self):
        with pytest.raises(SerialisationError, match="only be written by pickling"):
            _bytes([2**70])

    def test_a_leaf_without_a_value_is_not_written(self):
        with pytest.raises(
            SerialisationError, match=r"path '\[0\]': it is a `jax.ShapeDtypeStruct`"
        ):
            _bytes([jax.ShapeDtypeStruct((), jnp.float32)])

    def test_a_traced_leaf_is_not_written(self):
        with pytest.raises(SerialisationError, match=r"\(the whole tree\): it is being traced"):
            jax.jit(_bytes)(1.0)

    def test_a_leaf_that_cannot_be_rebuilt_is_not_written(self):
        class Wrapped:
            def __jax_array__(self):
                return jnp.ones(2)

        with pytest.raises(
            SerialisationError, match="`Wrapped`, known only by its `__jax_array__`"
        ):
            _bytes([Wrapped()])
        with pytest.raises(
            SerialisationError, match="`Wrapped`, known only by its `__jax_array__`"
        ):
            _read(_bytes([1.0]), [Wrapped()])

    def test_sixty_four_bits_need_to_be_enabled(self):
        with pytest.raises(SerialisationError, match="holds only when 64 bits are enabled"):
            _read(_bytes([np.ones(2)]), [jax.ShapeDtypeStruct((2,), np.float64)])

    def test_a_file_open_for_text_is_refused(self):
        with pytest.raises(SerialisationError, match="gives `str` instead of bytes"):
            tree_deserialise_leaves(io.StringIO("text"), [1.0])
        with pytest.raises(SerialisationError, match=r"path '\[0\]'.*bytes"):
            tree_serialise_leaves(io.StringIO(), [1.0])

    def test_an_error_of_the_system_stays_what_it_is(self):
        def full(f, x):
            raise OSError("no space left")

        with pytest.raises(OSError, match="no space left"):
            _bytes([1.0], filter_spec=full)
        with pytest.raises(OSError, match="no space left"):
            _read(b"", [1.0], filter_spec=full)
