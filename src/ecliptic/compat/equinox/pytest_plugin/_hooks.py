"""The hooks of the plugin."""

import pytest

from ecliptic.compat.equinox import install

_OPTION = "--jaxtyping-packages"


def pytest_addoption() -> None:
    """Stands in for Equinox as soon as pytest takes the plugin up: others may import it next.

    (Not where this module is imported: something that looks for examples does that, too.)
    """
    install()


def _without_equinox(value: str) -> str | None:
    """The value of the option without this package; None if there is no other.

    It is a list of packages and, behind the last comma that is in no bracket, a type checker.
    """
    head, bracket, rest = value.partition("(")
    *packages, checker = head.split(",")
    others = [name for name in packages if name.strip().partition(".")[0] != "equinox"]
    return ",".join([*others, checker]) + bracket + rest if others else None


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(args: list[str]) -> None:
    """Rewrites the option where it stands."""
    for i in reversed(range(len(args))):
        if args[i].startswith(f"{_OPTION}="):
            value = _without_equinox(args[i].removeprefix(f"{_OPTION}="))
            args[i : i + 1] = [] if value is None else [f"{_OPTION}={value}"]
        elif args[i] == _OPTION and i + 1 < len(args):
            value = _without_equinox(args[i + 1])
            args[i : i + 2] = [] if value is None else [_OPTION, value]


def pytest_configure() -> None:
    """Goes to the front again: other plugins have put their finders there."""
    install()
