"""What Ecliptic costs, as ratios measured in one process, and the ceilings that they must keep.

``python -m bench`` prints the table. A topic is a file (``construction.py``, ``jit.py``, ...) that
lists its rows; a row names what is timed, what it is compared with, and the entry of
``budgets.toml`` that limits it. ``_measure.py`` is the clock, ``_judge.py`` the verdict.
"""

import os

# The budgets are about what happens before a program runs, so they are stated for the CPU. This
# has to come before JAX is imported for the first time.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
