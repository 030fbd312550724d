"""An Apache Parquet table, which pandas, polars, R and DuckDB read. Complex columns become two, as in
a .csv file. Facts about the table are its metadata under the key attnlab, as JSON.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.checks import MissingLibrary
from attnlab.files import write_bytes
from attnlab.store.formats import Format, formats
from attnlab.store.formats.csv import table_of
from attnlab.store.packing import Kind
from attnlab.store.plain import plain_value


def write(thing: Any, kind: Kind, path: Path) -> None:
    """Write the table of a result."""
    columns = table_of(thing, kind, path)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as problem:
        raise MissingLibrary(
            "A .parquet file needs pyarrow, which is not installed: pip install pyarrow. "
            "A .csv or .nc file needs no other library."
        ) from problem
    table = pyarrow.table({name: _column(values) for name, values in columns.items()})
    facts = {str(name): plain_value(value) for name, value in kind.label(thing).words.items()}
    content = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({"attnlab": json.dumps(facts)}), content)
    write_bytes(path, content.getbuffer())


def _column(values: np.ndarray) -> Any:
    """Return the values as Arrow takes them: texts as a list."""
    return values.tolist() if values.dtype.kind in "OU" else values


formats.register("parquet")(Format("a Parquet table", write))
