"""A MATLAB file (version 5): load('run.mat'). Names are those of MATLAB, and words are texts."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.files import write_bytes
from attnlab.store.formats import Format, formats
from attnlab.store.packing import Kind

MOST_BYTES = 2**31 - 1000
"""Of one array: version 5 counts its bytes with 32 bits."""

LONGEST_NAME = 31
"""Characters of a name: SciPy writes no more, whatever MATLAB takes."""


def write(thing: Any, kind: Kind, path: Path) -> None:
    """Write the labelled arrays of a result."""
    from scipy.io import savemat

    labelled = kind.label(thing)
    values: dict[str, Any] = {
        name: variable.values for name, variable in labelled.variables.items()
    }
    values |= {name: str(value) for name, value in labelled.words.items() if name not in values}
    content: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.nbytes > MOST_BYTES:
            raise ValueError(
                f"{path}: {name} has {value.nbytes / 1e9:.3g} GB, and an array in a .mat file may"
                " have 2 GB. Save it as a .nc file: MATLAB reads it with ncread."
            )
        content[_matlab_name(name, content)] = _matlab_value(value)
    image: Any = io.BytesIO()
    savemat(image, content, oned_as="column")
    write_bytes(path, image.getbuffer())


def _matlab_name(name: str, taken: dict[str, Any]) -> str:
    """A name that MATLAB takes and that is not taken: letters, digits and _, a letter first."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    plain = (plain if plain[:1].isalpha() else f"a{plain}")[:LONGEST_NAME]
    number = 1
    while plain in taken:
        number += 1
        plain = f"{plain[: LONGEST_NAME - 4]}_{number}"
    return plain


def _matlab_value(value: Any) -> Any:
    """An array, a text, or a cell array of texts."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "UO":
        return value.astype(object) if value.ndim else str(value)
    return value


formats.register("mat")(Format("a MATLAB file", write))
