"""MJX, whose warp implementation registers its `DataWarp` with JAX as a vmappable type.

Needs `mujoco-mjx`. The class can be had without `warp-lang`; only its programs need that.
"""

import contextlib
import io
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

# Without warp-lang the import prints that there is none, which is no news here.
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    from mujoco import mjx
    from mujoco.mjx.warp import types as warp_types

DataWarp = warp_types.DataWarp

BALL = mujoco.MjModel.from_xml_string(
    """
    <mujoco>
      <option iterations="1" ls_iterations="4"/>
      <worldbody>
        <geom type="plane" size="1 1 1"/>
        <body pos="0 0 0.2">
          <freejoint/>
          <geom type="sphere" size="0.1" mass="1"/>
        </body>
      </worldbody>
    </mujoco>
    """
)

PENDULUM = mujoco.MjModel.from_xml_string(
    """
    <mujoco>
      <option iterations="1" ls_iterations="4"/>
      <worldbody>
        <body pos="0 0 1">
          <joint name="hinge" type="hinge" axis="0 1 0" damping="0.1"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.5" mass="1"/>
        </body>
      </worldbody>
      <actuator><motor joint="hinge"/></actuator>
    </mujoco>
    """
)

# What stands in the fields of a hand-made object.
CONTACTS = 16
SIZE = 7


def hand_made(*batch: int) -> Any:
    """A `DataWarp` without warp-lang: zeros in what is batched, a buffer in what is not."""

    def value(field: Any) -> Any:
        if field.type is not jax.Array:
            return SIZE
        if field.name in warp_types.DATA_NON_VMAP:
            return jnp.arange(float(CONTACTS))
        return jnp.zeros((*batch, 3, 2))

    return DataWarp(**{field.name: value(field) for field in DataWarp.fields()})


def hand_made_data(*batch: int) -> Any:
    """An `mjx.Data` with a hand-made `DataWarp` in it."""
    data = mjx.make_data(BALL, impl="jax").replace(_impl=None)
    data = jax.tree.map(lambda x: jnp.zeros((*batch, *x.shape), x.dtype), data)
    return data.replace(_impl=hand_made(*batch))


def per_world(data: Any) -> Any:
    """A specification that maps every array and every `DataWarp`, written as a user would."""

    def is_warp(x: Any) -> bool:
        return isinstance(x, DataWarp)

    def axis(leaf: Any) -> Any:
        return 0 if isinstance(leaf, jax.Array) or is_warp(leaf) else None

    return jax.tree.map(axis, data, is_leaf=is_warp)


def warp_data(model: Any) -> Any:
    """An `mjx.Data` of the warp implementation; needs warp-lang."""
    return mjx.make_data(model, impl="warp", naconmax=100, njmax=100)


def assert_same(one: Any, other: Any) -> None:
    """Equal in every leaf: structure, shape, dtype and bits."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    named = jax.tree_util.tree_leaves_with_path(one)
    for (path, x), y in zip(named, jax.tree.leaves(other), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y, err_msg=jax.tree_util.keystr(path))


def assert_close(one: Any, other: Any) -> None:
    """As `assert_same`, for two programs that round differently."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
