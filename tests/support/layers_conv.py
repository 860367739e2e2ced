"""Rows for the table of layers: convolutions, transposed convolutions and pools."""

from typing import Any

from ecliptic import nn


def _conv(key: Any, dtype: Any) -> nn.Conv2d:
    return nn.Conv2d(2, 3, (2, 3), stride=(1, 2), padding="same", dtype=dtype, key=key)


def _transpose(key: Any, dtype: Any) -> nn.ConvTranspose1d:
    return nn.ConvTranspose1d(
        2, 2, 3, stride=2, padding=1, output_padding=1, groups=2, dtype=dtype, key=key
    )


# name, make, shape of the input, random, learnt
ROWS: tuple[tuple[Any, ...], ...] = (
    ("Conv2d", _conv, (2, 3, 4)),
    ("ConvTranspose1d", _transpose, (2, 3)),
    ("AvgPool1d", lambda key, dtype: nn.AvgPool1d(2, 2, use_ceil=True), (2, 5), False, False),
    ("MaxPool2d", lambda key, dtype: nn.MaxPool2d(2, 2, padding=1), (2, 3, 4), False, False),
    ("AdaptiveAvgPool2d", lambda key, dtype: nn.AdaptiveAvgPool2d(2), (2, 3, 4), False, False),
)
