"""An ω knows the type of its tree."""

import jax

from ecliptic.tree import ω

Tree = dict[str, jax.Array]


def use(a: Tree, b: Tree) -> None:
    reveal_type(a**ω)  # reveals: ω[dict[str, Array]]
    reveal_type((a**ω + 2 * b**ω).ω)  # reveals: dict[str, Array]
    reveal_type((-(a**ω) @ b**ω).ω)  # reveals: dict[str, Array]
    reveal_type(ω(a)[0].at[1].set(2).ω)  # reveals: dict[str, Array]
    reveal_type(a**ω < b**ω)  # reveals: ω[Any]
    reveal_type((a**ω).call(bool).ω)  # reveals: Any
    len(a**ω)  # error: reportArgumentType
