import copy
import pickle
import warnings

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped

import ecliptic as ec
from ecliptic.errors import (
    DefinitionError,
    EclipticWarning,
    EnumerationError,
    FrozenError,
    RuntimeCheckError,
    UnhashableError,
)
from ecliptic.runtime import Enumeration, EnumerationItem, member
from ecliptic.tree import tree_equal, tree_pformat


class Outcome(Enumeration):
    success = ""
    failure = "It failed."


class More(Outcome):
    partial = "Some of it failed."


class Most(More):
    unknown = member("Nobody knows.")


class Other(Enumeration):
    success = ""


class Beside(Enumeration):
    failure = "It failed."
    success = ""
    beside = "Elsewhere."


class Joined(More, Beside):
    pass


BATCH = jax.vmap(lambda p: Outcome.where(p, Outcome.success, Outcome.failure))(
    jnp.array([True, False, True])
)


def test_an_item_has_one_leaf_its_number():
    (leaf,) = jax.tree.leaves(Outcome.failure)
    assert (leaf.dtype, leaf.shape, int(leaf)) == (np.dtype(np.int32), (), 1)
    assert Outcome.failure._value is leaf


def test_items_of_one_enumeration_have_one_structure_and_others_another():
    structures = [
        jax.tree.structure(item)
        for item in (Outcome.success, Outcome.failure, More.success, Other.success)
    ]
    assert structures[0] == structures[1]
    assert len(set(structures)) == 3


def test_the_number_cannot_be_changed_in_place():
    with pytest.raises(ValueError, match="read-only"):
        Outcome.failure._value[...] = 0


def test_members_are_listed_in_order_those_of_the_bases_first():
    assert len(Most) == 4
    assert [item.message for item in Most] == [
        "", "It failed.", "Some of it failed.", "Nobody knows."
    ]  # fmt: skip


def test_an_enumeration_without_members_is_no_false_value():
    class Empty(Enumeration):
        pass

    assert len(Empty) == 0
    assert Empty


def test_containment_and_isinstance_tell_whose_item_it_is():
    assert Outcome.success in Outcome
    assert BATCH in Outcome
    assert More.success not in Outcome
    assert 0 not in Outcome
    assert isinstance(Outcome.success, Outcome)
    assert isinstance(Outcome.success, Enumeration)
    assert not isinstance(More.success, Outcome)
    assert not isinstance(0, Outcome)


@pytest.mark.parametrize("item", [Outcome.failure, jax.jit(lambda x: x)(Outcome.failure)])
def test_a_known_item_has_its_message(item):
    assert Outcome[item] == item.message == "It failed."


def test_the_message_of_a_batch_lists_those_of_its_items():
    assert Outcome[BATCH] == "['' 'It failed.' '']"


def test_the_message_of_a_traced_item_is_not_known():
    seen = []

    @jax.jit
    def look(item):
        seen.extend([item.message, item.is_traced(), repr(item)])
        return item

    look(Outcome.failure)
    assert seen == ["traced", True, f"{__name__}.Outcome<traced>"]
    assert not Outcome.failure.is_traced()


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (Outcome.failure, "It failed."),
        (Outcome.success, "success"),
        (BATCH, "['success' 'It failed.' 'success']"),
        (Outcome.where(jnp.array([[True], [False]]), Outcome.success, Outcome.failure),
         "[['success'] ['It failed.']]"),
        (Outcome.where(jnp.arange(20) < 3, Outcome.success, Outcome.failure),
         "[20]: 17 × failure, 3 × success"),
        (EnumerationItem(jnp.array(7), Outcome), "unknown"),
        (EnumerationItem(jnp.array([-1, 1]), Outcome), "['unknown' 'It failed.']"),
        (EnumerationItem(None, Outcome), "None"),
    ],
)  # fmt: skip
def test_the_repr_names_the_members(item, shown):
    assert repr(item) == tree_pformat(item) == f"{__name__}.Outcome<{shown}>"


def test_the_repr_has_a_name_in_place_of_a_message_of_many_lines():
    class Wordy(Enumeration):
        long = "First line.\nSecond line."

    assert repr(Wordy.long).endswith("Wordy<long>")


def test_where_of_a_known_predicate_is_the_item_itself():
    assert Outcome.where(True, Outcome.success, Outcome.failure) is Outcome.success
    assert Outcome.where(np.bool(False), Outcome.success, Outcome.failure) is Outcome.failure


@pytest.mark.parametrize("pred", [True, False])
def test_where_of_an_array_chooses(pred):
    item = Outcome.where(jnp.array(pred), Outcome.success, Outcome.failure)
    assert bool(item == (Outcome.success if pred else Outcome.failure))
    assert item._value.dtype == np.int32


@pytest.mark.parametrize("pred", [jnp.array(1), 1, "yes"])
def test_where_refuses_what_is_no_boolean(pred):
    with pytest.raises(EnumerationError, match="`pred` of `Outcome.where` is a boolean or an"):
        Outcome.where(pred, Outcome.success, Outcome.failure)


def test_where_refuses_items_of_a_base_and_says_how_to_promote():
    with pytest.raises(EnumerationError, match=r"one of `Outcome`. Use `More.promote\(item\)`"):
        More.where(True, Outcome.success, More.success)


@pytest.mark.parametrize(
    "use",
    [
        lambda: Outcome.where(True, Other.success, Outcome.success),
        lambda: Outcome.success == Other.success,
        lambda: Outcome.success != Other.success,
        lambda: Outcome[Other.success],
        lambda: Outcome.promote(Other.success),
    ],
)
def test_items_of_different_enumerations_are_not_mixed(use):
    with pytest.raises(EnumerationError, match="`Outcome.*got one of `Other`|takes items of `Out"):
        use()


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda: Outcome.success == 0, "takes items of `Outcome`, and got 0 of type `int`"),
        (lambda: Outcome[0], r"`Outcome\[...\]` is the message of an item, and got 0"),
        (lambda: Outcome["failure"], "Items are `Outcome.success`, `Outcome.failure`"),
        (lambda: More.promote(More.success), "one of `More` itself: use it as it is"),
        (lambda: Outcome.promote(1), r"inherits from \(none\), and got 1 of type `int`"),
        (lambda: More.promote(Other.success), r"inherits from \(`Outcome`\), and got one of"),
        (lambda: Outcome(), "`Outcome` cannot be called: its items are its attributes"),
        (lambda: EnumerationItem(jnp.array(7), Outcome).message, "holds the number 7, and there"),
    ],
)
def test_misuse_is_refused(use, match):
    with pytest.raises(EnumerationError, match=match):
        use()


def test_a_wrong_member_is_refused_with_the_right_ones():
    with pytest.raises(AttributeError, match="has `Outcome.success`.* Did you mean `failure`"):
        Outcome.failed


def test_members_cannot_be_changed():
    with pytest.raises(FrozenError, match="`success` of the enumeration `Outcome` cannot be assi"):
        Outcome.success = "again"
    with pytest.raises(FrozenError, match="`success` of the enumeration `Outcome` cannot be dele"):
        del Outcome.success
    with pytest.raises(FrozenError, match="frozen"):
        Outcome.success._value = 3


@pytest.mark.parametrize("value", [3, lambda self: 3, None])
def test_a_member_that_is_no_string_is_refused(value):
    with pytest.raises(DefinitionError, match=r"`odd` of `Odd` is .* Write `odd = \"message\"`"):
        type(Outcome)("Odd", (Enumeration,), {"odd": value})


@pytest.mark.parametrize("name", ["where", "promote"])
def test_a_member_named_like_a_method_is_refused(name):
    with pytest.raises(DefinitionError, match=f"cannot have a member `{name}`"):
        type(Outcome)("Odd", (Enumeration,), {name: ""})


def test_a_member_defined_anew_keeps_its_number_gets_the_message_and_a_warning():
    with pytest.warns(EclipticWarning, match="`Again` defines the member `failure` anew") as told:

        class Again(Outcome):
            failure = "It failed again."

    assert told[0].filename == __file__
    assert Again.promote(Outcome.failure).message == "It failed again."
    assert (len(Again), int(Again.failure._value)) == (2, 1)


def test_the_same_member_again_is_no_reason_for_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Again(Outcome):
            failure = "It failed."

    assert len(Again) == 2


@pytest.mark.parametrize("cls", [Outcome, More])
def test_promotion_goes_up_a_chain_and_keeps_the_member(cls):
    promoted = Most.promote(cls.failure)
    assert promoted in Most
    assert bool(promoted == Most.failure)


def test_promotion_goes_by_name_where_numbers_differ():
    items = [Beside.failure, Beside.success, Beside.beside]
    assert [int(item._value) for item in items] == [0, 1, 2]
    promoted = [Joined.promote(item) for item in items]
    assert [int(item._value) for item in promoted] == [1, 0, 3]
    assert [item.message for item in promoted] == [item.message for item in items]


def test_a_batch_is_promoted_when_traced():
    item = jax.jit(More.promote)(BATCH)
    assert repr(item) == f"{__name__}.More<['success' 'It failed.' 'success']>"


def test_equality_is_an_array_of_the_shape_of_the_batch():
    equal = BATCH == Outcome.failure
    assert isinstance(equal, jax.Array)
    assert equal.tolist() == [False, True, False]
    assert (BATCH != Outcome.failure).tolist() == [True, False, True]
    assert jax.jit(lambda item: item == Outcome.failure)(BATCH).tolist() == equal.tolist()


def test_the_structure_tells_trees_with_items_apart_before_they_are_compared():
    assert tree_equal([Outcome.success], [Outcome.success])
    assert not tree_equal([Outcome.success], [Outcome.failure])
    assert not tree_equal([Outcome.success], [Other.success])


def test_a_known_item_is_the_key_of_a_dictionary_also_while_a_program_is_traced():
    computed = jax.jit(lambda x: x)(Outcome.failure)
    table = {Outcome.success: 0, Outcome.failure: 1, Other.success: 2, 0: 3}
    assert (table[computed], table[Other.success], table[0]) == (1, 2, 3)
    assert jax.jit(lambda x: x + table[computed])(1) == 2


@pytest.mark.parametrize(
    ("look_up", "match"),
    [(hash, "is a batch of them has no hash"), (jax.jit(lambda x: hash(x)), "is traced has no")],
)
def test_a_batch_and_a_traced_item_have_no_hash(look_up, match):
    with pytest.raises(UnhashableError, match=match):
        look_up(BATCH)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("item", [More.failure, BATCH])
def test_items_are_copied_and_pickled(item, duplicate):
    other = duplicate(item)
    assert other._enumeration is item._enumeration
    assert bool((other == item).all())


def halved(item, x):
    """One step of a search: says so when it has failed."""
    failed = Outcome.where(x < 0, Outcome.failure, item)
    return failed, x - 1


@pytest.mark.parametrize(
    "run",
    [
        lambda x: jax.lax.scan(lambda c, _: (halved(*c), None), (Outcome.success, x), length=3)[0],
        lambda x: jax.lax.fori_loop(0, 3, lambda i, c: halved(*c), (Outcome.success, x)),
        lambda x: ec.filter_scan(
            lambda c, _: (halved(*c), None), (Outcome.success, x), length=3)[0],
        lambda x: jax.lax.cond(
            x < 2, lambda: (Outcome.failure, x), lambda: (Outcome.success, x)),
    ],
)  # fmt: skip
def test_items_go_through_loops_and_branches(run):
    alone, _ = jax.jit(run)(jnp.array(1.0))
    assert alone.message == "It failed."
    batch, _ = ec.filter_jit(jax.vmap(run))(jnp.array([1.0, 5.0]))
    assert repr(batch) == f"{__name__}.Outcome<['It failed.' 'success']>"


def test_items_in_a_model_are_no_obstacle_to_a_gradient():
    value, grads = ec.filter_value_and_grad(lambda pair: pair[1] ** 2)(
        (Outcome.success, jnp.array(3.0))
    )
    assert (float(value), grads[0]._value) == (9.0, None)


def test_error_if_fails_with_the_message_of_the_member():
    with pytest.raises(RuntimeCheckError, match="It failed."):
        ec.filter_jit(lambda item, x: item.error_if(x, x > 0))(Outcome.failure, jnp.array(1.0))


def test_error_if_of_a_batch_fails_with_the_message_of_the_element_that_fails():
    items = Most.where(jnp.array([True, False]), Most.partial, Most.failure)
    fail = ec.filter_jit(jax.vmap(lambda item, x, pred: item.error_if(x, pred)))
    with pytest.raises(RuntimeCheckError, match="Some of it failed."):
        fail(items, jnp.ones(2), jnp.array([True, False]))
    with pytest.raises(RuntimeCheckError, match="It failed."):
        fail(items, jnp.ones(2), jnp.array([False, True]))


def test_error_if_of_a_member_without_a_message_fails_with_its_name():
    with pytest.raises(RuntimeCheckError, match="Outcome.success"):
        Outcome.success.error_if(jnp.array(1.0), True)


def test_error_if_passes_what_is_right():
    out = ec.filter_jit(lambda item, x: item.error_if(x, item != Outcome.success))(
        Outcome.success, jnp.array(1.0)
    )
    assert float(out) == 1.0


def test_the_docstring_lists_the_members_unless_there_is_one():
    class Described(Outcome):
        """What came of it."""

    assert Described.__doc__ == "What came of it."
    assert Outcome.__doc__ == "An enumeration of:\n\n- `success`\n- `failure`: It failed."


def test_an_enumeration_is_an_annotation_that_is_checked_at_run_time():
    @jaxtyped(typechecker=beartype)
    def kept(item: Outcome) -> Outcome:
        return item

    assert kept(Outcome.failure) is Outcome.failure
    assert kept(BATCH) is BATCH
    with pytest.raises(TypeCheckError):
        kept(Other.success)


def test_dir_lists_members_and_methods():
    assert dir(Outcome) == ["failure", "promote", "success", "where"]


class Reference(equinox.Enumeration):
    success = ""
    failure = "It failed."


class ReferenceMore(Reference):
    partial = "Some of it failed."


@pytest.mark.parametrize(
    "use",
    [
        lambda base, more: base[base.failure],
        lambda base, more: more[more.promote(base.failure)],
        lambda base, more: [len(base), len(more)],
        lambda base, more: [int(more.partial._value), str(more.partial._value.dtype)],
        lambda base, more: (base.success == base.failure).tolist(),
        lambda base, more: base.failure.is_traced(),
        lambda base, more: isinstance(more.success, base),
        lambda base, more: isinstance(base.success, base),
        lambda base, more: repr(base.failure).split("<")[1],
        lambda base, more: base[base.where(jnp.array(False), base.success, base.failure)],
        lambda base, more: str(jax.tree_util.tree_leaves_with_path(base.success)),
        lambda base, more: base[jax.vmap(lambda p: base.where(p, base.success, base.failure))(
            jnp.array([True, False]))],
    ],
)  # fmt: skip
def test_does_what_equinox_does(use):
    assert use(Outcome, More) == use(Reference, ReferenceMore)
