"""The example that solves with diffrax on the drop-in."""

import re

import pytest

pytest.importorskip("diffrax")
pytest.importorskip("optax")
pytest.importorskip("matplotlib")


def test_it_learns_through_solvers_that_are_modules_of_ecliptic(run_example, is_picture):
    printed = run_example("neural_ode")
    assert "diffrax solves with Modules of Ecliptic: True" in printed
    first, last = map(float, re.search(r"steps: (\S+) first, (\S+) last", printed).groups())
    assert last < 0.8 * first
    assert is_picture("neural_ode.png")
