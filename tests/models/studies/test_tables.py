"""Tables keep complex numbers, and split them in files and descriptions."""

from __future__ import annotations

import io

import numpy as np
import pandas
import pytest

import attnlab as al
from attnlab.models.studies.tables import Table
from tiny_models import MAKERS


@pytest.fixture(scope="module")
def spectra():
    state, raw = MAKERS["bert"]()
    return al.models.spectra(al.models.load(state, config=raw), null=5)


def test_the_spectra_can_be_described(spectra):
    found = spectra.describe()
    assert found.loc["mean", "lambda1_real"] == pytest.approx(
        spectra["lambda1"].to_numpy().real.mean()
    )
    assert spectra["lambda1"].dtype == complex and "lambda1_real" not in spectra
    assert (
        spectra[spectra["layer"] == 0].describe().loc["count", "lambda2_imaginary"]
        == (spectra["layer"] == 0).sum()
    )


def test_parquet_and_csv_have_the_same_columns(spectra, tmp_path):
    pytest.importorskip("pyarrow")
    spectra.to_parquet(tmp_path / "heads.parquet")
    back = pandas.read_parquet(tmp_path / "heads.parquet")
    text = pandas.read_csv(io.StringIO(spectra.to_csv(index=False)))
    assert list(back.columns) == list(text.columns)
    values = back["lambda1_real"].to_numpy() + 1j * back["lambda1_imaginary"].to_numpy()
    np.testing.assert_array_equal(values, spectra["lambda1"].to_numpy())
    assert "lambda1" not in back and back.attrs["model"] == spectra.attrs["model"]


def test_a_part_of_a_table_is_a_table():
    table = Table({"a": [1, 2], "z": [1 + 2j, 3j]})
    table.attrs["about"] = "this"
    part = table[table["a"] > 1]
    assert isinstance(part, Table) and part.attrs == {"about": "this"}
    assert part.to_csv(index=False) == "a,z_real,z_imaginary\n2,0.0,3.0\n"
    assert list(table.columns) == ["a", "z"]
