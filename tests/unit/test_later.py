"""Names that are imported when they are first asked for."""

import os
import subprocess
import sys

import pytest

import ecliptic


def test_a_module_comes_when_it_is_asked_for():
    program = (
        "import sys, ecliptic; assert 'ecliptic.view' not in sys.modules; "
        "assert ecliptic.view is sys.modules['ecliptic.view']"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(("value", "there"), [("", False), ("1", True)])
def test_a_module_comes_at_once_where_an_environment_variable_asks_for_it(value, there):
    program = f"import sys, ecliptic; assert ('ecliptic.debug' in sys.modules) is {there}"
    environment = {**os.environ, "ECLIPTIC_EXPLAIN_RETRACES": value}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_a_name_that_is_nowhere_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'ecliptic' has no attribute 'nothing'"):
        ecliptic.nothing
