"""Names that are imported when they are first asked for."""

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


def test_a_name_that_is_nowhere_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'ecliptic' has no attribute 'nothing'"):
        ecliptic.nothing
