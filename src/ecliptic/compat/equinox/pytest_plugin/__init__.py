"""Runs the tests of a project that uses Equinox: `pytest -p ecliptic.compat.equinox.pytest_plugin`.

The option `--jaxtyping-packages=equinox,...` of jaxtyping's plugin is rewritten to name this
package, which is what gets imported.
"""

import pytest

from ecliptic.compat.equinox import install

_OPTION = "--jaxtyping-packages"
_PACKAGE = "ecliptic.compat.equinox"


def pytest_addoption() -> None:
    """Stands in for Equinox as soon as pytest takes the plugin up: others may import it next.

    (Not where this module is imported: something that looks for examples does that, too.)
    """
    install()


def _renamed(packages: str) -> str:
    """The value of the option, with our package in the place of Equinox."""
    names, bracket, rest = packages.partition("(")
    renamed = [
        _PACKAGE + name.strip().removeprefix("equinox")
        if name.strip() == "equinox" or name.strip().startswith("equinox.")
        else name
        for name in names.split(",")
    ]
    return ",".join(renamed) + bracket + rest


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(args: list[str]) -> None:
    """Rewrites the option where it stands."""
    for i, argument in enumerate(args):
        if argument.startswith(f"{_OPTION}="):
            args[i] = f"{_OPTION}={_renamed(argument.removeprefix(f'{_OPTION}='))}"
        elif i and args[i - 1] == _OPTION:
            args[i] = _renamed(argument)


def pytest_configure() -> None:
    """Goes to the front again: other plugins have put their finders there."""
    install()
