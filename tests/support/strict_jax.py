"""The environment of every test: several CPU devices, and a JAX that promotes nothing silently.

Imported before JAX is: by `tests/conftest.py`, and as a plugin (`-p`) where the examples in the
docstrings run alone. A process that a test starts inherits it.
"""

import os

_DEVICES = "--xla_force_host_platform_device_count=4"

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_DEVICES}".strip()
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
