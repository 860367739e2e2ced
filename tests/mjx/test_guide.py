"""What the guide says of MJX runs."""

import jax
import pytest

from tests.support.project import GUIDES, code_of

pytest.importorskip("warp", reason="needs mujoco-mjx[warp]")

(GUIDE,) = [guide for guide in GUIDES if guide.stem == "other-libraries-pytrees"]


def test_the_steps_of_the_guide_run():
    parts = code_of(GUIDE, "python mjx")
    assert len(parts) >= 7
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        exec(compile("".join(parts), GUIDE.name, "exec"), {"__name__": "guide"})
