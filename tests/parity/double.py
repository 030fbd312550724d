"""The original implementation in double precision throughout.

transformers computes softmax, norms and rotary angles in single precision whatever the precision of
the model is. Here the names for single precision mean double precision while the context lasts, so
that a model made and run inside it rounds to 1e-16.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import safetensors.torch  # noqa: F401 - makes a table of types at import, before float32 is replaced
import torch


@contextmanager
def in_double() -> Iterator[None]:
    """Single precision is double precision: torch.float32, torch.float and Tensor.float(), and the
    default.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with (
            mock.patch.object(torch, "float32", torch.float64),
            mock.patch.object(torch, "float", torch.float64),
            mock.patch.object(torch.Tensor, "float", lambda tensor: tensor.to(torch.float64)),
        ):
            yield
    finally:
        torch.set_default_dtype(before)
