"""Warnings that point at the user's line."""

import pathlib
import sys
import warnings

import jax
import jaxtyping

from ecliptic.errors import EclipticWarning
from ecliptic.module._source import GENERATED

# What the file names of frames begin with that are not the user's: Ecliptic's own, and those that
# jaxtyping's import hook and JAX put in between.
_NOT_THE_USERS = (
    GENERATED,
    f"{pathlib.Path(__file__).parent.parent}/",
    f"{pathlib.Path(jaxtyping.__file__).parent}/",
    f"{pathlib.Path(jax.__file__).parent}/",
    "<@beartype",
)


def warn(message: str, category: type[EclipticWarning] = EclipticWarning) -> None:
    """Warns of a probable mistake, at the innermost line that is the user's."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level + 1)
