"""The pictures: histograms and shardings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from ecliptic.errors import LeafError
from ecliptic.view import plot_histograms, plot_sharding

TREE = {
    "w": jnp.array([[0.0, 1.0], [2.0, jnp.nan]]),
    "h": jnp.ones(3, jnp.bfloat16),
    "c": jnp.array([3 + 4j]),
    "i": jnp.arange(3),
    "f": max,
}


def test_each_inexact_array_has_a_histogram():
    figure = plot_histograms(TREE, root="g")
    assert [axes.get_title() for axes in figure.axes] == ["g['c']", "g['h']", "g['w']"]
    heights = [sum(bar.get_height() for bar in axes.patches) for axes in figure.axes]
    assert heights == [1, 3, 3]


def test_a_histogram_counts_zeros_and_what_is_not_finite():
    (axes,) = plot_histograms(TREE["w"]).axes
    assert axes.get_xlabel() == "1 ± 0.816\n1 of 4 zero\n1 of 4 not finite"


def test_a_filter_spec_picks_what_is_drawn():
    spec = dict.fromkeys(TREE, False) | {"i": True}
    assert len(plot_histograms(TREE, filter_spec=spec).axes) == 1


def test_an_array_without_finite_elements_is_no_error():
    (axes,) = plot_histograms(jnp.full(2, jnp.inf)).axes
    assert axes.get_xlabel() == "2 of 2 not finite"


def test_columns_are_as_wished():
    figure = plot_histograms([jnp.ones(1)] * 3, columns=2)
    assert [axes.get_subplotspec().get_gridspec().ncols for axes in figure.axes] == [2, 2, 2]


@pytest.mark.parametrize("plot", [plot_histograms, plot_sharding])
def test_there_must_be_something_to_draw(plot):
    with pytest.raises(LeafError, match=f"`{plot.__name__}` found no array"):
        plot({"f": max})


@pytest.mark.parametrize("plot", [plot_histograms, plot_sharding])
def test_a_traced_array_is_refused_by_path(plot):
    with pytest.raises(LeafError, match=r"array at `model\[0\]`: it is traced"):
        jax.jit(lambda x: plot([x]))(jnp.ones(2))


def rectangles(axes):
    return {
        text.get_text(): (*box.get_xy(), box.get_width(), box.get_height())
        for text, box in zip(axes.texts, axes.patches, strict=True)
    }


@pytest.mark.parametrize(
    ("shape", "spec", "drawn"),
    [
        ((4, 6), ("x", "y"), {"0": (0, 0, 3, 2), "1": (3, 0, 3, 2), "2": (0, 2, 3, 2),
                              "3": (3, 2, 3, 2)}),
        ((4, 6), ("x",), {"0, 1": (0, 0, 6, 2), "2, 3": (0, 2, 6, 2)}),
        ((4, 6), (), {"0, 1, 2, 3": (0, 0, 6, 4)}),
        ((8,), (("x", "y"),), {"0": (0, 0, 2, 1), "1": (2, 0, 2, 1), "2": (4, 0, 2, 1),
                               "3": (6, 0, 2, 1)}),
        ((3, 2, 5), (None, "y"), {"0, 2": (0, 0, 5, 1), "1, 3": (0, 1, 5, 1)}),
        ((), (), {"0, 1, 2, 3": (0, 0, 1, 1)}),
    ],
)  # fmt: skip
def test_a_rectangle_stands_for_what_a_device_holds(shape, spec, drawn):
    mesh = jax.make_mesh((2, 2), ("x", "y"))
    sharding = NamedSharding(mesh, PartitionSpec(*spec))
    for array in (
        jax.device_put(np.ones(shape, np.float32), sharding),
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding),
    ):
        (axes,) = plot_sharding(array).axes
        assert rectangles(axes) == drawn
        assert axes.get_title() == f"model\nf32[{','.join(map(str, shape))}]"
