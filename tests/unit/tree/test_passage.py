"""`Passage`: nodes that are used up inside of a function are used up outside."""

import gc
import weakref

import jax
import pytest

from ecliptic.tree._passage import Expendable, Passage, current_passage, find_used, use_up_at


class Keys(tuple):
    origin = None


class Ticket(Expendable):
    """The smallest expendable node."""

    def __init__(self, value, outside=None):
        self.value = value
        self.outside = outside
        self.used = False

    @property
    def is_used(self):
        return self.used

    def use_up(self):
        self.used = True
        if self.outside is not None:
            passage, origin = self.outside
            passage.report_used(origin)


def _flatten(ticket):
    keys = Keys()
    keys.origin = weakref.ref(ticket)
    return (ticket.value,), keys


def _unflatten(keys, values):
    passage = current_passage()
    return Ticket(*values, None if passage is None else (passage, keys.origin))


jax.tree_util.register_pytree_node(Ticket, _flatten, _unflatten)


def test_what_is_used_inside_is_used_outside_in_the_end():
    outside = [Ticket(1), Ticket(2)]
    leaves, treedef = jax.tree.flatten(outside)
    passage = Passage()
    inside = passage.unflatten(treedef, leaves)
    assert not passage.has_used
    inside[1].use_up()
    assert passage.has_used
    assert [ticket.used for ticket in outside] == [False, False]
    passage.finish()
    assert [ticket.used for ticket in outside] == [False, True]


def test_a_plain_copy_is_independent():
    outside = Ticket(1)
    jax.tree.map(lambda x: x, outside).use_up()
    assert not outside.used


def test_the_passage_ends_with_the_rebuilding_also_if_it_fails():
    _, treedef = jax.tree.flatten([1, 2])
    with pytest.raises(ValueError):
        Passage().unflatten(treedef, [1])
    assert current_passage() is None


def test_a_passage_keeps_nothing_alive():
    outside = Ticket(1)
    alive = weakref.ref(outside)
    leaves, treedef = jax.tree.flatten(outside)
    passage = Passage()
    inside = passage.unflatten(treedef, leaves)
    del outside
    gc.collect()
    assert alive() is None
    inside.use_up()
    passage.finish()


def test_used_nodes_are_found_and_used_up_by_path():
    tree = {"a": [Ticket(1), Ticket(2)], "b": (Ticket(3), 4)}
    tree["a"][1].use_up()
    tree["b"][0].use_up()
    other = {"a": [Ticket(1), Ticket(2)], "b": (Ticket(3), 4)}
    use_up_at(other, find_used(tree))
    assert [other["a"][0].used, other["a"][1].used, other["b"][0].used] == [False, True, True]
