"""Tables that keep complex numbers in memory, and split them in files and descriptions."""

from __future__ import annotations

from typing import Any

import pandas


class Table(pandas.DataFrame):
    """A pandas.DataFrame whose complex columns become NAME_real and NAME_imaginary in to_csv,
    to_parquet, to_feather and describe.

    In memory `table["lambda1"]` stays complex.
    """

    @property
    def _constructor(self) -> Any:
        return Table

    def split_complex(self) -> pandas.DataFrame:
        """Return a plain DataFrame with two real columns in the place of each complex one."""
        columns: dict[Any, Any] = {}
        for name in self.columns:
            if self[name].dtype.kind == "c":
                values = self[name].to_numpy()
                columns[f"{name}_real"], columns[f"{name}_imaginary"] = values.real, values.imag
            else:
                columns[name] = self[name].array
        plain = pandas.DataFrame(columns, index=self.index)
        plain.attrs = dict(self.attrs)
        return plain

    def describe(self, *arguments: Any, **options: Any) -> pandas.DataFrame:
        """Describe the columns, as pandas does."""
        return self.split_complex().describe(*arguments, **options)

    def to_csv(self, *arguments: Any, **options: Any) -> Any:
        """Write or return the table as CSV, as pandas does."""
        return self.split_complex().to_csv(*arguments, **options)

    def to_parquet(self, *arguments: Any, **options: Any) -> Any:
        """Write or return the table as Parquet, as pandas does."""
        return self.split_complex().to_parquet(*arguments, **options)

    def to_feather(self, *arguments: Any, **options: Any) -> Any:
        """Write the table as Feather, as pandas does."""
        return self.split_complex().to_feather(*arguments, **options)
