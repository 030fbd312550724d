"""pytorch_model.bin, where the user asks for it: torch unpickles nothing but tensors
(weights_only=True).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.checks import MissingLibrary
from attnlab.models.checkpoints.files import InMemory, read_json
from attnlab.models.checkpoints.record import BadModel, Tensors

WHOLE, INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"


def open_torch_files(folder: Path) -> Tensors:
    """Return the tensors of pytorch_model.bin in a folder, or of the files that its index names."""
    if (folder / INDEX).is_file():
        where = read_json(folder / INDEX).get("weight_map")
        names = sorted({str(name) for name in where.values()}) if isinstance(where, dict) else []
    else:
        names = [WHOLE]
    if not names or any(Path(name).name != name or not (folder / name).is_file() for name in names):
        raise BadModel(
            f"The folder {folder.name} must hold {WHOLE}, or all files that {INDEX} names. Copy"
            " them there."
        )
    try:
        import torch
    except ImportError:
        raise MissingLibrary(
            f"{names[0]} is a file of torch, which is not installed: pip install torch (the build"
            " for the CPU is small). Or convert the file to safetensors on a machine that has"
            " torch, and load the folder with that file."
        ) from None
    state: dict[str, Any] = {}
    for name in names:
        try:
            found = torch.load(folder / name, map_location="cpu", weights_only=True)
        except (
            Exception
        ) as error:  # torch raises errors of many kinds for a damaged or hostile file
            raise BadModel(
                f"torch.load(weights_only=True) refuses {name}: {_first_line(error)} It is damaged,"
                " or holds more than tensors. Convert it to safetensors where you trust it."
            ) from None
        if not isinstance(found, dict):
            raise BadModel(
                f"{name} must hold a state dict, tensors by their names, but holds a"
                f" {type(found).__name__}."
            )
        state |= found
    return InMemory(state)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0][:160].rstrip(".") if lines else type(error).__name__) + "."
