"""Optional packages: imported when they are needed, and asked for where they lack."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from ecliptic import nn, view
from ecliptic.errors import MissingPackageError

LAYER = nn.Linear(2, 3, key=jax.random.key(0))


def test_nothing_optional_is_imported_before_use():
    program = """
import sys, jax, jax.numpy as jnp
import ecliptic as ec
from ecliptic import view
layer = ec.nn.Linear(2, 3, key=jax.random.key(0))
summary = view.tree_summary(layer, jnp.ones(2))
texts = [str(summary), summary._repr_html_(), str(view.tree_diff(layer, layer)), repr(layer)]
print({name.partition(".")[0] for name in sys.modules} & {"treescope", "rich", "matplotlib"})
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "set()\n"


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("treescope", lambda: view.tree_html(LAYER)),
        ("rich", lambda: view.tree_summary(LAYER).__rich__()),
        ("matplotlib", lambda: view.plot_histograms(LAYER)),
        ("matplotlib", lambda: view.plot_sharding(jnp.ones(2))),
    ],
)
def test_a_missing_package_is_named(package, use, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingPackageError, match=rf"`{package}`.*pip install {package}`.*\[view\]"
    ):
        use()
