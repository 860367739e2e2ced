"""All rows, in the order of the table."""

from bench import (
    asynchrony,
    construction,
    flatten,
    imports,
    jit,
    methods,
    training,
    transforms,
)
from bench._row import Row

TOPICS = (construction, methods, flatten, jit, transforms, asynchrony, training, imports)
ROWS: tuple[Row, ...] = tuple(row for topic in TOPICS for row in topic.ROWS)
