import pytest
from jax.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

from ecliptic.errors import PathError
from ecliptic.tree import format_path, leaves_with_paths, match_path, parse_path, tree_paths
from tests.unit.tree.nodes import Affine, NeverConstructed, Pair

TABLE = [
    ((), ""),
    ((GetAttrKey("weight"),), "weight"),
    ((GetAttrKey("layers"), SequenceKey(0), GetAttrKey("weight")), "layers[0].weight"),
    ((SequenceKey(12), SequenceKey(0)), "[12][0]"),
    ((DictKey("a"),), "['a']"),
    ((DictKey("it's"),), '["it\'s"]'),
    ((DictKey("]['\\\n"), GetAttrKey("b")), '["][\'\\\\\\n"].b'),
    ((DictKey(1),), "[(1)]"),
    ((DictKey(-1.5), DictKey(None)), "[(-1.5)][(None)]"),
    ((DictKey((1, ")]")), SequenceKey(0)), "[(1, ')]')][0]"),
    ((DictKey(()),), "[()]"),
    ((FlattenedIndexKey(3), GetAttrKey("x")), "[<flat index 3>].x"),
    ((GetAttrKey("not a name"),), "'not a name'"),
    ((GetAttrKey("a"), GetAttrKey("b.c")), "a.'b.c'"),
]


@pytest.mark.parametrize(("path", "text"), TABLE)
def test_format(path, text):
    assert format_path(path) == text


@pytest.mark.parametrize(("path", "text"), TABLE)
def test_parse_reads_what_format_writes(path, text):
    assert parse_path(text) == path


@pytest.mark.parametrize("path", [path for path, _ in TABLE])
def test_parse_reads_what_format_writes_with_a_root(path):
    assert parse_path(format_path(path, root="model"), root="model") == path


def test_format_with_a_root():
    assert format_path((GetAttrKey("a"),), root="model") == "model.a"
    assert format_path((SequenceKey(0),), root="model") == "model[0]"
    assert format_path((), root="model") == "model"


def test_a_path_is_the_expression_that_reads_the_place():
    tree = {"a": [Affine(1, Pair(2, {3: 4}))], "b": {(5,): 6}}
    pairs = leaves_with_paths(tree["a"], root="a") + leaves_with_paths(tree["b"], root="b")
    assert [eval(path, dict(tree)) for path, _ in pairs] == [leaf for _, leaf in pairs]


def test_a_key_of_another_library_writes_itself():
    class Key:
        def __str__(self):
            return "<key>"

    assert format_path((GetAttrKey("a"), Key())) == "a<key>"


@pytest.mark.parametrize(
    "text", ["a..b", "a[", "a[x]", "a]", "a b", ".", "a[-1]", "['a]", "a[0", "a.b()"]
)
def test_parse_refuses_what_is_no_path(text):
    with pytest.raises(PathError, match=r"cannot read the path .* from .* on.*layers\[0\]\.weight"):
        parse_path(text)


@pytest.mark.parametrize("text", ["[(print())]", "[(1]"])
def test_parse_refuses_keys_that_are_no_literals(text):
    with pytest.raises(PathError, match="is not a Python literal"):
        parse_path(text)


def test_parse_refuses_an_index_too_large_for_jax():
    with pytest.raises(PathError, match="index that is too large"):
        parse_path(f"[{2**80}]")


@pytest.mark.parametrize("text", ["other.a", "modelled.a", ""])
def test_parse_refuses_another_root(text):
    with pytest.raises(PathError, match="does not start with 'model'"):
        parse_path(text, root="model")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("layers[*].weight", "layers[0].weight", True),
        ("layers[*].weight", "layers['a'].weight", True),
        ("layers[*].weight", "layers.a.weight", False),
        ("layers[*].weight", "layers[0].bias", False),
        ("layers[*].weight", "layers[0].weight.x", False),
        ("layers[0].weight", "layers[0].weight", True),
        ("layers[0].weight", "layers[1].weight", False),
        ("layers[1].weight", "layers[(1)].weight", False),
        ("**.bias", "bias", True),
        ("**.bias", "a.bias", True),
        ("**.bias", "a[0]['b'].bias", True),
        ("**.bias", "a.bias.c", False),
        ("a.**", "a", True),
        ("a.**", "a[0].b", True),
        ("a.**", "b.a", False),
        ("a**", "a", True),
        ("a**", "a.b", False),
        ("a.**.c.**.e", "a.b.c.d.e", True),
        ("a.**.c.**.e", "a.c.e", True),
        ("a.**.c.**.e", "a.d.e", False),
        ("**", "", True),
        ("**", "a[0]", True),
        ("", "", True),
        ("", "a", False),
        ("*", "a", True),
        ("*", "[0]", False),
        ("*.w*", "a.weight", True),
        ("w?", "w1", True),
        ("w?", "w12", False),
        ("['a*']", "['abc']", True),
        ("['a*']", "['bc']", False),
        ("['a.c']", "['abc']", False),
        ("[*][*]", "[0]['a']", True),
    ],
)
def test_match(pattern, path, expected):
    assert match_path(pattern, path) is expected
    assert match_path(pattern, parse_path(path)) is expected


def test_match_refuses_what_is_no_pattern():
    with pytest.raises(PathError, match="cannot read the path"):
        match_path("a[", "a")


def test_tree_paths_names_each_leaf():
    tree = {"m": Affine([1, None], 2), "n": (Pair(3, 4), NeverConstructed.make(5))}
    assert tree_paths(tree, root="tree") == [
        "tree['m'].weight[0]",
        "tree['m'].bias",
        "tree['n'][0].first",
        "tree['n'][0].second",
        "tree['n'][1][<flat index 0>]",
    ]


def test_leaves_with_paths_stops_at_leaves_on_request():
    pairs = leaves_with_paths({"a": [1, 2]}, is_leaf=lambda x: isinstance(x, list))
    assert pairs == [("['a']", [1, 2])]
