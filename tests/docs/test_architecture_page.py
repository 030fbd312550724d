"""docs/sentences.md has the numbers of docs/architecture.json, and its sentences follow from them."""

from __future__ import annotations

import json
import re

import numpy as np


def numbers(maker):
    rows = json.loads(maker.ROWS.read_text(encoding="utf-8"))["changes"]
    return {
        (model, row["change"], row["number"]): row for model, found in rows.items() for row in found
    }, rows


def test_the_page_has_the_stored_numbers(from_docs):
    maker = from_docs("make_architecture")
    page = maker.PAGE.read_text(encoding="utf-8")
    section = page.split(maker.BEGIN)[1].split(maker.END)[0]
    assert section == maker.write_section(numbers(maker)[1]), (
        "Bring it up to date: python docs/make_architecture.py --only-page"
    )


def test_the_scale_of_clusters_on_the_page(from_docs):
    maker = from_docs("make_architecture")
    many = json.loads(maker.ROWS.read_text(encoding="utf-8"))["many"]
    page = maker.PAGE.read_text(encoding="utf-8")
    assert maker.write_many(many) == page.split(maker.MANY)[1].split(maker.MANY_END)[0]
    for model in ("minilm", "stories15m", "rxnmapper", "smollm2-135m"):
        assert len(many[model]) == 20 and max(many[model]) < 0.8
    assert sum(one < 0.8 for one in many["rxnfp"]) == 18
    counts = [sum(one < scale for one in many["albert-chem"]) for scale in (0.8, 0.9)]
    assert (
        f"many in {counts[1]} of 20 at 0.9, but in only {counts[0]} of 20 at 0.8"
        in page.replace("\n", " ")
    )


def test_what_the_page_says_follows_from_the_numbers(from_docs):
    found, rows = numbers(from_docs("make_architecture"))

    def low(model, change, number):
        return found[model, change, number]["low"]

    def high(model, change, number):
        return found[model, change, number]["high"]

    before, after = "norms before each part", "norms after each sum"
    first = [(name, before) for name in ("minilm", "albert-chem", "plbert")]
    first.append(("stories15m", after))
    assert all(high(*one, "cosine") < 0 for one in [*first, ("rxnfp", before)])
    assert {round(-found[*one, "cosine"]["difference"], 2) for one in first} <= {0.09, 0.1, 0.11}
    assert low("rxnmapper", before, "cosine") < 0 < high("rxnmapper", before, "cosine")
    assert found["smollm2-135m", after, "cosine"]["mean"] > 0.99

    # the mask: language and phonemes apart, reactions together
    assert all(high(name, "causal mask", "cosine") < 0 for name in ("minilm", "plbert"))
    assert all(low(name, "no mask", "cosine") > 0 for name in ("stories15m", "smollm2-135m"))
    reactions = ("albert-chem", "rxnmapper", "rxnfp")
    assert all(low(name, "causal mask", "cosine") > 0 for name in reactions)
    more = ("minilm", "albert-chem", "plbert", "rxnfp")
    assert all(low(name, "causal mask", "sink") > 0 for name in more)
    assert all(high(name, "no mask", "sink") < 0 for name in ("stories15m", "smollm2-135m"))
    assert high("rxnmapper", "causal mask", "sink") < 0

    with_rotary = {model for model, change, _ in found if change == "no rotary positions"}
    assert with_rotary == {"stories15m", "smollm2-135m"}
    assert all(low(name, "no rotary positions", "cosine") > 0 for name in with_rotary)
    assert all(low(name, "one layer shared", "cosine") > 0 for name in ("stories15m", "rxnfp"))
    assert all(high(name, "one layer shared", "cosine") < 0 for name in ("minilm", "smollm2-135m"))
    assert high("rxnfp", "trained with one shared layer: rxnmapper", "cosine") < 0
    assert set(rows) == {model for model, _, _ in found} and len(rows) == 7


def test_uniform_rows_under_a_mask_favour_the_first_token():
    rows = np.tri(16) / np.arange(1, 17)[:, None]
    assert round(rows.mean(axis=0)[0], 2) == 0.21


def test_what_the_mask_does_to_heads_is_that_of_the_page_of_models(from_docs):
    maker, limits = from_docs("make_architecture"), from_docs("make_model_limits")
    rows = limits.whole_layers(limits.read_rows())
    said = limits.compare_masks(rows["six causal"], rows["six"])
    page = maker.PAGE.read_text(encoding="utf-8").replace("\n", " ")
    both, several = re.findall(r"\d+", said)[:2]
    masked = " and ".join(limits.CAUSAL_MODELS)
    assert f"With the causal mask {several} of {both} heads of {masked} keep several" in page
    assert re.search(r"p = [\d.]+\d", said)[0] in page
    assert " 0 without" in said and f"0 of the same {both} without it" in page
