"""Teach a network to balance a pole, in hundreds of simulated worlds at once.

MuJoCo MJX simulates in JAX. A rollout is a `filter_scan` over time; `filter_vmap` maps it over
worlds, and again over policies, which are Modules with functions in them. They are trained by
evolution: try many policies close to one another, and go where the good ones are. No derivative of
the simulation is needed, so it may be of MJX's warp implementation, which is used where it is
installed. Run it with

    pip install mujoco-mjx      # or "mujoco-mjx[warp]"
    python examples/worlds.py

which leaves `worlds.png` in the folder GALLERY_OUT, by default `demo_output/`. With SMOKE=1 in the
environment it trains for a moment only.
"""

# %%
import contextlib
import importlib.util
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import mujoco
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import ecliptic as ec

with contextlib.redirect_stdout(None):  # It prints that warp is not installed.
    from mujoco import mjx

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
GENERATIONS = 10 if SMOKE else 40
POLICIES = 16 if SMOKE else 64
WORLDS = 4 if SMOKE else 8
STEPS = 50 if SMOKE else 150
SPREAD = 0.2
SEED = 0

Times = Float[Array, " times"]

# %% [markdown]
# ## The world
#
# A pole on a cart, which a motor moves. `impl` says how MJX simulates; the rest of the program is
# the same for both.

# %%
CART_POLE = """
<mujoco>
  <option timestep="0.02" iterations="1" ls_iterations="4"/>
  <worldbody>
    <body>
      <joint name="cart" type="slide" axis="1 0 0" damping="0.1"/>
      <geom type="box" size="0.15 0.1 0.08" mass="1" contype="0"/>
      <body>
        <joint name="pole" type="hinge" axis="0 1 0"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.6" mass="0.1" contype="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="cart" gear="10"/></actuator>
</mujoco>
"""
IMPL = "warp" if importlib.util.find_spec("warp") else "jax"
cart_pole = mujoco.MjModel.from_xml_string(CART_POLE)
model = mjx.put_model(cart_pole, impl=IMPL)
at_rest = mjx.make_data(cart_pole, impl=IMPL)

# %% [markdown]
# ## A rollout
#
# One policy in one world: the state of the simulation is the carry of the loop. The reward of a
# step is one for a pole that stands upright on a cart in the middle. Then many worlds, which start
# with a tilt of their own each.


# %%
def make_policy(key: PRNGKeyArray) -> ec.nn.MLP:
    return ec.nn.MLP(4, 1, 16, 1, activation=jnp.tanh, final_activation=jnp.tanh, key=key)


def roll_out(policy: ec.nn.MLP, tilt: Float[Array, ""]) -> tuple[Times, Times]:
    """The angle of the pole, and the reward, at each step."""

    def step(data, _):
        action = policy(jnp.concatenate([data.qpos, data.qvel]))
        data = mjx.step(model, data.replace(ctrl=action))
        place, angle = data.qpos
        return data, (angle, jnp.exp(-(angle**2) - 0.1 * place**2))

    start = at_rest.replace(qpos=at_rest.qpos.at[1].set(tilt))
    _, (angles, rewards) = ec.filter_scan(step, start, length=STEPS)
    return angles, rewards


roll_out_worlds = ec.filter_vmap(roll_out, in_axes=(None, 0))

# %% [markdown]
# ## Evolution
#
# Many policies in many worlds: the one that there is, with noise added or taken away. The average
# of the noise, weighed with the rewards, is the direction to go in (Salimans et al., 2017). A
# generation is a step of a loop again.


# %%
def with_noise(policy: ec.nn.MLP, noise: ec.nn.MLP, scale: float) -> ec.nn.MLP:
    return ec.apply_updates(policy, jax.tree.map(lambda x: scale * x, noise))


def random_tilts(key: PRNGKeyArray) -> Float[Array, " worlds"]:
    return jax.random.uniform(key, (WORLDS,), minval=-0.3, maxval=0.3)


@ec.filter_jit
def train(policy: ec.nn.MLP, key: PRNGKeyArray) -> tuple[ec.nn.MLP, Float[Array, " generations"]]:
    """Train the policy; return it with the mean reward of every generation."""
    optimiser = optax.adam(0.1)
    parameters = ec.filter(policy, ec.is_inexact_array)

    def generation(carry, key):
        policy, state = carry
        noise_key, tilt_key = jax.random.split(key)
        tilts = random_tilts(tilt_key)

        def try_out(key):
            noise = optax.tree.random_like(key, parameters)

            def reward(scale):
                return roll_out_worlds(with_noise(policy, noise, scale), tilts)[1].mean()

            added, taken_away = jax.vmap(reward)(jnp.array([SPREAD, -SPREAD]))
            gain = (added - taken_away) / (2 * SPREAD)
            return jax.tree.map(lambda x: gain * x, noise), (added + taken_away) / 2

        ascents, rewards = ec.filter_vmap(try_out)(jax.random.split(noise_key, POLICIES // 2))
        descent = jax.tree.map(lambda x: -x.mean(axis=0), ascents)
        updates, state = optimiser.update(descent, state)
        return (ec.apply_updates(policy, updates), state), rewards.mean()

    carry = policy, optimiser.init(parameters)
    progress = ec.TqdmProgress(description="training")
    keys = jax.random.split(key, GENERATIONS)
    (policy, _), rewards = ec.filter_scan(generation, carry, keys, progress=progress)
    return policy, rewards


# %%
def draw(before: np.ndarray, after: np.ndarray, rewards: np.ndarray, path: Path) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    seconds = 0.02 * np.arange(1, STEPS + 1)
    for angles, colour, label in ((before, "silver", "before"), (after, "tab:blue", "after")):
        lines = left.plot(seconds, np.degrees(angles).T, color=colour, linewidth=1.2)
        lines[0].set_label(f"{label} training")
    left.set(xlabel="time in seconds", ylabel="angle in degrees", ylim=(-40, 40))
    left.set(title=f"The pole in {len(before)} worlds")
    left.legend(frameon=False, loc="upper right")
    right.plot(np.arange(1, len(rewards) + 1), rewards, color="tab:blue")
    right.set(xlabel="generation", ylabel="mean reward of a step", title="Evolution")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    policy_key, train_key, test_key = jax.random.split(jax.random.key(SEED), 3)
    print(f"simulated by impl={IMPL!r}: {POLICIES} policies in {WORLDS} worlds each")
    first = make_policy(policy_key)
    policy, rewards = train(first, train_key)
    print(f"mean reward of a step: {rewards[0]:.3f} first, {rewards[-1]:.3f} last")

    test = ec.filter_jit(roll_out_worlds)
    tilts = random_tilts(test_key)
    before, after = test(first, tilts)[0], test(policy, tilts)[0]
    for name, angles in (("before", before), ("after", after)):
        upright = jnp.abs(angles[:, -1]) < 0.2
        print(f"{name} training: upright at the end in {upright.sum()} of {WORLDS} worlds")

    OUT.mkdir(parents=True, exist_ok=True)
    draw(np.asarray(before), np.asarray(after), np.asarray(rewards), OUT / "worlds.png")
    print(f"picture: {OUT / 'worlds.png'}")


if __name__ == "__main__":
    main()
