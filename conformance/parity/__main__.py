"""``python -m conformance.parity``."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Each program is compiled and run once.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

from conformance.parity import main

main()
