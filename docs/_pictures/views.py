"""Makes the page that the guide to looking at models shows."""

import os
from pathlib import Path

import jax

import ecliptic as ec
from ecliptic import view

model = ec.nn.MLP(in_size=2, out_size=3, width_size=8, depth=2, key=jax.random.key(0))
view.tree_html(model).save(Path(os.environ["GALLERY_OUT"]) / "model.html")
