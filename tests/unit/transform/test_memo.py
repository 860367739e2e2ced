"""The table that transformations remember things in."""

import pytest

from ecliptic.transform._memo import Memo


class Incomparable:
    def __hash__(self):
        return 0

    def __eq__(self, other):
        raise ValueError("no")


def test_a_thing_is_made_once():
    memo = Memo(2)
    made = [memo.get("a", object) for _ in range(3)]
    assert made[0] is made[1] is made[2]


def test_the_one_not_asked_for_longest_is_forgotten():
    memo = Memo(2)
    a = memo.get("a", object)
    b = memo.get("b", object)
    assert memo.get("a", object) is a
    memo.get("c", object)
    assert len(memo) == 2
    assert memo.get("a", object) is a
    assert memo.get("b", object) is not b


def test_none_is_a_thing():
    memo, calls = Memo(2), []
    for _ in range(2):
        memo.get("a", lambda: calls.append(1))
    assert len(calls) == 1


@pytest.mark.parametrize("key", [[], {1: 2}], ids=repr)
def test_a_key_without_hash_is_made_anew(key):
    memo = Memo(2)
    assert memo.get(key, object) is not memo.get(key, object)
    assert len(memo) == 0


def test_a_key_that_cannot_be_compared_is_made_anew():
    memo = Memo(2)
    first = memo.get(Incomparable(), object)
    assert memo.get(Incomparable(), object) is not first


def test_a_thing_may_need_another_one():
    memo = Memo(2)
    assert memo.get("a", lambda: memo.get("b", lambda: 1) + 1) == 2
