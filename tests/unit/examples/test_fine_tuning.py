"""The example that trains parts of a trained network."""

import re

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("optax")
pytest.importorskip("matplotlib")


def test_each_way_learns_and_adapters_leave_what_is_under_them(run_example, is_picture):
    printed = run_example("fine_tuning")
    found = dict(re.findall(r"^(.+): (\d+ trained, \S+)% on their side", printed, re.MULTILINE))
    counts = {name: int(line.split()[0]) for name, line in found.items()}
    correct = {name: float(line.split()[-1]) for name, line in found.items()}
    assert counts == {"not at all": 0, "everything": 26122, "last layer": 1290, "adapters": 4688}
    assert min(correct["everything"], correct["adapters"]) > correct["not at all"] + 15
    assert "the layers under the adapters are as they were: True" in printed
    assert is_picture("fine_tuning.png")
