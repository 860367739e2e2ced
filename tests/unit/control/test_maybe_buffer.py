import jax
import jax.numpy as jnp
import pytest
from beartype import beartype
from beartype.roar import BeartypeException
from jaxtyping import Array, Float

from ecliptic.control import Buffer, MaybeBuffer, buffer_at_set, filter_while_loop

KINDS = [jnp.zeros(3), Buffer(jnp.zeros(3))]


@pytest.mark.parametrize("value", KINDS)
@pytest.mark.parametrize(
    ("of", "is_it"),
    [
        (jax.Array, True),
        (Float[Array, "3"], True),
        (Float[Array, "4"], False),
        (int | jax.Array, True),
        (int, False),
    ],
)
def test_an_instance_is_an_array_of_the_kind_or_a_buffer_of_one(value, of, is_it):
    assert isinstance(value, MaybeBuffer[of]) is is_it


def test_what_is_neither_is_no_instance():
    assert not isinstance(3, MaybeBuffer[jax.Array])
    assert not isinstance(jnp.zeros(3), MaybeBuffer)


def test_it_shows_what_it_is_of():
    of = MaybeBuffer[int]
    assert repr(of) == "<class 'ecliptic.control._maybe_buffer.MaybeBuffer[int]'>"
    assert repr(of | None) == "ecliptic.control._maybe_buffer.MaybeBuffer[int] | None"


def test_beartype_takes_it_and_unions_of_it():
    @beartype
    def shape(x: MaybeBuffer[Float[Array, "3"]] | None) -> MaybeBuffer[Float[Array, "3"]]:
        return x

    assert shape(KINDS[1]) is KINDS[1]
    with pytest.raises(BeartypeException):
        shape(jnp.zeros(4))


def test_the_body_of_a_loop_sees_one():
    seen = []

    def step(carry):
        i, x = carry
        seen.append(isinstance(x, MaybeBuffer[Float[Array, "3"]]))
        return i + 1, buffer_at_set(x, i, 1.0)

    filter_while_loop(
        lambda carry: carry[0] < 3, step, (0, jnp.zeros(3)),
        kind="checkpointed", max_steps=3, buffers=lambda carry: carry[1],
    )  # fmt: skip
    assert seen
    assert all(seen)
