"""For library authors: boundaries in a program that transformations, or the compiler, respect."""

from ecliptic.barrier._noinline import noinline, noinline_p
from ecliptic.barrier._nonbatchable import nonbatchable, nonbatchable_p
from ecliptic.barrier._nondifferentiable import (
    nondifferentiable,
    nondifferentiable_backward,
    nondifferentiable_backward_p,
    nondifferentiable_p,
)
from ecliptic.barrier._nontraceable import nontraceable, nontraceable_p

__all__ = [
    "noinline",
    "noinline_p",
    "nonbatchable",
    "nonbatchable_p",
    "nondifferentiable",
    "nondifferentiable_backward",
    "nondifferentiable_backward_p",
    "nondifferentiable_p",
    "nontraceable",
    "nontraceable_p",
]
