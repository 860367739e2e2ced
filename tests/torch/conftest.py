"""What every comparison with PyTorch stands on: weights and inputs that are the same each run."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
