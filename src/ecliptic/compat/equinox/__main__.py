"""`python -m ecliptic.compat.equinox program.py [arguments]`: runs a program of Equinox."""

import runpy
import sys

from ecliptic.compat.equinox import install


def main() -> None:
    """Runs the program that the first argument names, or with `-m`, the module."""
    arguments = sys.argv[1:]
    if not arguments or arguments == ["-m"]:
        sys.exit("usage: python -m ecliptic.compat.equinox (program.py | -m module) [arguments]")
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
