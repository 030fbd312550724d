"""attnlab sweep --refine, --plot and --export from the command line."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from attnlab.cli import app
from attnlab.sweep import Rows

TEXT = """
seeds = 1
[base.weights]
family = "identity"
[base.start]
law = "sphere"
n = 3
d = 2
[base.solve]
t_end = 0.1
saves = 2
[axes]
"dynamics.beta" = { linspace = [1, 33, 33] }
[numbers]
spread = { observable = "diameter" }
"""


def run(*words: str):
    return CliRunner().invoke(app(), ["sweep", "a.toml", "--workers", "0", *words])


def test_refine_computes_a_part_and_a_later_run_the_rest(workplace):
    (workplace / "a.toml").write_text(TEXT)
    result = run(
        "--plot", "dynamics.beta,spread", "--refine", "1e9", "-o", "a.png", "--export", "a.csv"
    )
    assert result.exit_code == 0, result.output
    assert "5 of 33 cells" in result.output and (workplace / "a.png").stat().st_size > 5000
    assert len((workplace / "a.csv").read_text().splitlines()) == 6
    assert (
        len(list(Rows(workplace / "a.sqlite").read())) == 5
    )  # every eighth point, and none of them is beyond the level
    result = run()
    assert result.exit_code == 0 and "28 cells computed" in result.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--refine", "1"], "Give --plot too"),
        (["--plot", "dynamics.beta,spread", "--refine", "low"], "a number or the word change"),
        (["--plot", "dynamics.beta,spread", "--refine", "1", "--prune"], "--prune"),
        (["--plot", "spread,dynamics.beta", "--refine", "1"], "axis to refine"),
        (["--plot", "dynamics.beta,spred"], "spread"),
        (["--export", "a.xlsx"], ".parquet"),
        (["--scheduler", "nowhere"], "Dask scheduler"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(workplace, words, sentence):
    (workplace / "a.toml").write_text(TEXT)
    if "--scheduler" in words:
        pytest.importorskip("distributed")
        result = CliRunner().invoke(app(), ["sweep", "a.toml", *words])
    else:
        result = run(*words)
    assert result.exit_code == 2 and sentence in " ".join(result.output.split())
    assert not (workplace / "a.sqlite").exists() or not list(Rows(workplace / "a.sqlite").read())
