"""Modules under jaxtyping's import hook with beartype: a user's, and Ecliptic's own."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]

USER_MODULE = """
    import abc
    from collections.abc import Callable
    from typing import Any, Generic, TypeVar

    import ecliptic as ec
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array, Float

    T = TypeVar("T")

    class Linear(ec.Module):
        weight: Float[Array, "out in"]
        bias: Float[Array, "out"]

        def __call__(self, x: Float[Array, "in"]) -> Float[Array, "out"]:
            return self.weight @ x + self.bias

        def wrong(self, x: Float[Array, "in"]) -> Float[Array, "in"]:
            return self.weight @ x

    class Sub(Linear):
        extra: Any = None

    class Converted(ec.Module):
        x: Float[Array, "n"] = ec.field(converter=jnp.asarray)

    class Hand(ec.Module, Generic[T]):
        x: Float[Array, "n"] = ec.field(converter=jnp.asarray)
        size: int = ec.field(static=True, default=3)
        fn: Callable = ec.field(default=jnp.tanh)

        def __init__(self, x: list):
            self.x = x

        def __check_init__(self):
            assert isinstance(self.x, jax.Array)

    class Post(ec.Module):
        a: int
        b: int = ec.field(init=False)

        def __post_init__(self):
            self.b = 2 * self.a

    class AbstractShape(ec.Module, strict=True):
        sides: ec.AbstractVar[int]

        @abc.abstractmethod
        def area(self) -> float: ...

    class Square(AbstractShape):
        sides: int

        def area(self) -> float:
            return 1.0

    class Mixin:
        def __init__(self, y: int):
            self.y = y

    class Mixed(ec.Module, Mixin):
        y: int
"""

PROGRAM = """
    import sys
    import jaxtyping, pytest

    sys.path.insert(0, sys.argv[1])
    with jaxtyping.install_import_hook(["ecliptic", "user_module"], "beartype.beartype"):
        import ecliptic as ec
        import user_module as u
    import copy, dataclasses, inspect, pickle
    import jax, jax.numpy as jnp

    m = u.Linear(jnp.ones((2, 3)), jnp.ones(2))
    {body}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hooked")
    (folder / "user_module.py").write_text(textwrap.dedent(USER_MODULE))
    return folder


def run(folder, body):
    program = textwrap.dedent(PROGRAM).replace("{body}", textwrap.dedent(body))
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_right_use_of_user_modules_passes(folder):
    run(
        folder,
        """
        assert m(jnp.ones(3)).shape == (2,)
        assert isinstance(m.wrong, ec.Module) and m.wrong == m.wrong
        assert u.Sub(m.weight, m.bias, extra=3)(jnp.ones(3)).shape == (2,)
        assert u.Converted([1.0, 2.0]).x.shape == (2,)
        hand = u.Hand([1.0, 2.0])
        assert (hand.x.shape, hand.size, hand.fn) == ((2,), 3, jnp.tanh)
        assert u.Hand[int]([1.0]).x.shape == (1,)
        assert u.Post(2).b == 4
        assert u.Square(4).area() == 1.0
        assert u.Mixed(3).y == 3
        assert jax.tree.map(lambda x: None, m).weight is None
        assert jax.jit(lambda n, x: n(x))(m, jnp.ones(3)).shape == (2,)
        assert jax.vmap(u.Linear)(jnp.ones((4, 2, 3)), jnp.ones((4, 2))).bias.shape == (4, 2)
        assert copy.deepcopy(m) == m == pickle.loads(pickle.dumps(m))
        assert dataclasses.replace(m, bias=jnp.zeros(2)).bias.sum() == 0
        assert list(inspect.signature(u.Linear).parameters) == ["weight", "bias"]
        partial = ec.Partial(m, jnp.ones(3))
        assert partial().shape == (2,)
        assert ec.Static((1, "x")) == ec.Static((1, "x"))
        """,
    )


def test_wrong_use_of_user_modules_is_found(folder):
    run(
        folder,
        """
        for wrong in (
            lambda: u.Linear(jnp.ones((2, 3)), jnp.ones(3)),
            lambda: u.Sub(jnp.ones((2, 3)), jnp.ones(3)),
            lambda: m.wrong(jnp.ones(3)),
            lambda: m(jnp.ones((3, 3))),
            lambda: u.Hand(3),
            lambda: u.Post("a"),
            lambda: u.Square("a"),
        ):
            with pytest.raises(jaxtyping.TypeCheckError):
                wrong()
        with pytest.raises(TypeError, match="abstract"):
            u.AbstractShape()
        with pytest.raises(dataclasses.FrozenInstanceError):
            m.bias = jnp.ones(2)
        """,
    )


TOPICS = ("methods", "equality", "structure", "classes", "wrapper", "static", "abstract")


def test_ecliptic_itself_passes_its_tests_under_the_hook():
    result = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
            "--jaxtyping-packages=ecliptic,beartype.beartype",
            *(str(HERE / f"test_{topic}.py") for topic in TOPICS),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
