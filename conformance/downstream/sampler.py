"""A pytest plugin: every n-th test only, and a line a test (outcome, id) into a file.

It is set by the environment, so that workers of pytest-xdist sample alike: ``SAMPLE_EVERY`` and
``RESULTS``.
"""

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps every n-th test."""
    items[:] = items[:: int(os.environ.get("SAMPLE_EVERY", "1"))]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Writes down how a test ended: its call, or what went wrong before or after."""
    if "PYTEST_XDIST_WORKER" in os.environ or "RESULTS" not in os.environ:
        return
    if report.when == "call" or report.outcome != "passed":
        with Path(os.environ["RESULTS"]).open("a", encoding="utf-8") as file:
            file.write(f"{report.outcome}\t{report.nodeid}\n")
