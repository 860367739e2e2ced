"""The drop-in has the names of Equinox, and does what Equinox does.

`make conformance` runs all programs; here runs a sample that compiles little.
"""

import pytest

from conformance import parity, surface
from conformance.downstream.__main__ import read, reason
from conformance.parity._outcome import difference, run

EQUINOX, ECLIPTIC = parity.libraries()
QUICK = ("modules.", "filters.", "trees.", "text.")
SAMPLE = [name for name in parity.PROGRAMS if name.startswith(QUICK)][::3]
SAMPLE += ["jit.traces_by_type", "vmap.out_axes", "derivatives.jvp_other", "runtime.an_error"]


def test_every_name_of_equinox_is_there_or_differs_on_purpose():
    found = surface.differences(surface.read(), surface.describe(ECLIPTIC))
    assert set(found) == set(surface.ON_PURPOSE), found


def test_the_data_is_what_equinox_has():
    assert surface.stale(surface.read(), EQUINOX) == {}


def test_a_name_that_is_missing_is_found():
    data = surface.read()
    ours = surface.describe(ECLIPTIC)
    del ours["tree_at"]
    ours["nn.Linear"]["fields"].reverse()
    found = surface.differences(data, ours)
    assert found["tree_at"] == "is missing"
    assert found["nn.Linear"].startswith("has the fields ['use_bias*'")


@pytest.mark.parametrize(
    ("ours", "expected", "fits"),
    [
        (["x", "y=1"], ["x"], True),
        (["x", "*", "y=1"], ["x", "y=1"], False),
        (["x=None"], ["x"], True),
        (["x"], ["x=None"], False),
        (["x", "y"], ["x"], False),
        (["x", "*", "key"], ["x", "*", "key"], True),
        (["*args", "**kwargs"], ["x", "y=1"], True),
        (["y"], ["x"], False),
    ],
)
def test_a_call_fits_if_every_call_that_was_allowed_is(ours, expected, fits):
    assert surface.accepts(ours, expected) is fits


@pytest.mark.parametrize("name", SAMPLE)
def test_a_program_does_the_same_on_both_libraries(name):
    assert parity.compare(name) is None


def test_a_difference_is_found():
    programs = {True: lambda eqx: 1 if eqx is EQUINOX else 2, False: lambda eqx: [3.0]}
    found = {
        differs: difference(run(program, EQUINOX), run(program, ECLIPTIC))
        for differs, program in programs.items()
    }
    assert found == {True: "value: 1 there, 2 here", False: None}


def test_every_difference_on_purpose_belongs_to_a_program():
    assert set(parity.ON_PURPOSE) <= set(parity.PROGRAMS)


def test_every_expected_failure_of_a_suite_has_a_reason():
    assert all(why for suite in read().values() for why in suite.get("expected", {}).values())


def test_a_failure_is_expected_for_all_parameters_or_for_one():
    expected = {"t.py::a": "times", "t.py::b[1]": "private"}
    tests = ["t.py::a[x-2]", "t.py::a", "t.py::b[1]", "t.py::b[2]"]
    assert [reason(test, expected) for test in tests] == ["times", "times", "private", None]
