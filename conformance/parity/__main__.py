"""``python -m conformance.parity``."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from conformance.parity import main

main()
