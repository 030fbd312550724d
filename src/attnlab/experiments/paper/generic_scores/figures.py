"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.datasets import limit_in, run_in
from attnlab.experiments.record import Data
from attnlab.render.draws import draw_counts, draw_shrinking, start_size_figure
from attnlab.render.style import house_style, new_figure, set_layout, title

from .claims import COUNTED, classes_of, counts_of
from .experiment import CLASSES, REACH, N, class_of, ended, first_of, scores_of


def figures(data: Data) -> dict[str, Any]:
    """Three draws and the counts, for V = I and in F; and what the size of the start does."""
    return {
        "generic_scores": _rows(data, "draws", "", "V = I, any scores: tokens still end on a polytope"),
        "generic_scores_paranormal": _rows(data, "paranormal", "paranormal_", "V = diag(1, 1, −0.5), any scores: the part in F"),
        "generic_scores_start_size": _size_figure(data["sizes"]),
    }


def _rows(data: Data, name: str, before: str, headline: str) -> Any:
    """The first draw of each class, and below it the counts of all."""
    draws = data[name]
    kinds, counts = classes_of(draws), counts_of(draws)
    open_ones = int((draws["is_decided"].values == 0).sum())
    block = "$M_{FF}$" if before else "M"
    with house_style():
        figure = new_figure(9.6, 6.5)
        set_layout(figure, wspace=0.04, hspace=0.03)
        panels = figure.subplots(2, 3, height_ratios=[1.75, 1])
        for (top, below), kind in zip(panels.T, CLASSES, strict=True):
            shown = before + kind.replace(" ", "_")
            run, end, draw = run_in(data, shown), limit_in(data, f"{shown}_limit", shown), first_of(kind, draws.attrs["d"])
            assert run.z is not None
            points, labels = (end.limits[:, :2], end.labels) if end.certified else ended(run.z[-1][:, :2])
            draw_shrinking(top, run.times, run.z[..., :2], points, labels, run.dynamics.weights.M[0][:2, :2], 1.12 * REACH)
            count = int(labels.max()) + 1
            found = f"{count} limits" if count > 1 else f"1 limit, at {np.linalg.norm(points[0]):.2f} from 0"
            top.set_title(f"sym({block}) {kind}\n(draw {draw}: {found})", fontsize=9.5)
            draw_counts(below, counts[kinds == kind], max(6, int(counts.max())), None if before else COUNTED[kind])
        panels[1, 0].set_ylabel("share of draws")
        said = f", {open_ones} not certified and counted at the end of their run" if open_ones else ""
        said += "" if before else "; other sample: 20 runs counted independently"
        title(figure, f"{headline} · n = {N}",
              f"Above: the first draw of each class, entries of M uniform in [−1, 1]. Rings: limits u, their polytope shaded; "
              f"dotted: the lines ⟨{block}ᵀu, ·⟩ = const., which must bound it; grey: hulls at t = 0, ½, 1, 1½, 2. Below: "
              f"{len(counts)} draws{said}.")
    return figure


def _size_figure(sizes: Any) -> Any:
    """How often there is a single limit, and where it is, against the size of the start."""
    reach, counts = sizes["size"].values, sizes["label"].values.max(axis=-1) + 1
    kinds = np.array([class_of(scores_of(draw, 2)) for draw in range(counts.shape[1])])
    norms = np.linalg.norm(sizes["limit"].values[:, kinds == CLASSES[2]].mean(axis=2), axis=-1) / reach[:, None]
    mean = float(np.median(np.linalg.norm(sizes["mean"].values[kinds == CLASSES[2]], axis=-1)))
    return start_size_figure(reach, {kind: counts[:, kinds == kind] for kind in CLASSES}, norms, mean, REACH)
