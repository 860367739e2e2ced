"""The import hook of jaxtyping, with beartype, works on Ecliptic and on a user's modules."""

import json
import subprocess
import sys
import textwrap

import pytest

USER_MODULE = """
    import ecliptic as eqx
    import jax
    from jaxtyping import Array, Float


    class Scale(eqx.Module):
        factor: Float[Array, "size"]
        name: str = eqx.field(static=True, default="scale")

        def __call__(self, x: Float[Array, "size"]) -> Float[Array, "size"]:
            return self.factor * x


    class Own(eqx.Module):
        size: int

        def __init__(self, size: int):
            self.size = size
"""

PRELUDE = """
    import sys
    import jax, jax.numpy as jnp, jaxtyping
    sys.path.insert(0, sys.argv[1])
    with jaxtyping.install_import_hook(["ecliptic", "user_module"], "beartype.beartype"):
        import ecliptic as eqx
        import user_module
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a program beside a user's module, both of them and Ecliptic under the hook."""
    folder = tmp_path_factory.mktemp("hooked")
    (folder / "user_module.py").write_text(textwrap.dedent(USER_MODULE))

    def _run(program: str) -> str:
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PRELUDE) + textwrap.dedent(program), folder],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return _run


def test_right_use_passes(run):
    output = run(
        """
        scale = user_module.Scale(jnp.ones(3))
        assert scale(jnp.ones(3)).shape == (3,)
        assert user_module.Own(2).size == 2
        arrays, rest = eqx.partition(scale, eqx.is_array)
        assert eqx.tree_equal(eqx.combine(arrays, rest), scale)
        doubled = eqx.tree_at(lambda s: s.factor, scale, replace_fn=lambda f: 2 * f)
        assert eqx.tree_equal(eqx.apply_updates(scale, scale), doubled)
        assert eqx.filter_jit(scale)(jnp.ones(3)).shape == (3,)
        grads = eqx.filter_grad(lambda s, x: s(x).sum())(scale, jnp.ones(3))
        assert grads.factor.shape == (3,)
        assert eqx.filter_vmap(scale)(jnp.ones((5, 3))).shape == (5, 3)
        mlp = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
        assert mlp(jnp.ones(3)).shape == (2,)
        print("done")
        """
    )
    assert output == "done\n"


WRONG = [
    'user_module.Scale("three")',
    "user_module.Scale(jnp.ones((3, 3)))",
    "user_module.Scale(jnp.ones(3), name=4)",
    "user_module.Scale(jnp.ones(3))(jnp.ones((3, 3)))",
    'user_module.Own("two")',
    "eqx.tree_at(3, {}, 0)",
]


@pytest.fixture(scope="module")
def found(run) -> set[str]:
    """The wrong calls that the hook finds, all tried in one process."""
    output = run(
        f"""
        import json
        found = []
        for call in {WRONG!r}:
            try:
                eval(call)
            except jaxtyping.TypeCheckError:
                found.append(call)
        print(json.dumps(found))
        """
    )
    return set(json.loads(output))


@pytest.mark.parametrize("call", WRONG)
def test_wrong_use_is_found(call, found):
    assert call in found
