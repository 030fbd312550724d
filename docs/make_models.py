"""Writes docs/models.md, the value matrices of every known model that is fetched side by side, and its pictures.

    attnlab fetch all
    python docs/make_models.py

Every number on the page is computed here; models that are not fetched are named and left out. Nothing is downloaded.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from make_glossary import add_links
from scipy import stats

import attnlab as al
from attnlab.models.catalog.catalog import is_cached, known_models
from attnlab.models.checkpoints.families import families
from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.studies.shares import CLASSES, interval, shares_of
from attnlab.render.spectra_figure import draw_shares, draw_spectra, draw_verdict_map

PAGE = Path(__file__).parent / "models.md"
SHARES, PLANE, MAP = "images/models_shares.png", "images/models_plane.png", "images/models_map.png"
PLANE_OF, MAP_OF = "plbert", "minilm"
DRAWS = 2000
WIDTH = 128
FACTS = ("model", "trained on", "family", "width", "heads", "head size", "layers", "tied", "norm", "mask")
UNUSUAL = {
    "lambda1": "size of lambda_1", "gap": "gap", "score": "score of phi_1", "positive_share": "positive part of sym(M)",
    "effective_beta": "effective beta", "attractive_weight": "attractive weight", "repulsive_weight": "repulsive weight",
    "rotational_weight": "rotational weight", "non_normality": "non-normality", "condition": "condition of lambda_1",
}
"""Numbers whose quantiles are counted, in the page's words."""


HEAD_SPEC = """## A trained head as a Spec

The weights family `model` has the matrices of trained heads, and the start law `text` the tokens of a sentence as they enter a
layer. So the flow of a head is a Spec like any other:

```toml
[weights]
family = "model"
name = "minilm"             # a name that `attnlab models` lists, the folder of a checkpoint, or hf:owner/name
layer = 5
head = 10                   # or a list, [3, 10]; left out: all heads of the layer

[start]
law = "text"
model = "minilm"
text = "The cat sat on the mat."
layer = 5                   # as the tokens enter this layer; 0: as they are embedded

[solve]
t_end = 5
rtol = 1e-6
```

    attnlab run head.toml -o head.nc
    attnlab limit head.toml
    attnlab explore head.toml -o head.html
    attnlab flow minilm --layer 5 --head 10 --text "The cat sat on the mat." --spec head.toml

The last command writes the Spec of a flow. In Python it is `al.models.flow(...).run.spec`, and `al.run_spec` of it gives the same
run to the last bit. A model that exists in memory only has no name, and its flow has no Spec. The random starts of a flow are
shared laws: its sphere is the law `sphere` with `radius = sqrt(d)`, and its cube is `uniform_cube` from -5 to 5.

A long text gives several starts. With `n = 16` and `special = false` it is cut into pieces of 16 tokens. `piece = 3` chooses one
of them. Without `piece` one is drawn at random, and each member of a `batch` draws its own.

**What a Spec may open.** `al.resolve`, and so each command that runs a Spec, reads the checkpoint that the Spec names. The Spec
of a stranger may name any path. Reading is safe: files are checked, nothing in them is executed, and nothing is downloaded. If
a model is missing, the error names the command that fetches it. `Spec.load` and `al.load` open no checkpoint, because a saved
run holds its matrices and tokens. `attnlab verify` resolves the Spec of a limit to compare it with the limit.

The digest of a Spec covers the name of a model, not its numbers. Models of the catalog have a fixed SHA-256. For other models,
keep the folder, or name a revision: `hf:owner/name@revision`.
"""
"""The section that is written by hand."""


def loadable() -> str:
    """The families of checkpoints, and what happens to what they do not compute."""
    rows = []
    for name in families:
        about = sys.modules[families[name].__module__].__doc__ or ""
        kinds = ", ".join(f"`{kind}`" for kind in families[name].model_types)
        rows.append([f"`{name}`", kinds, " ".join(about.split("\n\n")[0].split())])
    return filled("""
        One row per family: its name, the model_type in config.json, and what its layers are. Hidden states equal those of
        transformers in double precision to 1e-10 (`make parity`). A tensor inside a layer that the family does not read,
        or a key of the config that changes hidden states and is not computed, is refused with its name.
    """) + "\n\n" + table(("family", "model_type", "layers"), rows)


def page(frames: Sequence[Any], missing: Sequence[str]) -> str:
    """The page."""
    left_out = f" Not fetched here, and left out: {', '.join(missing)}." if missing else ""
    parts = [
        "# Do trained transformers have the value matrices of the theorems?",
        filled(f"""
            Written by `python docs/make_models.py`. Of each head, V = W_O W_V (stream to stream) and M = W_Q^T W_K /
            sqrt(head size) are taken alone: biases, feed-forward parts, masks, the other heads and the division in
            the norms are left out. The gain of a norm that stands before attention is folded in; rotary positions are
            taken at offset 0. Chance is what {DRAWS} heads with Gaussian factors of the same shapes give, at the same
            Frobenius norms.{left_out}
        """),
        "    attnlab spectra minilm                             # one row per head, each number with its rank\n"
        "    attnlab spectra plbert --figure plane.png          # eigenvalues in the complex plane\n"
        "    attnlab spectra minilm --csv heads.csv --json      # everything\n"
        '    al.models.spectra(al.models.load("minilm"))        # the same as a pandas DataFrame',
        "## Which checkpoints load",
        loadable(),
        "## The models",
        table(FACTS, [facts(frame) for frame in frames]),
        HEAD_SPEC.strip(),
        "## The leading eigenvalue of V",
        filled("""
            The leading eigenvalue is the one of largest modulus. In a good triple, which `three_hyperplanes` asks for,
            it is real, positive and alone in modulus, with <Q phi_1, K phi_1> > 0; positive leading eigenvalues include
            the good triples. In each cell: number of heads, share, its 95 % interval (Wilson), then chance
            (from the random heads above), and the two-sided binomial p. Heads of tied
            layers are counted once. By symmetry chance gives as many positive as
            negative leading eigenvalues, and half of the positive ones are good triples.
        """),
        table(("model", "heads", *CLASSES.values()), [shares_row(frame) for frame in frames] + [pooled_row(frames)]),
        f"![Shares of heads by their leading eigenvalue of V, with intervals, beside chance]({SHARES})",
        "## How far from chance",
        filled("""
            The share of a model's heads whose number is below the 2.5 % quantile of chance, and above the 97.5 %
            quantile. Without training both would be near 2 or 3 %.
        """),
        table(("number", *(frame.attrs["model"] for frame in frames)), [unusual_row(name, frames) for name in UNUSUAL]),
        "## The sign of the score", score_words(frames),
        "## What the data support", *supported(frames),
        "## What they do not",
        filled("""
            Four small models, each trained once by somebody else, are not a sample of trained transformers. Tied or
            not, pre- or post-norm, width, depth, data and task all differ between them at once, so no difference
            between two rows of these tables can be put down to any one of them. Heads of one model are not
            independent: the intervals are too narrow, how much so is not known. With 8 and 12 heads the two tied
            models can hardly differ from chance in any share, whatever they are. No cause is claimed: that spectra
            differ from Gaussian ones says that training, or the initialisation it started from (which need not be
            Gaussian, nor of these norms for Q, K, V and O alike), left a trace, not which.
        """),
        filled("""
            And a good triple is a statement about one head alone. The theorem is about the flow of that head with
            nothing else; no layer here is that. Whether the tokens of the whole model do what the theorem says is
            another question, which spectra do not answer.
        """),
    ]
    if any(frame.attrs["model"] == PLANE_OF for frame in frames):
        parts += [f"## One tied model, head by head: {PLANE_OF}", plane_words(frames), f"![Eigenvalues in the plane]({PLANE})"]
    if any(frame.attrs["model"] == MAP_OF for frame in frames):
        parts += [f"## One model, layer by layer: {MAP_OF}", f"![Map of verdicts, layers by heads]({MAP})"]
    return "\n\n".join(parts) + "\n"


def facts(frame: Any) -> list[str]:
    """A model's shape."""
    of, about = frame.attrs, known_models[frame.attrs["model"]].about
    return [f"`{of['model']}`", about, of["family"], str(of["d"]), str(of["heads"]), str(of["head_size"]), str(of["layers"]),
            "yes" if of["is_tied"] else "no", "before" if of["is_pre_norm"] else "after", "causal" if of["is_causal"] else "none"]


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.0f} %"


def cell(count: int, total: int, chance: float) -> str:
    """A count with its share, interval, chance and p."""
    low, high = interval(count, total)
    p = stats.binomtest(count, total, chance).pvalue
    return f"{count}: {percent(count / total)} ({100 * low:.0f} to {percent(high)}); {percent(chance)}, p = {p:.2g}"


def shares_row(frame: Any) -> list[str]:
    """The four shares of a model."""
    found = shares_of(frame)
    return [f"`{frame.attrs['model']}`", str(len(frame)),
            *(cell(found[name], len(frame), frame.attrs["null_shares"][name]) for name in CLASSES)]


def pooled(frames: Sequence[Any], name: str) -> tuple[int, int, float]:
    """(heads of a class, heads, chance weighted by the models' numbers of heads)."""
    total = sum(len(frame) for frame in frames)
    return (sum(shares_of(frame)[name] for frame in frames), total,
            sum(len(frame) * frame.attrs["null_shares"][name] for frame in frames) / total)


def pooled_row(frames: Sequence[Any]) -> list[str]:
    """The four shares of all heads together."""
    return ["all", str(pooled(frames, "complex")[1]), *(cell(*pooled(frames, name)) for name in CLASSES)]


def unusual_row(name: str, frames: Sequence[Any]) -> list[str]:
    """How many heads of each model are below and above what chance gives."""
    ranks = [frame[f"{name}_quantile"] for frame in frames]
    return [UNUSUAL[name], *(f"{percent(np.mean(rank < 0.025))} below, {percent(np.mean(rank > 0.975))} above" for rank in ranks)]


def score_counts(frames: Sequence[Any], is_chosen: Callable[[Any], Any]) -> tuple[int, int]:
    """(heads with a positive score, heads) among those chosen."""
    chosen = [frame[is_chosen(frame)] for frame in frames]
    return sum(int((part["score"] > 0).sum()) for part in chosen), sum(len(part) for part in chosen)


def is_positive(frame: Any) -> Any:
    """Which heads have a positive leading eigenvalue."""
    return frame["is_positive"]


def is_negative(frame: Any) -> Any:
    """Which heads have a negative leading eigenvalue."""
    return frame["is_real"] & ~frame["is_positive"]


def score_words(frames: Sequence[Any]) -> str:
    """How often phi_1 scores itself positively, by the sign of the leading eigenvalue."""
    said = []
    for words, chosen in (("Untied", [one for one in frames if not one.attrs["is_tied"]]),
                          ("Tied", [one for one in frames if one.attrs["is_tied"]])):
        if chosen:
            plus, minus = score_counts(chosen, is_positive), score_counts(chosen, is_negative)
            p = stats.fisher_exact([[plus[0], plus[1] - plus[0]], [minus[0], minus[1] - minus[0]]]).pvalue
            names = ", ".join(one.attrs["model"] for one in chosen)
            said.append(f"{words} models ({names}): <Q phi_1, K phi_1> > 0 for {plus[0]} of {plus[1]} positive leading "
                        f"eigenvalues and {minus[0]} of {minus[1]} negative ones (Fisher's p = {p:.2g}).")
    said.append("This was looked at after the tables had been seen, and heads are taken as independent: a thing to test on other "
                "models, not a finding.")
    return filled("Chance gives one half, whatever the leading eigenvalue. " + " ".join(said))


def supported(frames: Sequence[Any]) -> list[str]:
    """Sentences, each with its numbers; which ones hold is decided by the numbers."""
    beyond = []
    for frame in frames:
        found, total = shares_of(frame), len(frame)
        for name, says in CLASSES.items():
            low, high = interval(found[name], total)
            chance = frame.attrs["null_shares"][name]
            if not low <= chance <= high:
                word = "fewer" if chance > high else "more"
                shares = f"{percent(found[name] / total)} against {percent(chance)}"
                beyond.append(f"{frame.attrs['model']} has {word} {says} than chance ({shares})")
    good, total, chance = pooled(frames, "good triple")
    complex_count, _, complex_chance = pooled(frames, "complex")
    p_good, p_complex = stats.binomtest(good, total, chance).pvalue, stats.binomtest(complex_count, total, complex_chance).pvalue
    every = [frame.attrs["model"] for frame in frames if {"good triple", "negative", "complex"} <= set(frame["verdict"])]
    sizes = [np.mean(frame["lambda1_quantile"] > 0.975) for frame in frames]
    normal = [np.mean(frame["non_normality_quantile"] < 0.025) for frame in frames]
    items = [
        f"Good triples exist in trained models: {good} of {total} heads, {percent(good / total)}. The other {total - good} heads "
        f"are outside the theorem. Chance gives {percent(chance)} ({DRAWS} random heads of each shape)"
        + ("; the two cannot be told apart" if p_good > 0.05 else "")
        + f" (p = {p_good:.2g}).",
        f"The leading eigenvalue is one of a complex pair in {complex_count} of {total} heads, "
        f"{percent(complex_count / total)}; chance gives {percent(complex_chance)} (p = {p_complex:.2g}).",
        "All three cases, good triple, negative leading eigenvalue and complex pair, occur inside "
        f"{', '.join(every) or 'no model'}.",
        "Taken one by one at 95 %: " + ("; ".join(beyond) if beyond else "no share of any model differs from chance")
        + f". ({4 * len(frames)} shares were looked at.)",
        "Sizes and shapes differ from chance more than signs do: depending on the model, lambda_1 is larger than that of 97.5 % "
        f"of Gaussian heads in {percent(min(sizes))} to {percent(max(sizes))} of the heads, and V is closer to normal than "
        f"97.5 % of them in {percent(min(normal))} to {percent(max(normal))}.",
    ]
    return ["\n".join(filled(item, "- ", "  ") for item in items)]


def plane_words(frames: Sequence[Any]) -> str:
    """The leading eigenvalues of one model in words."""
    frame = next(one for one in frames if one.attrs["model"] == PLANE_OF)
    said = []
    for row in frame.itertuples():
        imaginary = "" if row.is_real else f" ± {abs(row.lambda1.imag):.3f}i"
        gap = f" (gap {percent(row.gap)})" if row.is_real else ""
        said.append(f"{name_head(row.layer, row.head)}: {row.lambda1.real:+.3f}{imaginary}{gap}")
    worst = frame.loc[frame["condition"].idxmax()]
    return filled(f"Leading eigenvalues by head: {'; '.join(said)}. The worst conditioned is that of "
                  f"{name_head(worst['layer'], worst['head'])}, by a factor of {worst['condition']:.1f} "
                  f"({percent(worst['condition_quantile'])} of Gaussian heads have less).")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(escaped, line)) + " |" for line in lines)


def escaped(text: str) -> str:
    """The text with _ and < of the mathematics escaped outside code."""
    pieces = text.split("`")
    pieces[::2] = [piece.replace("_", r"\_").replace("<", r"\<") for piece in pieces[::2]]
    return "`".join(pieces)


def filled(text: str, first: str = "", other: str = "") -> str:
    """A paragraph in lines."""
    return textwrap.fill(escaped(" ".join(text.split())), WIDTH, initial_indent=first, subsequent_indent=other,
                         break_long_words=False, break_on_hyphens=False)


def main() -> None:
    """Compute everything, and write the page and the pictures."""
    names = [name for name in known_models if is_cached(name)]
    if not names:
        sys.exit("No known model is fetched: attnlab fetch all gets them.")
    frames, folder = [], PAGE.parent
    (folder / "images").mkdir(exist_ok=True)
    for name in names:
        print(name, file=sys.stderr)
        model = al.models.load(name)
        frames.append(al.models.spectra(model, null=DRAWS))
        if name == PLANE_OF:
            draw_spectra(model).savefig(folder / PLANE)
        if name == MAP_OF:
            draw_verdict_map(frames[-1]).savefig(folder / MAP)
    draw_shares(frames).savefig(folder / SHARES)
    PAGE.write_text(add_links(page(frames, [name for name in known_models if name not in names])), encoding="utf-8")


if __name__ == "__main__":
    main()
