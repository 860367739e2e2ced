"""Runs the tests of a project that uses Equinox: `pytest -p ecliptic.compat.equinox.pytest_plugin`.

The option `--jaxtyping-packages=equinox,...` of jaxtyping's plugin loses that name: jaxtyping can
check a package only from its import on, and this one is imported. Other packages are checked.
"""

from ecliptic.compat.equinox.pytest_plugin._hooks import (
    pytest_addoption,
    pytest_configure,
    pytest_load_initial_conftests,
)

__all__ = ["pytest_addoption", "pytest_configure", "pytest_load_initial_conftests"]
