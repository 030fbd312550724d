"""Every experiment at reduced size: its claims hold, fail on spoiled data, survive the disk; its
figures and movie are made.
"""

from __future__ import annotations

import math
import re
from functools import cache

import pytest
from matplotlib.text import Text

import attnlab as al
from attnlab.experiments import experiments
from attnlab.experiments.parts import Parts
from attnlab.experiments.record import SIZES, Claim, Experiment
from attnlab.experiments.results import read_data, write_data
from attnlab.types import Spec, Trajectory
from progress_record import recorded

SLOW = (
    "attention_eigenvalues",
    "attention_ranks_1d",
    "codimension",
    "feedforward",
    "generic_scores",
    "head_flow",
    "heads_and_clusters",
    "limits_survey",
    "master_equation",
    "mean_field_pde",
    "neural_collapse",
    "rates",
    "sentences_survey",
    "starts_compared",
    "three_dimensions",
    "vertices_and_tokens",
)
"""Experiments that take two seconds or more even at size small."""

NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in experiments
]


@cache
def small(name: str):
    """The data of an experiment at size small, computed once for all tests of this process, and
    what it reported.
    """
    with recorded() as heard:
        data = experiments[name].compute("small", al.Progress(heard))
    return data, heard


@cache
def drawn(name: str):
    """The figures of an experiment at size small, drawn once for all tests of this process."""
    return experiments[name].figures(small(name)[0])


@pytest.mark.parametrize("name", NAMES)
class TestExperiment:
    """One class, so that what is computed is computed once."""

    def test_record_is_complete(self, name):
        experiment = experiments[name]
        assert isinstance(experiment, Experiment) and experiment.name == name
        for text in (experiment.title, experiment.cite, experiment.about):
            assert text == text.strip() and len(text) > 10
        assert len(experiment.title) <= 90 and len(experiment.about) > 150
        if experiment.folder is not None:
            assert experiment.folder.name == name
            assert all(experiment.hurry[key].endswith(".") for key in ("showed", "found", "caveat"))
        for size in SIZES:
            for spec in (experiment.specs(size) if experiment.specs else {}).values():
                assert Spec.from_toml(spec.to_toml()) == spec

    def test_claims_hold(self, name):
        data, _ = small(name)
        claims = experiments[name].claims(data)
        assert 3 <= len(claims) and len({claim.text for claim in claims}) == len(claims)
        if experiments[name].folder is not None:  # one claim has the number of the page
            assert sum(experiments[name].hurry["number"] in claim.text for claim in claims) == 1
        for claim in claims:
            assert (
                isinstance(claim, Claim) and claim.because and claim.text.endswith((".", "?", ")"))
            )
            assert not math.isnan(claim.measured) and claim.low <= claim.high
            assert math.isfinite(claim.low) or math.isfinite(claim.high)  # a claim that can fail
            assert claim.holds, f"{claim.text} measured {claim.measured}, allowed {claim.allowed}"

    def test_every_claim_fails_on_some_spoiled_data(self, name):
        data, _ = small(name)
        experiment = experiments[name]
        before = {claim.text for claim in experiment.claims(data)}
        broken = set()
        for spoil_name, spoil in experiment.spoils.items():
            failed = {claim.text for claim in experiment.claims(spoil(data)) if not claim.holds}
            assert failed, f"no claim notices: {spoil_name}"
            broken |= failed
        never = before - broken
        assert not never, f"no spoil breaks: {never}"
        assert all(claim.holds for claim in experiment.claims(data)), (
            "a spoil has changed the data it was given"
        )

    def test_disk_keeps_claims(self, name, tmp_path):
        data, _ = small(name)
        write_data(tmp_path, data, "key")
        again = read_data(tmp_path, "key")
        assert again is not None and set(again) == set(data)
        first, second = experiments[name].claims(data), experiments[name].claims(again)
        assert [claim.as_dict() for claim in first] == [claim.as_dict() for claim in second]

    def test_stand_ins_are_not_called_trained(self, name):
        """At size small random or planted weights stand in for trained ones, and all that is
        printed says what it shows.
        """
        data, _ = small(name)
        experiment = experiments[name]
        shown = [
            text.get_text() for figure in drawn(name).values() for text in figure.findobj(Text)
        ]
        measured = [
            words
            for claim in experiment.claims(data)
            for words in (claim.text, claim.because, claim.differs)
        ]
        found = [
            words
            for words in [experiment.title, *shown, *measured]
            if re.search(r"\btrained\b", words, re.IGNORECASE)
        ]
        assert found == []

    @pytest.mark.parametrize("suffix", ["png", pytest.param("pdf", marks=pytest.mark.slow)])
    def test_figures_are_drawn(self, name, suffix, tmp_path):
        assert next(iter(drawn(name))) == name
        for label, figure in drawn(name).items():
            assert label.isidentifier()
            figure.savefig(tmp_path / f"{label}.{suffix}", dpi=40)
            assert (tmp_path / f"{label}.{suffix}").stat().st_size > 2000

    def test_tables_have_legends_and_whole_rows(self, name):
        tables = experiments[name].tables
        for heading, (legend, columns, rows) in (tables(small(name)[0]) if tables else {}).items():
            assert heading and legend.endswith(".") and len(set(columns)) >= 2 and rows
            assert {len(row) for row in rows} == {len(columns)}
            assert not re.search(r"\bnan\b", " ".join(str(cell) for row in rows for cell in row)), (
                heading
            )

    def test_movie_is_a_run(self, name):
        experiment = experiments[name]
        assert experiment.movie is not None or not experiment.movie_options, (
            "film_options without a film"
        )
        if experiment.movie is not None:
            run = experiment.movie(small(name)[0])
            assert isinstance(run, Trajectory) and len(run.times) > 10 and run.is_ok

    def test_progress_is_reported(self, name):
        heard = small(name)[1]
        assert len(heard.fractions) >= 2 and heard.wrong == []
        assert not isinstance(experiments[name].compute, Parts) or heard.fractions[-1] == 1.0
