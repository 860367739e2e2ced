"""Learn the law of an oscillator from its motion, with a neural ODE in diffrax.

diffrax solves differential equations, and is written for Equinox. `install()` lets every
`import equinox` give Ecliptic, also in diffrax: its solvers and terms are then Modules of Ecliptic.
The right-hand side of the equation is a network, trained through the solver. Run it with

    pip install diffrax
    python examples/neural_ode.py

which leaves `neural_ode.png` in the folder GALLERY_OUT, by default `demo_output/`. With SMOKE=1 in
the environment it trains for a moment only.
"""

# %%
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import ecliptic as ec
from ecliptic.compat import equinox

equinox.install()  # Before anything imports Equinox.

import diffrax  # noqa: E402

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
STEPS = 30 if SMOKE else 1500
BATCH = 32
WINDOW = 8
SEED = 0

Times = Float[Array, " times"]
Start = Float[Array, " 2"]
Path2d = Float[Array, "times 2"]

# %% [markdown]
# ## An equation and its solution
#
# What has to be solved is a function of the time, the place, and arguments that are not used here.
# The oscillator of van der Pol pushes small swings up and large ones down.


# %%
def oscillator(t: Float[Array, ""], y: Start, args: None) -> Start:
    place, speed = y
    return jnp.stack([speed, (1 - place**2) * speed - place])


def solve(law, times: Times, start: Start) -> Path2d:
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(law),
        diffrax.Heun(),
        t0=times[0],
        t1=times[-1],
        dt0=0.05,
        y0=start,
        saveat=diffrax.SaveAt(ts=times),
    )
    return solution.ys


# %% [markdown]
# ## The model
#
# A Module with the same signature. It can be solved like the true law.


# %%
class Law(ec.Module):
    network: ec.nn.MLP

    def __init__(self, key: PRNGKeyArray):
        self.network = ec.nn.MLP(2, 2, width_size=64, depth=2, activation=jnp.tanh, key=key)

    def __call__(self, t: Float[Array, ""], y: Start, args: None) -> Start:
        return self.network(y)


# %% [markdown]
# ## Training
#
# From a place that was seen, the solution has to run through the places that were seen next. Short
# windows are enough, and easier to learn than long motions.


# %%
def load_data(key: PRNGKeyArray) -> tuple[Times, Float[Array, "paths times 2"]]:
    """Motions from 32 random starts, each seen 41 times, with a little noise."""
    start_key, noise_key = jax.random.split(key)
    starts = jax.random.uniform(start_key, (32, 2), minval=-2.5, maxval=2.5)
    times = jnp.linspace(0.0, 6.0, 41)
    paths = jax.vmap(lambda start: solve(oscillator, times, start))(starts)
    return times, paths + 0.02 * jax.random.normal(noise_key, paths.shape)


def mean_loss(law: Law, times: Times, seen: Float[Array, "batch times 2"]) -> Float[Array, ""]:
    solved = jax.vmap(lambda start: solve(law, times, start))(seen[:, 0])
    return jnp.mean((solved - seen) ** 2)


@ec.filter_jit
def train(
    law: Law, times: Times, paths: Float[Array, "paths times 2"], key: PRNGKeyArray
) -> tuple[Law, Float[Array, " steps"]]:
    """Train the law; return it with the loss of every step."""
    optimiser = optax.adam(optax.cosine_decay_schedule(5e-3, STEPS))

    def step(carry, key):
        law, state = carry
        path_key, first_key = jax.random.split(key)
        path = jax.random.randint(path_key, (BATCH, 1), 0, len(paths))
        first = jax.random.randint(first_key, (BATCH, 1), 0, len(times) - WINDOW + 1)
        seen = paths[path, first + jnp.arange(WINDOW)]
        # The law does not depend on the time: every window may start at zero.
        loss, gradients = ec.filter_value_and_grad(mean_loss)(law, times[:WINDOW], seen)
        updates, state = optimiser.update(gradients, state)
        return (ec.apply_updates(law, updates), state), loss

    state = optimiser.init(ec.filter(law, ec.is_inexact_array))
    progress = ec.TqdmProgress(description="training")
    keys = jax.random.split(key, STEPS)
    (law, _), losses = ec.filter_scan(step, (law, state), keys, progress=progress)
    return law, losses


# %%
def draw(law: Law, paths, times: Times, true: Path2d, learned: Path2d, path: Path) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
    places, speeds = np.meshgrid(np.linspace(-3.5, 3.5, 30), np.linspace(-4.5, 4.5, 30))
    points = jnp.stack([places.ravel(), speeds.ravel()], axis=-1)
    flow = np.asarray(jax.vmap(lambda y: law(0.0, y, None))(points)).reshape(30, 30, 2)
    left.streamplot(places, speeds, flow[..., 0], flow[..., 1], color="silver", linewidth=0.7)
    left.plot(*np.asarray(paths).reshape(-1, 2).T, ".", color="tab:red", markersize=3, label="data")
    left.plot(*learned.T, color="tab:blue", linewidth=2, label="learned, a new start")
    left.plot(*learned[0], "o", color="tab:blue")
    left.set(xlabel="place", ylabel="speed", title="The learned law")
    left.set(xlim=(-3.5, 3.5), ylim=(-4.5, 4.5))
    left.legend(loc="upper left", framealpha=1, edgecolor="white")

    right.plot(times, learned[:, 0], color="tab:blue", linewidth=2, label="learned")
    right.plot(times, true[:, 0], "--", color="black", linewidth=1, label="true")
    right.axvspan(0, 6, color="tab:red", alpha=0.08, linewidth=0, label="as long as the data")
    right.set(xlabel="time", ylabel="place", title="From a new start", ylim=(-3, 4))
    right.legend(frameon=False, ncols=3, loc="upper center")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    data_key, model_key, train_key = jax.random.split(jax.random.key(SEED), 3)
    print(f"diffrax solves with Modules of Ecliptic: {issubclass(diffrax.Heun, ec.Module)}")
    times, paths = load_data(data_key)
    law, losses = train(Law(model_key), times, paths, train_key)
    print(f"mean loss of ten steps: {losses[:10].mean():.4f} first, {losses[-10:].mean():.4f} last")

    # Four times as long as anything that was seen.
    long = jnp.linspace(0.0, 24.0, 301)
    start = jnp.array([0.4, 0.0])
    true, learned = solve(oscillator, long, start), solve(law, long, start)
    print(f"mean error of the place from a new start: {jnp.abs(true - learned)[:, 0].mean():.3f}")

    OUT.mkdir(parents=True, exist_ok=True)
    draw(law, paths, long, true, learned, OUT / "neural_ode.png")
    print(f"picture: {OUT / 'neural_ode.png'}")


if __name__ == "__main__":
    main()
