"""All rows, in the order of the table."""

from bench import (
    asynchrony,
    checks,
    construction,
    flatten,
    imports,
    jit,
    layers,
    loops,
    methods,
    serialise,
    training,
    transforms,
)
from bench._row import Row

TOPICS = (
    construction,
    methods,
    flatten,
    jit,
    transforms,
    asynchrony,
    checks,
    training,
    layers,
    loops,
    serialise,
    imports,
)
ROWS: tuple[Row, ...] = tuple(row for topic in TOPICS for row in topic.ROWS)
