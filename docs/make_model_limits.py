"""Write the tables of docs/models.md that say where the tokens of trained heads end, and
docs/model_limits.json behind them.

    attnlab fetch minilm stories15m smollm2-135m plbert albert-chem rxnmapper rxnfp plbert-int8
    python docs/make_model_limits.py                    # the limits that are missing in the JSON, then the page
    python docs/make_model_limits.py --only sixteen --seconds 200
    python docs/make_model_limits.py --rows elsewhere.json --only "six causal"
    python docs/make_model_limits.py --only-page

A limit is decided by its work, so the rows do not depend on the machine. All runs take about two
hours of one core. Each row is stored when it is made, so the run can be stopped and started again.
Only the time of a row changes.
"""

from __future__ import annotations

import argparse
import json
import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnlab.analysis.intervals import wilson_interval
from attnlab.analysis.significance import block_test, holm, sign_test
from attnlab.experiments.record import Claim
from attnlab.files import write_text
from attnlab.models.catalog.sources import load
from attnlab.models.checkpoints.model import Model
from attnlab.models.studies.head_ends import (
    ENDS,
    ROTATING,
    TOGETHER,
    HeadEnd,
    Start,
    compare_ends,
    end_of,
    heads_of,
    is_answered,
    measure_head,
)

FOLDER = Path(__file__).parent
PAGE, ROWS = FOLDER / "models.md", FOLDER / "model_limits.json"
BEGIN, END = "<!-- limits of trained heads: begin -->\n", "<!-- limits of trained heads: end -->"

MODELS = (
    "minilm",
    "stories15m",
    "smollm2-135m",
    "plbert",
    "albert-chem",
    "rxnmapper",
    "rxnfp",
)
COPIES = {"plbert-int8": "plbert"}
"""Models that are nearly another one. They have a row of their own, and count in no total and no
test.
"""

CAUSAL_MODELS = ("stories15m", "smollm2-135m")
EVERY = {"smollm2-135m": 5}
"""Models of which some runs take every so many layers, counted from the last one: their heads take
hours otherwise.
"""

GOAL = ("minilm", "stories15m", "plbert", "albert-chem")
"""The models for which goals were set."""

ADDED = {
    "smollm2-135m": "seen in the first four models, and tested in one that was added later",
    "rxnfp": "written down before any limit of this model was computed",
}
"""Models that came later and have enough heads for a claim of their own: what was known before."""

TEXT = (
    "The quick brown fox jumps over the lazy dog, and the dog sleeps in the sun until the evening"
    " comes."
)
REACTION = "C=CC=C.C=CC(=O)OC>>COC(=O)C1CCC=CC1"
TEXTS = {"rxnmapper": REACTION, "rxnfp": REACTION}
"""Texts of models that do not read English."""

WITHOUT_TEXT = ("plbert", "plbert-int8", "albert-chem")
"""Models of phonemes and of molecules: their tokens are drawn at random."""


@dataclass(frozen=True)
class Run:
    """One start per head: so many tokens, the mask, rng of random heads (None: the trained ones).

    is_sample: whether it takes some layers only of the models in EVERY.
    """

    tokens: int
    mask: str = "full"
    rng: int | None = None
    models: tuple[str, ...] = (*MODELS, *COPIES)
    is_sample: bool = False

    def heads(self, name: str, model: Model) -> list[tuple[int, int]]:
        """Return (layer, head) of the heads of a model that are measured."""
        step = EVERY.get(name, 1) if self.is_sample else 1
        last = model.config.layers - 1
        return [one for one in heads_of(model) if (last - one[0]) % step == 0]


RUNS = {
    "six": Run(6),
    "random": Run(6, rng=1),
    "sixteen": Run(16, is_sample=True),
    "six causal": Run(6, mask="causal", models=CAUSAL_MODELS, is_sample=True),
    "random causal": Run(6, mask="causal", rng=1, models=CAUSAL_MODELS, is_sample=True),
}


BESIDE, BESIDE_CAUSAL = ("six", "random"), ("six causal", "random causal")
"""Runs of trained heads, and of the random head of each."""


def start_of(name: str, model: Model, n: int) -> Start:
    """Return the first tokens: the first n of the text, or n random ids."""
    if name in WITHOUT_TEXT:
        ids = np.random.default_rng([3, n]).choice(np.arange(3, 100), n, replace=False)
    else:
        ids = np.asarray(model.tokens(TEXTS.get(name, TEXT), special=False)[0])[:n]
    return Start(tuple(map(int, ids)))


def make_rows(path: Path, names: tuple[str, ...]) -> Iterator[tuple[str, str, HeadEnd]]:
    """Yield the run, the head ("minilm 0 3") and the row of each head that is not stored yet."""
    known = read_rows(path)
    for model_name in (*MODELS, *COPIES):
        model = load(model_name, offline=True)
        for run_name in (name for name in names if model_name in RUNS[name].models):
            run = RUNS[run_name]
            start = start_of(model_name, model, run.tokens)
            for layer, head in run.heads(model_name, model):
                name = f"{model_name} {layer} {head}"
                if name in known.get(run_name, {}):
                    continue
                known = read_rows(path)  # another process may have made it by now
                if name not in known.get(run_name, {}):
                    yield (
                        run_name,
                        name,
                        measure_head(model, layer, head, start, mask=run.mask, rng=run.rng),
                    )


def main() -> None:
    """Compute what is missing and write the page."""
    given = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    given.add_argument("--only", default=",".join(RUNS), help="names of runs, with commas")
    given.add_argument("--seconds", type=float, default=np.inf, help="stop after this time")
    given.add_argument("--rows", type=Path, default=ROWS, help="another file of rows")
    given.add_argument("--only-page", action="store_true")
    options = given.parse_args()
    began = time.monotonic()
    if not options.only_page:
        for run, name, row in make_rows(options.rows, tuple(options.only.split(","))):
            rows = read_rows(options.rows)
            rows.setdefault(run, {})[name] = row
            write_rows(rows, options.rows)
            print(run, name, end_of(row), row.obstacle, row.seconds, flush=True)
            if time.monotonic() - began > options.seconds:
                raise SystemExit(3)
    if options.rows == ROWS:
        write_page()


def read_rows(path: Path = ROWS) -> dict[str, dict[str, HeadEnd]]:
    """Return {run: {head: row}}, in the order of models, layers and heads."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        run: {name: HeadEnd.of_record(stored[run][name]) for name in sorted(stored[run], key=place)}
        for run in RUNS
        if run in stored
    }


def place(head: str) -> tuple[int, int, int]:
    """Return the place of a head in the tables: model, layer, head."""
    model, layer, number = head.split(" ")
    return [*MODELS, *COPIES].index(model), int(layer), int(number)


def write_rows(rows: Mapping[str, Mapping[str, HeadEnd]], path: Path = ROWS) -> None:
    """Write the JSON, one line per head."""
    lines = [
        json.dumps(run)
        + ": {\n"
        + ",\n".join(
            f" {json.dumps(name)}: {json.dumps(row.record)}" for name, row in rows[run].items()
        )
        + "\n}"
        for run in rows
    ]
    write_text(path, "{" + ",\n".join(lines) + "}\n")


def counted(rows: Mapping[str, HeadEnd]) -> dict[str, HeadEnd]:
    """Return the rows without those of models that are nearly another one."""
    return {head: row for head, row in rows.items() if model_of(head) not in COPIES}


def layer_of(head: str) -> str:
    """Return the model and the layer of a head, such as "minilm 0" of "minilm 0 3"."""
    return head.rsplit(" ", 1)[0]


def whole_layers(
    rows: Mapping[str, Mapping[str, HeadEnd]],
) -> dict[str, dict[str, HeadEnd]]:
    """Return the rows of the layers that are complete in their run. All heads are in "six"."""
    sizes = Counter(map(layer_of, rows["six"]))
    found = {}
    for run, of_run in rows.items():
        here = Counter(map(layer_of, of_run))
        found[run] = {
            head: row
            for head, row in of_run.items()
            if here[layer_of(head)] == sizes[layer_of(head)]
        }
    return found


def say_layers(rows: Mapping[str, HeadEnd], whole: Mapping[str, HeadEnd]) -> str:
    """Say which layers were measured of a model that is not measured in whole; else nothing."""
    said = []
    for model in dict.fromkeys(map(model_of, rows)):
        layers = sorted({int(layer_of(head).split(" ")[1]) for head in rows_of(rows, model)})
        if len(rows_of(rows, model)) < len(rows_of(whole, model)):
            said.append(
                f" Of {model} the heads of these layers were measured:"
                f" {', '.join(map(str, layers))}."
            )
    return "".join(said)


def count_ends(rows: Mapping[str, HeadEnd]) -> list[str]:
    """Return the lines of a table: one row per model, one column per end that occurs."""
    ends = [end for end in ENDS if any(end_of(row) == end for row in rows.values())]
    lines = [
        "| model | heads | " + " | ".join(ends) + " | leaders known |",
        "| --- |" + " --- |" * (len(ends) + 2),
    ]
    names, total = {model_of(head) for head in rows}, counted(rows)
    parts = {
        name: {head: row for head, row in rows.items() if model_of(head) == name}
        for name in (*MODELS, *COPIES)
        if name in names
    }
    if len(names & set(MODELS)) > 1:
        parts |= {"all": total} | {name: parts.pop(name) for name in COPIES if name in parts}
    for model, own in parts.items():
        counts = [sum(end_of(row) == end for row in own.values()) for end in ends]
        counts.append(sum(row.has_leaders for row in own.values()))
        said = f"{model} (not in all)" if model in COPIES else model
        lines.append(f"| {said} | {len(own)} | " + " | ".join(map(str, counts)) + " |")
    return lines


def model_of(head: str) -> str:
    """Return the model of a head by its name, such as "minilm 0 3"."""
    return head.split(" ")[0]


def summary(rows: Mapping[str, HeadEnd]) -> str:
    """Say how many heads are answered, in which time, and what the others fail at."""
    rows = counted(rows)
    answered = [row for row in rows.values() if is_answered(row)]
    several = [
        f"{name} ({' and '.join(map(str, row.groups))} tokens)"
        for name, row in rows.items()
        if row.count is not None and row.count > 1
    ]
    left = [f"{name} ({row.obstacle})" for name, row in rows.items() if end_of(row) == "undecided"]
    median = float(np.median([row.seconds for row in answered]))
    return textwrap.fill(
        f"{len(answered)} of {len(rows)} heads are answered, in {median:.1g} s of processor time"
        f" in the median. More than one limit or group: {', '.join(several) or 'none'}. Undecided,"
        f" with the obstacles: {', '.join(left) or 'none'} (model, layer, head).",
        100,
    )


def pairs_of(
    rows: Mapping[str, Mapping[str, HeadEnd]], model: str = "all", runs: tuple[str, str] = BESIDE
) -> tuple[list[HeadEnd], list[HeadEnd], list[str]]:
    """Return the trained heads of a model, the random head of each, and the layer of each."""
    names = [
        name
        for name in counted(rows[runs[0]])
        if name in rows[runs[1]] and model in (model_of(name), "all")
    ]
    layers = list(map(layer_of, names))
    return [rows[runs[0]][name] for name in names], [rows[runs[1]][name] for name in names], layers


def compare(rows: Mapping[str, Mapping[str, HeadEnd]], runs: tuple[str, str] = BESIDE) -> list[str]:
    """Return the lines of the table of trained beside random heads: one row per end."""
    trained, random, layers = pairs_of(rows, runs=runs)
    lines = [
        "| where the tokens end | trained | random | pairs: only trained, only random | p, pairs |"
        " p, layers | p, layers, Holm |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in compare_ends(trained, random, blocks=layers):
        if one.count + one.random_count:
            lines.append(
                f"| {one.end} | {one.count} of {one.total}, {one.low:.0%} to {one.high:.0%} |"
                f" {one.random_count} of {one.random_total}, {one.random_low:.0%} to"
                f" {one.random_high:.0%} | {one.sign.wins}, {one.sign.losses} | {one.sign.p:.2g} |"
                f" {one.block_p:.2g} | {one.corrected_block_p:.2g} |"
            )
    return lines


def models_in(rows: Mapping[str, Mapping[str, HeadEnd]]) -> list[str]:
    """Return the models that have rows, trained and random."""
    return [
        name
        for name in MODELS
        if all(any(model_of(head) == name for head in rows[run]) for run in BESIDE)
    ]


def compare_models(rows: Mapping[str, Mapping[str, HeadEnd]]) -> list[str]:
    """Return the lines of the table of models, beside random heads: one row per model."""
    signs = {}
    for model in models_in(rows):
        trained, random, _ = pairs_of(rows, model)
        signs[model] = sign_test(is_rotating(trained), is_rotating(random))
    corrected = dict(
        zip(models_in(rows), holm([signs[model].p for model in models_in(rows)]), strict=True)
    )
    lines = [
        "| model | heads | one group | random | rotating | random | pairs: only trained, only random |"
        " p, pairs | p, pairs, Holm |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for model in models_in(rows):
        trained, random, _ = pairs_of(rows, model)
        cells = [count(are, kind) for kind in (TOGETHER, ROTATING) for are in (trained, random)]
        sign = signs[model]
        lines.append(
            f"| {model} | {len(trained)} | "
            + " | ".join(map(str, cells))
            + f" | {sign.wins}, {sign.losses} | {sign.p:.2g} | {corrected[model]:.2g} |"
        )
    return lines


def count(rows: Sequence[HeadEnd], kind: tuple[str, ...]) -> int:
    """Return how many heads have one of these ends."""
    return sum(end_of(row) in kind for row in rows)


def least_p(count: int) -> float:
    """Return the least two-sided p of a sign test with so many pairs."""
    return 2.0 ** (1 - count)


def is_rotating(rows: Sequence[HeadEnd]) -> list[int]:
    """Return 1 for each head without a final leader, else 0."""
    return [int(end_of(row) in ROTATING) for row in rows]


def claims(rows: Mapping[str, Mapping[str, HeadEnd]]) -> list[Claim]:
    """Return what the tables let us claim. Each claim can fail."""
    models = models_in(rows)
    six, random = (list(counted(rows[run]).values()) for run in BESIDE)
    of_goal = {
        run: sum(is_answered(row) for head, row in rows[run].items() if model_of(head) in GOAL)
        for run in ("six", "sixteen")
    }
    growing = [row for row in six if not row.nothing_grows]
    together = count(growing, TOGETHER)
    low, high = wilson_interval(together, len(growing))
    low_random, high_random = wilson_interval(count(random, TOGETHER), len(random))
    fewer = [
        count(trained, ROTATING) < count(others, ROTATING)
        for trained, others, _ in (pairs_of(rows, model) for model in models)
    ]
    return [
        Claim(
            text=(
                "With sixteen tokens, al.limit answers at least 80 of the 128 heads of the first four"
                " models."
            ),
            measured=of_goal["sixteen"],
            low=80,
            because="the goal was set before the run, for these models",
        ),
        Claim(
            text=(
                "With six tokens, al.limit answers at least 105 of the 128 heads of the first four"
                " models."
            ),
            measured=of_goal["six"],
            low=105,
            because="the goal was set before the run, for these models",
        ),
        Claim(
            text=(
                "Of the heads in which something grows, at least 90 % certainly gather all six tokens"
                f" in one group: {together} of {len(growing)}, interval {low:.0%} to {high:.0%}."
            ),
            measured=low,
            low=0.9,
            because="undecided heads count against it",
        ),
        Claim(
            text=(
                "Training is not needed for that: random heads do it at least as often,"
                f" {count(random, TOGETHER)} of {len(random)}, interval {low_random:.0%} to"
                f" {high_random:.0%}."
            ),
            measured=count(random, TOGETHER) / len(random) - together / len(growing),
            low=0.0,
            because="the same tokens, and Gaussian factors of the same norms",
        ),
        Claim(
            text=(
                "A trained head keeps two groups apart for ever from these starts in at least one of"
                f" the {len(six)} heads."
            ),
            measured=count(six, ("two or more",)),
            low=1,
            because="the theorem of the three hyperplanes allows up to three",
        ),
        Claim(
            text=f"Fewer trained heads than random heads rotate, in each of the {len(models)} models.",
            measured=sum(fewer),
            low=len(models),
            because=f"a sign test over them cannot give less than p = {least_p(len(models)):.3g}",
        ),
    ]


def claims_of_added(rows: Mapping[str, Mapping[str, HeadEnd]]) -> list[Claim]:
    """Return the claims about models that came after the others; none while they have no rows."""
    found = []
    for model in (name for name in ADDED if name in models_in(rows)):
        trained, others, layers = pairs_of(rows, model)
        rotating = np.subtract(is_rotating(trained), is_rotating(others))
        found.append(
            Claim(
                text=(
                    f"Fewer trained heads than random heads rotate in {model}: the p of exchanges"
                    " of whole layers is at most 0.05."
                ),
                measured=block_test(rotating, layers) if rotating.sum() < 0 else 1.0,
                low=0.0,
                high=0.05,
                because=ADDED[model],
            )
        )
    return found


def write_claims(rows: Mapping[str, Mapping[str, HeadEnd]]) -> list[str]:
    """Return the list of claims, each with holds or fails."""
    return [
        "\n".join(
            textwrap.wrap(
                f"- **{'holds' if one.holds else 'fails'}**: {one.text} Measured"
                f" {one.measured:.3g}, needed {needed(one)}. ({one.because})",
                100,
                subsequent_indent="  ",
            )
        )
        for one in (*claims(rows), *claims_of_added(rows))
    ]


def needed(claim: Claim) -> str:
    """Say what a claim needs: the lower end, or the upper one if it has one."""
    return f"at least {claim.low:g}" if np.isinf(claim.high) else f"at most {claim.high:g}"


def causal_part(rows: Mapping[str, Mapping[str, HeadEnd]]) -> list[str]:
    """Return the lines about the causal mask; none without rows."""
    found = rows.get("six causal", {})
    if not found:
        return []
    lines = [
        "### With the mask of the model",
        "",
        *textwrap.wrap(CAUSAL + say_layers(found, rows["six"]), 100, break_on_hyphens=False),
        "",
        *count_ends(found),
        "",
        summary(found),
        "",
        *textwrap.wrap(compare_masks(found, rows["six"]), 100),
        "",
    ]
    random = rows.get("random causal", {})
    beside = {name: row for name, row in found.items() if name in random}
    if beside:
        both = {BESIDE_CAUSAL[0]: beside, BESIDE_CAUSAL[1]: random}
        lines += [*textwrap.wrap(BESIDE_RANDOM, 100), "", *compare(both, BESIDE_CAUSAL), ""]
    return lines


def rows_of(rows: Mapping[str, HeadEnd], model: str) -> dict[str, HeadEnd]:
    """Return the rows of one model."""
    return {name: row for name, row in rows.items() if model_of(name) == model}


def compare_masks(causal: Mapping[str, HeadEnd], full: Mapping[str, HeadEnd]) -> str:
    """Say how many heads have several groups with the mask and without, of those that both runs
    answer.
    """
    both = [name for name in causal if is_answered(causal[name]) and is_answered(full[name])]
    several = [[int((rows[name].count or 0) > 1) for name in both] for rows in (causal, full)]
    p = block_test(np.subtract(several[0], several[1]), list(map(layer_of, both)))
    open_ones = len(causal) - sum(map(is_answered, causal.values()))
    return (
        f"Of the {len(both)} heads that are answered with the mask and without,"
        f" {sum(several[0])} have more than one group with the mask and {sum(several[1])}"
        f" without (exchanges of whole layers: p = {p:.2g}). So a causal mask can keep tokens apart:"
        f" the first token attends to itself only. {open_ones} of {len(causal)} heads are not"
        " answered with the mask, and these need not be like the others."
    )


def say_honestly(rows: Mapping[str, Mapping[str, HeadEnd]]) -> str:
    """Say what the tests take as independent."""
    models, (trained, _, layers) = models_in(rows), pairs_of(rows)
    largest = max(models, key=lambda model: len(pairs_of(rows, model)[0]))
    part = len(pairs_of(rows, largest)[0]) / len(trained)
    return (
        "Heads of one model are not independent: they were trained together, and all start from"
        " tokens of one text. So the intervals are too narrow and the p of pairs too small. The test"
        " over layers lets the heads of one layer depend on each other in any way, but takes the"
        f" {len(set(layers))} layers as independent. A test over models takes only models as"
        f" independent. There are {len(models)}, so its least possible p is"
        f" {least_p(len(models)):.3g}. {part:.0%} of the heads are those of {largest}."
    )


def write_section(rows: Mapping[str, Mapping[str, HeadEnd]]) -> str:
    """Return the text between the markers."""
    rows = whole_layers(rows)
    met = {end_of(row) for of_run in rows.values() for row in of_run.values()}
    meanings = [
        textwrap.fill(f"- *{end}*: {meaning}.", 100, subsequent_indent="  ")
        for end, meaning in ENDS.items()
        if end in met
    ]
    return "\n".join(
        [
            "### Six tokens",
            "",
            "One row is one model, with one start per head. Numbers count heads.",
            "",
            *count_ends(rows["six"]),
            "",
            *meanings,
            "- *leaders known*: the limit says which token each token follows in the end.",
            "",
            summary(rows["six"]),
            "",
            "### Sixteen tokens",
            "",
            *textwrap.wrap(SIXTEEN + say_layers(rows["sixteen"], rows["six"]), 100),
            "",
            *count_ends(rows["sixteen"]),
            "",
            summary(rows["sixteen"]),
            "",
            "### Beside random heads",
            "",
            *textwrap.wrap(RANDOM + say_layers(rows["random"], rows["six"]), 100),
            "",
            *compare(rows),
            "",
            *textwrap.wrap(MODEL_BY_MODEL, 100),
            "",
            *compare_models(rows),
            "",
            *textwrap.wrap(say_honestly(rows), 100),
            "",
            *causal_part(rows),
            "### Claims",
            "",
            *textwrap.wrap(WHEN, 100),
            "",
            *write_claims(rows),
            "",
        ]
    )


WHEN = (
    "We wrote down the third to the sixth after a first look at the tables of the first four models."
    " The last two were seen in these four, and are about models that were added later. When we"
    " wrote down the one about smollm2-135m, we had seen some of its counts. When we wrote down the"
    " one about rxnfp, no limit of that model had been computed."
)
SIXTEEN = "The same for the first sixteen tokens of the sentence, or sixteen random ids."
RANDOM = (
    "Each trained head has one random head beside it: Gaussian factors Q, K, B, C of the same"
    " shapes and Frobenius norms, from the same six tokens. One row is one end. Trained and random:"
    " heads, with the 95 % interval of the share (Wilson, heads taken as independent). Pairs: in"
    " how many pairs only the trained head, or only the random one, ends so. p, pairs: the exact"
    " sign test over these pairs. p, layers: the exact test in which trained and random heads are"
    " exchanged in a whole layer at once, alone and corrected for the number of ends (Holm)."
)
MODEL_BY_MODEL = (
    "One row is one model: its heads that end in one group, and those whose group rotates, trained"
    " and random. The last columns are about heads that rotate: pairs, the sign test over them, and"
    " the same corrected for the number of models."
)
CAUSAL = (
    "All tables above let every token attend to every token, as the theory does. stories15m and"
    " smollm2-135m themselves have a causal mask: a token attends to itself and to earlier tokens."
    " With this mask and six tokens their heads are harder to certify"
    " ([why](limits.md#groups-under-the-causal-mask))."
)
BESIDE_RANDOM = (
    "Beside random heads with the same mask and the same tokens, as above. One row is one end."
)


def write_page() -> None:
    """Write the part of the page between the markers."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    write_text(PAGE, f"{before}{BEGIN}{write_section(read_rows())}{END}{after}")


if __name__ == "__main__":
    main()
