"""findings: the sentences that the command line prints are there for Python, of every kind of
result.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

import attnlab as al
import tiny_models
from attnlab.cli import app
from attnlab.models import findings

IDS = [3, 1, 4, 1, 5, 9]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_models.write_folder(tmp_path_factory.mktemp("tiny") / "tiny", *tiny_models.bert())


@pytest.fixture(scope="module")
def model(folder):
    return al.models.load(folder)


def printed(*words) -> dict:
    """What a command prints as JSON."""
    result = CliRunner().invoke(app(), [*map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_of_a_sentence_they_are_those_of_the_command(folder, model):
    lines = findings(al.models.sentence(model, ids=IDS))
    assert lines == printed("sentence", folder, "--ids", "3,1,4,1,5,9")["said"]
    assert lines[0].startswith("The real stack takes 6 tokens from mean cosine") and len(lines) >= 5
    few = findings(al.models.sentence(model, ids=IDS, only=["real"]))
    assert few[0] == lines[0] and few[-1] == lines[-1] and len(few) == 2


def test_each_line_about_several_texts_names_its_text(model):
    alone = findings(al.models.sentence(model, ids=IDS, only=["real"]))
    both = findings(al.models.sentence(model, ids=[np.array([2, 1]), np.array(IDS)], only=["real"]))
    assert both[-len(alone) :] == [f"Text 1: {line}" for line in alone]
    assert all(line.startswith("Text 0: ") for line in both[: -len(alone)])


def test_of_a_flow_they_name_arguments_where_the_command_names_options(folder, model):
    found = al.models.flow(model, 0, 1, ids=IDS, t_end=1.0, check=False)
    lines = findings(found)
    said = printed(
        "flow", folder, "--head", "1", "--ids", "3,1,4,1,5,9", "--t-end", "1", "--no-check"
    )["said"]
    assert len(lines) == len(said) and lines[0] == said[0]
    first, last = (int(found.data["clusters"].values[at]) for at in (0, -1))
    assert f"from {first} cluster" in lines[0] and f"to {last} cluster" in lines[0]


def test_of_an_iteration_and_of_spectra(model):
    repeated = al.models.iterate(model, ids=IDS, times=20)
    assert findings(repeated) == [repeated.attrs["answer"]]
    frame = al.models.spectra(model, null=50)
    (line,) = findings(frame)
    assert line.startswith(f"{len(frame)} heads: ") and line.endswith(
        "Chance: 50 random heads of the same shapes."
    )


@pytest.mark.parametrize(
    "thing", [3, np.ones(2), xarray.Dataset()], ids=["number", "array", "another Dataset"]
)
def test_other_things_are_refused(thing):
    with pytest.raises(TypeError, match="findings reads what al.models.sentence"):
        findings(thing)
