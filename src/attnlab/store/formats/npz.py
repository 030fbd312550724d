"""Named NumPy arrays: numpy.load(path, allow_pickle=False). The words, such as the Spec, are arrays
of one text each.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.files import write_bytes
from attnlab.store.formats import Format, formats
from attnlab.store.packing import Kind


def write(thing: Any, kind: Kind, path: Path) -> None:
    """Write the labelled arrays of a result."""
    labelled = kind.label(thing)
    arrays = {name: variable.values for name, variable in labelled.variables.items()}
    arrays |= {
        name: np.array(str(value)) for name, value in labelled.words.items() if name not in arrays
    }
    plain: dict[str, Any] = {}
    for name, array in arrays.items():
        plain[name] = (
            array.astype(str) if array.dtype == object else array
        )  # NumPy would pickle objects
    image = io.BytesIO()
    np.savez(image, **plain)
    write_bytes(path, image.getbuffer())


formats.register("npz")(Format("NumPy arrays", write))
