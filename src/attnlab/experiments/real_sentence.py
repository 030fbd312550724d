"""A real sentence as the start of the flow: which word the tokens gather at, and whether it could have been told beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments import heads as slides
from attnlab.experiments.datasets import changed, table
from attnlab.experiments.plain_flow import by_scipy
from attnlab.experiments.record import Claim, Data, Experiment, Progress
from attnlab.models.record import NotFetched
from attnlab.types import Trajectory, Weights

SENTENCES = (
    "The cat sat on the mat because it was tired.",
    "A king without a crown is still a king to his people.",
    "Water boils at one hundred degrees at the level of the sea.",
    "She sold the old house and moved to a small town by the river.",
    "Who reads the last page of a book before the first?",
)
IDS = (6, 10)
"""At size small: so many rows of so many random ids, which stand for sentences."""

FUNCTION_WORDS = frozenset("""a an and as at because before but by down for from he her his i if in into is it its my of on one
    or our she so still than that the their them then they this to was we where who with without would you your""".split())

T, STEP = 20.0, 0.05
"""The end and the steps in natural time: τ = Ht for V = I, τ = λt for own values."""

CLUSTER = 0.05
"""Tokens whose directions are nearer than this are of one cluster."""

EXACT = "exact: every token as likely to lead, texts independent; times 15, for three guesses and five numbers of heads"

SHOWN = 0
"""The text that is drawn."""

LEADING = ("norm", "score", "received")
"""What might tell the leader at the start: |x|, the score <Mx, x> of a token with itself, the attention it receives."""


def kind_of(word: str, is_special: bool) -> str:
    """What sort of token it is; ids of a model without a tokenizer have none."""
    if is_special or word.startswith("#") and word[1:].isdigit():
        return "special" if is_special else "id"
    if not any(letter.isalnum() for letter in word):
        return "mark"
    return "function" if word.lower() in FUNCTION_WORDS else "content"


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """A row for every text, kind of values and number of heads; the tokens of all texts; the plane that is drawn; a check."""
    from attnlab.engine.threads import one_blas_thread

    source, why = slides.trained_model(size, model)
    if source is None:
        raise NotFetched(why)                               # a sentence that nobody reads is none
    texts = read_texts(source)
    starts = [np.asarray(source.hidden_states(one.ids)[0]) for one in texts]
    rows, ends = [], []
    with one_blas_thread():
        stack = [stack_leaders(source, one) for one in texts]
        cases = [(values, count) for values in slides.VALUES for count in slides.HEADS]
        for done, (values, count) in enumerate(cases):
            weights = slides.trained_heads(source, count, values)
            # own values of many heads take longest
            progress((done / len(cases)) ** 2, f"V {values}, {count} heads")
            for number, x0 in enumerate(starts):
                row, end = gathering(weights, x0, values)
                rows.append({"text": number, "values": values, "heads": count, "n": len(x0), **stack[number], **row})
                if number == SHOWN and values == "identity":
                    ends.append(end)
        weights, x0, _ = slides.in_span(slides.trained_heads(source, 4), starts[SHOWN])
        reference = table({"scipy": by_scipy(weights, x0, 0.5).ravel(), "engine": checked(weights, x0, 0.5).ravel()}, "entry")
    progress(1.0)
    data = {"rows": table({name: [row[name] for row in rows] for name in rows[0]}, model=source.name,
                          has_words=int(source.tokenizer_file is not None)),
            "tokens": token_table(texts, starts), "plane": plane_of(starts[SHOWN], ends), "reference": reference}
    return data


def token_table(texts: Sequence[Any], starts: Sequence[np.ndarray]) -> Any:
    """A row for each token of all texts, one text after the other."""
    words = [word for one in texts for word in one.words]
    special = np.concatenate([one.is_special for one in texts])
    return table({"text": np.repeat(np.arange(len(texts)), [len(x) for x in starts]), "word": words,
                  "kind": [kind_of(word, bool(is_special)) for word, is_special in zip(words, special, strict=True)]}, "token")


def plane_of(x0: np.ndarray, ends: Sequence[np.ndarray]) -> Any:
    """Directions at the start and at the end for every number of heads, on the principal axes of the start."""
    import xarray

    start = unit(x0)
    axes = np.linalg.svd(start - start.mean(axis=0), full_matrices=False)[2][:2]
    flat = np.stack([(end - start.mean(axis=0)) @ axes.T for end in ends])
    variables: dict[str, Any] = {"start": (("token", "axis"), (start - start.mean(axis=0)) @ axes.T),
                                 "end": (("heads", "token", "axis"), flat)}
    return xarray.Dataset(variables, coords={"heads": list(slides.HEADS)}, attrs={"d": x0.shape[1]})


def checked(weights: Weights, x0: np.ndarray, t: float) -> np.ndarray:
    """The tokens at time t by the engine."""
    from attnlab.engine import simulate

    return simulate(weights, x0, times=[0.0, t], t_end=t, rtol=1e-9).x[-1]


def read_texts(model: Any) -> list[Any]:
    """The sentences and the paragraph as tokens, special ones with them; rows of ids where there is no tokenizer."""
    from attnlab.models.tokens import read_tokens

    if model.tokenizer_file is None:
        many, n = IDS
        rows = np.random.default_rng(1).integers(0, model.config.vocabulary, (many, n))
        return [read_tokens(model, ids=ids) for ids in rows]
    return [read_tokens(model, text) for text in (*SENTENCES, slides.TEXT)]


def stack_leaders(model: Any, tokens: Any) -> dict[str, int]:
    """Who receives most attention in the first and in the last layer of the model itself."""
    from attnlab.models import sentence

    leader = sentence(model, ids=tokens.ids, only=["real"])["leader"].values[0]
    leader = leader[np.isfinite(leader)].astype(int)
    return {"stack_first": int(leader[0]), "stack_last": int(leader[-1])}


def flow(weights: Weights, x0: np.ndarray, step: float = STEP) -> Trajectory:
    """The run to T."""
    from attnlab.engine import simulate

    growth = float(np.max(np.real(weights.total.eigenvalues)))
    return simulate(weights, x0, times=np.array([0.0, T]) / growth, t_end=T / growth, stepper="rk4", dt=step / growth,
                    frame="x", throw=False)


def unit(x: np.ndarray) -> np.ndarray:
    """Directions."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def gathered_at(run: Trajectory) -> tuple[np.ndarray, np.ndarray, int]:
    """(directions at the end (n, d), labels, who leads the largest cluster)."""
    from attnlab.analysis.clusters import cluster_labels
    from attnlab.dynamics import attention

    end = unit(run.scaled_x()[0][-1])
    labels = cluster_labels(end, CLUSTER)
    looks = attention(run, at=-1).mean(axis=0)[labels == np.argmax(np.bincount(labels))].mean(axis=0)
    return end, labels, int(looks.argmax())


def gathering(weights: Weights, x0: np.ndarray, values: str) -> tuple[dict[str, Any], np.ndarray]:
    """Where the largest cluster is in the end, who leads it, what that token was like at the start; and the directions."""
    from attnlab.dynamics import attention

    small, y0, basis = slides.in_span(weights, x0) if values == "identity" else (weights, x0, None)
    run = flow(small, y0)
    end, labels, leader = gathered_at(run)
    members = labels == np.argmax(np.bincount(labels))
    centre, start = unit(end[members].mean(axis=0)), unit(y0)
    near, P = start @ centre, attention(run, at=-1)
    scores = np.mean([np.sum((x0 @ Q.T) * (x0 @ K.T), axis=1) for Q, K in zip(weights.Q, weights.K, strict=True)], axis=0)
    standing = dict(zip(LEADING, (np.linalg.norm(x0, axis=1), scores, attention(run, at=0).mean(axis=(0, 1))), strict=True))
    found = {"clusters": int(labels.max()) + 1, "members": int(members.sum()), "leader": leader,
             "share": float(P.mean(axis=0)[members, leader].mean()), "nearest": int(near.argmax()), "cosine": float(near.max()),
             "to_mean": float(unit(start.mean(axis=0)) @ centre), "to_mode": np.nan, "modes": 0,
             **{f"rank_{name}": 1 + int(np.sum(numbers > numbers[leader])) for name, numbers in standing.items()}}
    if values == "identity":
        assert basis is not None
        _, other_labels, other_leader = gathered_at(flow(small, y0, 2 * STEP))
        found |= {"steps_agree": int(other_leader == leader and np.array_equal(labels, other_labels)),
                  "limit_agrees": limit_agrees(small, y0, leader)}
        return found, end @ basis.T
    modes = leading_space(weights, P, labels)
    return found | {"to_mode": float(np.linalg.norm(modes.T @ centre)), "modes": modes.shape[1], "steps_agree": -1,
                    "limit_agrees": -1}, end


def limit_agrees(weights: Weights, x0: np.ndarray, leader: int) -> int:
    """Whether the certified limit has that leader too: 1, 0, or -1 where there is none to ask."""
    from attnlab.limits import limit

    if weights.heads > 1:
        return -1
    end = limit(weights, x0, budget=10.0)
    if end.grade != "exact":
        return -1
    return int(np.bincount(end.leaders).argmax() == leader)


def leading_space(weights: Weights, P: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """An orthonormal basis (d, k) of where the largest cluster points in the end, from who attends to whom then, P (h, n, n).

    Tokens of a cluster move alike: x_c' = sum_h V_h x_c', c' the cluster that head h looks at from c. Of this linear system the
    modes are taken that grow fastest, the others being at most e^-6 of them after a time T / growth.
    """
    count, d = int(labels.max()) + 1, weights.d
    system = np.zeros((count, d, count, d))
    for matrix, seen in zip(weights.full_V, P, strict=True):
        for c in range(count):
            looks = np.bincount(labels, weights=seen[labels == c].mean(axis=0), minlength=count)
            system[c, :, int(looks.argmax())] += matrix
    values, vectors = np.linalg.eig(system.reshape(count * d, count * d))
    chosen = vectors[:, values.real >= (1 - 6 / T) * values.real.max()].reshape(count, d, -1)[np.argmax(np.bincount(labels))]
    basis, sizes, _ = np.linalg.svd(np.concatenate([chosen.real, chosen.imag], axis=1), full_matrices=False)
    return basis[:, sizes > 1e-9]


def chance_of(hits: int, chances: np.ndarray) -> float:
    """The exact chance of so many hits or more among independent trials with these chances."""
    counts = np.ones(1)
    for chance in chances:
        counts = np.convolve(counts, [1 - chance, chance])
    return float(counts[hits:].sum())


def rank_p(ranks: np.ndarray, sizes: np.ndarray) -> float:
    """The exact chance that random tokens rank as high together, 1 being first: one token of each text, of `sizes` tokens."""
    places = [np.rint(1000 * (np.arange(1, n + 1) - 0.5) / n).astype(int) for n in sizes]
    total, found = np.ones(1), 0
    for place, rank in zip(places, ranks, strict=True):
        total = np.convolve(total, np.bincount(place) / len(place))
        found += int(place[min(int(rank), len(place)) - 1])
    return float(min(total[: found + 1].sum(), 1.0))


def rows_of(data: Data, values: str, heads: int) -> Any:
    """The rows of one case, a row a text."""
    rows = data["rows"]
    return rows.isel(row=(rows["values"].values == values) & (rows["heads"].values == heads))


def predicted(data: Data, name: str, heads: int) -> float:
    """rank_p of the leaders for V = I by what they were like at the start."""
    rows = rows_of(data, "identity", heads)
    return rank_p(rows[f"rank_{name}"].values, rows["n"].values)


def kinds_at(data: Data, rows: Any, column: str = "leader") -> list[str]:
    """Of which kind the tokens in a column are."""
    tokens = data["tokens"]
    return [str(tokens["kind"].values[tokens["text"].values == text][token])
            for text, token in zip(rows["text"].values, rows[column].values, strict=True)]


def share_of(data: Data, kinds: Sequence[str]) -> np.ndarray:
    """The share of tokens of these kinds in each text."""
    tokens = data["tokens"]
    return np.array([np.isin(tokens["kind"].values[tokens["text"].values == text], list(kinds)).mean()
                     for text in np.unique(tokens["text"].values)])


def claims(data: Data) -> list[Claim]:
    """Where clusters are, who leads them, and whether that could be told."""
    rows, reference = data["rows"], data["reference"]
    one, texts = rows_of(data, "identity", 1), len(np.unique(rows["text"].values))
    same = int(np.sum(one["nearest"].values == one["leader"].values))
    far = {count: int(np.sum(case["to_mean"].values > case["cosine"].values))
           for count in slides.HEADS[1:] for case in [rows_of(data, "identity", count)]}
    identity = rows.isel(row=rows["values"].values == "identity")
    own = rows.isel(row=rows["values"].values == "own")
    several = identity["heads"].values >= 4
    coincide = {count: chance_of(int(np.sum(case["leader"].values == case["stack_last"].values)), 1 / case["n"].values)
                for count in slides.HEADS for case in [rows_of(data, "own", count)]}
    slides_say = "with paragraphs, when a cluster forms it sits near one of the initial vectors"
    made = [
        Claim("CONFIRMED for one head, V = I: the first vector that is nearest to the largest cluster is that of the token which "
              "leads it. Chance of that in so many texts.", chance_of(same, 1 / one["n"].values), slides_say, 0, 0.01,
              "exact: any token as likely to be the nearest", f"In {same} of {texts} texts."),
        Claim("REFUTED as a rule for several heads, V = I: runs with 2 heads or more whose largest cluster is nearer to the mean "
              "direction of the text than to any token.", float(sum(far.values())), slides_say, 1, texts * len(far),
              "a rule is refuted by one exception; heads that follow different tokens put the cluster at the mean of these",
              f"Of {texts} texts each: {', '.join(f'{count} with {heads} heads' for heads, count in far.items())}. Cosine with "
              f"the nearest token: {one['cosine'].values.mean():.2f} in the mean with one head, "
              f"{identity['cosine'].values[identity['heads'].values > 1].mean():.2f} with several."),
        Claim("With their own values clusters are at no token but where the values push: least part of the direction of the "
              "largest cluster in the fastest modes of the sum of V_h over the heads, 1 being all.",
              float(own["to_mode"].values.min()), slides_say, 0.9, 1 + 1e-9,
              "tokens of a cluster c obey x_c' = Σ_h V_h x_c′, c′ the cluster that head h looks at; other modes are e⁻⁶ by then",
              f"REFUTED: the largest cosine with a token is {own['cosine'].values.max():.2f}; these modes are "
              f"{int(own['modes'].values.max())} of {int(data['plane'].attrs['d'])} dimensions at most."),
        Claim("CONFIRMED: with 4 heads or more and V = I a text, which is few tokens, ends in one cluster: runs that do not.",
              float(np.sum(identity["clusters"].values[several] > 1)), "few tokens: one cluster", 0, 0,
              "the slides' own observation",
              f"REFINED: with one head {int(np.sum(one['clusters'].values > 1))} of {texts} texts end in more than one."),
        Claim("One head, V = I: the leader is a token that scores itself high at the start, ⟨Mx, x⟩. Chance of ranks as high, "
              "corrected.", min(15 * predicted(data, "score", 1), 1.0), "", 0, 0.05, EXACT),
        Claim("It is not the longest token that leads: chance of ranks by |x| as high as these, one head, V = I.",
              predicted(data, "norm", 1), "", 0.05, 1, "exact, not corrected: if the longest led, this would be tiny"),
        Claim("With own values the leader is not whom the model itself attends to most in its last layer: least chance of so "
              "many coincidences, corrected.", min(5 * min(coincide.values()), 1.0), "", 0.05, 1,
              "exact; times 5, for the numbers of heads"),
        Claim("The certified limit of one head has the same leader: texts in which it has not.",
              float(np.sum(one["limit_agrees"].values == 0) + np.all(one["limit_agrees"].values == -1)), "", 0, 0,
              "a certificate, from another computation"),
        Claim("Steps twice as long make the same clusters and leaders, V = I: runs in which they do not.",
              float(np.sum(identity["steps_agree"].values != 1)), "", 0, 0, "a second computation"),
        Claim("Four heads agree with SciPy's DOP853 on a plain right-hand side at τ = 2: largest difference, relative.",
              float(np.abs(reference["engine"] - reference["scipy"]).max() / np.abs(reference["scipy"]).max()),
              "", 0, 1e-6, "tolerances 1e-9 and 1e-11"),
    ]
    return made + (claims_on_words(data, texts) if rows.attrs["has_words"] else [])


def claims_on_words(data: Data, texts: int) -> list[Claim]:
    """What needs words: which kinds lead."""
    one, many = rows_of(data, "identity", 1), rows_of(data, "identity", max(slides.HEADS))
    added = kinds_at(data, many).count("special")
    odd = sum(kind in ("special", "mark") for kind in kinds_at(data, one))
    stack = int(np.sum(many["leader"].values == many["stack_first"].values))
    return [
        Claim("16 heads, V = I: the leader is whom the model itself attends to most in its first layer. Chance of so many texts.",
              chance_of(stack, 1 / many["n"].values), "leader words; no number", 0, 0.01,
              "exact: any token as likely; most of the heads are those of the first layer",
              f"In {stack} of {texts} texts. A token that the model added leads in {added}. With one head such tokens or "
              f"punctuation lead in {odd}, a chance of {chance_of(odd, share_of(data, ('special', 'mark'))):.2g} among 15 "
              "that one could ask for: no evidence."),
        Claim("Several heads, V = I: the leader is a token that received much attention at the start. Chance of ranks as high, "
              "corrected, the largest for 4, 8, 16 heads.", 15 * max(predicted(data, "received", count) for count in (4, 8, 16)),
              "", 0, 0.05, EXACT),
    ]


def figures(data: Data) -> dict[str, Any]:
    """One text in its plane, where clusters are, and who leads."""
    from attnlab.experiments.real_sentence_figures import draw_leaders, draw_places, draw_text

    return {"real_sentence": draw_text(data), "real_sentence_leaders": draw_leaders(data),
            "real_sentence_places": draw_places(data)}


def _other_leaders(rows: Any) -> None:
    """Other tokens lead, those that score and receive least, and the longest."""
    rows["leader"] = (rows["leader"] + rows["n"] // 2) % rows["n"]
    rows["rank_score"], rows["rank_received"], rows["rank_norm"] = rows["n"], rows["n"], rows["rank_norm"] * 0 + 1


def _at_tokens(rows: Any) -> None:
    """All clusters at tokens, and two of them."""
    rows["cosine"], rows["to_mode"], rows["clusters"] = rows["cosine"] * 0 + 1, rows["to_mode"] * 0.1, rows["clusters"] + 1


def _as_the_stack(rows: Any) -> None:
    rows["leader"] = rows["stack_last"]


def _disagreeing(rows: Any) -> None:
    """Other steps and the limit say something else."""
    rows["steps_agree"], rows["limit_agrees"] = rows["steps_agree"] * 0, rows["limit_agrees"] * 0


def _elsewhere(reference: Any) -> None:
    reference["scipy"] = reference["scipy"] * 1.001


experiments.register("real_sentence")(
    Experiment(
        name="real_sentence",
        title="A real sentence in the flow of attention: at which word do its tokens meet?",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), paragraphs as the start, and real "
        "tokenized sentences as a further direction",
        about="The tokens of five English sentences and a paragraph, as the trained model minilm embeds them, are the start of "
        "the pure attention flow with 1 to 16 of that model's heads; V = I as in the slides, or the heads' own value maps. "
        "Nothing else of the model takes part. The slides report that a cluster that forms from a paragraph sits near one of "
        "the initial vectors.\n\n"
        "With one head and V = I that is so: most tokens gather at one word, its leader, a token whose score with itself "
        "is high at the start; its length says nothing. With several heads each head has a leader of its own, and the cluster is "
        "between them, with 4 and 8 heads nearer to the mean of the text than to any word; 16 heads, four of them of the second "
        "layer, gather a sentence at [CLS], which the model itself attends to most. With their own values "
        "tokens end where the values push them, and no word is near. At size small random ids and a tiny "
        "random model stand in.",
        compute=compute,
        claims=claims,
        figures=figures,
        needs="models",
        spoils={
            "other tokens lead": changed("rows", _other_leaders),
            "two clusters, each at a token": changed("rows", _at_tokens),
            "leaders of the stack": changed("rows", _as_the_stack),
            "other steps, other leaders": changed("rows", _disagreeing),
            "scipy ends elsewhere": changed("reference", _elsewhere),
        },
    )
)
