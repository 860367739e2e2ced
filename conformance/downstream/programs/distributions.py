"""Filtered transformations over the distributions of Distrax, which are PyTrees (`jittable`).

Needs ``pip install distrax``. That brings TensorFlow Probability, which uses names that JAX has
deprecated: it works with JAX 0.10.
"""

import distrax
import jax
import jax.numpy as jnp

import ecliptic as ec


class Policy(ec.Module):
    """A distribution in a field, beside a network."""

    noise: distrax.Normal
    network: ec.nn.Linear

    def log_prob(self, x: jax.Array, action: jax.Array) -> jax.Array:
        """The density of an action."""
        return jnp.sum(self.noise.log_prob(action - self.network(x)))


def main() -> None:
    """Differentiates, compiles, maps and loops over a distribution."""
    noise = distrax.Normal(loc=jnp.zeros(2), scale=jnp.ones(2))
    policy = Policy(noise, ec.nn.Linear(3, 2, key=jax.random.key(0)))
    x, action = jnp.ones(3), jnp.ones(2)

    value, gradient = ec.filter_jit(ec.filter_value_and_grad(Policy.log_prob))(policy, x, action)
    assert jnp.isfinite(value)
    assert gradient.noise.loc.shape == (2,)

    many = ec.filter_vmap(lambda loc: distrax.Normal(loc, 1.0))(jnp.arange(4.0))
    assert ec.filter_vmap(lambda d: d.log_prob(0.0))(many).shape == (4,)

    def step(noise: distrax.Normal, x: jax.Array) -> tuple[distrax.Normal, jax.Array]:
        return noise, noise.log_prob(x).sum()

    _, densities = ec.filter_scan(step, noise, jnp.ones((3, 2)))
    assert densities.shape == (3,)
    print("distrax", distrax.__version__, "works")


if __name__ == "__main__":
    main()
