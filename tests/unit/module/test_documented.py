import inspect
import typing

import equinox.internal as eqxi
import pytest

from ecliptic.module import doc_remove_args, doc_repr
from ecliptic.transform import filter_jit


def solve(y0, internal, steps=1):
    return y0 * steps


@pytest.fixture
def documenting(monkeypatch):
    monkeypatch.setattr(typing, "GENERATING_DOCUMENTATION", True, raising=False)


def test_both_do_nothing_otherwise():
    assert doc_repr(solve, "the solver") is solve
    assert doc_remove_args("internal")(solve) is solve
    assert str(inspect.signature(solve)) == "(y0, internal, steps=1)"


@pytest.mark.usefixtures("documenting")
@pytest.mark.parametrize("show", [doc_repr, eqxi.doc_repr])
def test_a_stand_in_shows_the_text_and_can_be_called_and_used_in_annotations(show):
    shown = show(solve, "the solver")
    assert repr(shown) == "the solver"
    assert shown(2, None, steps=3) == 6
    assert (shown | int).__args__ == (shown, int)


@pytest.mark.usefixtures("documenting")
@pytest.mark.parametrize("remove", [doc_remove_args, eqxi.doc_remove_args])
def test_arguments_are_hidden(remove):
    def fn(y0, internal, steps=1): ...

    assert remove("internal", "absent")(fn) is fn
    assert str(inspect.signature(fn)) == "(y0, steps=1)"


@pytest.mark.usefixtures("documenting")
def test_arguments_of_a_filtered_function_are_hidden():
    fn = doc_remove_args("internal")(filter_jit(lambda y0, internal: y0))
    assert str(inspect.signature(fn)) == "(y0)"
