"""Stop 4: one head of a trained model."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from attnlab.explorer.embed import HIDDEN
from attnlab.explorer.trained import model_payload
from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.studies.flow_end import leading_eigenvalue
from attnlab.models.studies.flows import Flow, flow
from attnlab.models.studies.spectra_table import spectra
from attnlab.render.tour_page import draw_end, draw_head
from attnlab.theory import check
from attnlab.tour.context import Context
from attnlab.tour.record import Card, Chapter, Row, Stop, Text, left_out
from attnlab.tour.stops import stops
from attnlab.verdicts import Outcome, Verdict

MODEL, TEXT = "albert-chem", "CC(=O)O.OCC>>CC(=O)OCC"
ABOUT = "a small ALBERT that reads chemical reactions"
T_END = 15.0
"""The end of the run where no limit is certified. Otherwise the run ends where the certificate
begins.
"""

WORK, CHECK_WORK, BUDGET = 5e5, 5e4, 600.0
"""Units of work for the limit of a head, which take about fifteen seconds, and for a check where
there is none; and seconds, which are not reached on an idle machine.
"""

PLANES = 3
"""Parallel hyperplanes that the theorem allows."""

OPENING = (
    "So far we chose V. A trained model has its own. One attention head writes into a token V ="
    " W_(O) W_(V) times what it reads. If this head alone moves the tokens, the theorems say that"
    " this matrix decides what happens. Does training find matrices to which the theorems apply?"
)


def tell(context: Context) -> Chapter:
    """Show the spectrum of one head, where its tokens end, and a head whose group rotates."""
    model, why = context.model(MODEL)
    if model is None:
        row = Row(
            "trained_head", "trained_head", f"One head of {MODEL}, {ABOUT}.", "not here", found=why
        )
        return left_out(row, OPENING, f"{MODEL}, {ABOUT}")
    frame = spectra(model)
    good = frame[frame["verdict"] == "good triple"].sort_values("gap", ascending=False)
    chosen = good.iloc[0] if len(good) else frame.iloc[0]
    parts, row = tell_good(context, model, chosen, len(good), frame)
    rotating, rows = tell_rotating(context, model, frame)
    ending = Text(
        "Trained models do contain heads to which the theorem applies, but hardly more often than"
        " random matrices do. Training mainly changes the size of the leading eigenvalue. Alone,"
        " nearly every head gathers its tokens in one or two groups; docs/models.md counts 128"
        " heads. But no head acts alone. The next stop looks at a whole model.",
        "Why it matters.",
    )
    return Chapter([Text(OPENING), *parts, *rotating, ending], [row, *rows])


def certify(context: Context, model: Any, layer: int, head: int, until: float) -> Flow:
    """Return the flow of a head up to the time from which its end is certified, with its limit."""
    name = name_head(layer, head)
    part = context.progress.next_part(until, f"the limit of {name} of {MODEL}")
    first = flow(
        model,
        layer,
        head,
        text=TEXT,
        t_end=1.0,
        saves=2,
        stepper="adaptive",
        work=WORK,
        budget=BUDGET,
        check=False,
        progress=part,
    )
    end = first.end
    found = flow(
        model,
        layer,
        head,
        text=TEXT,
        t_end=T_END if end is None else end.decided,
        stepper="adaptive",
        limit=False,
        check=False,
        progress=context.progress.next_part(0.5, f"the flow of {name} of {MODEL}"),
    )
    return replace(found, limit=first.limit, no_limit=first.no_limit)


def tell_good(
    context: Context, model: Any, chosen: Any, good: int, frame: Any
) -> tuple[list[Any], Row]:
    """Tell of the best good triple, and where its tokens end."""
    begun = time.perf_counter()
    layer, head, kind = int(chosen["layer"]), int(chosen["head"]), str(chosen["verdict"])
    name, total = name_head(layer, head), len(frame)
    found = certify(context, model, layer, head, 0.4)
    data, end = found.data, found.end
    is_proved = end is not None and end.horizon is None and len(end.groups) <= PLANES
    if is_proved:
        assert end is not None
        verdict, answer = "CERTIFIED", f"{len(end.groups)} groups, for ever"
    else:
        said = check(
            found.run,
            names=["three_hyperplanes"],
            work=CHECK_WORK,
            progress=context.progress.next_part(0.8),
        )[0]
        assert isinstance(said, Verdict)  # of one run
        verdict = said.outcome.name
        answer = f"{data['clusters'].values[0]:.0f} groups become {data['clusters'].values[-1]:.0f}"
    row = Row(
        "trained_head",
        "trained_head",
        f"{MODEL}, {name}: tokens that this head alone moves end on at most three "
        "parallel hyperplanes.",
        verdict,
        "at most three parallel hyperplanes",
        answer,
        limits=len(end.groups) if is_proved and end is not None else "",
        decided_at=end.decided if is_proved and end is not None else None,
        n=data.sizes["token"],
        d=model.config.d,
        time_asked=float(found.run.solve.t_end),
        time_reached=float(found.run.times[-1]),
        status=found.run.status.name,
        seconds=time.perf_counter() - begun,
        is_ok=verdict != Outcome.CONTRADICTED.name,
    )
    lead = found.heads[0].numbers.lambda1
    chance = frame.attrs["null_shares"]["good triple"]
    return [
        Text(
            f"The model is {MODEL}, {ABOUT}: {model.config.layers} layers that share one set of"
            f" {total} heads, in {model.config.d} dimensions. A theorem has three hypotheses about"
            " a head: the largest eigenvalue of V is positive, it is simple, and its direction"
            f" attends to itself. We call this a good triple. {good} of the {total} heads are good"
            f" triples. Of {frame.attrs['null_draws']} random heads of the same shape {chance:.0%}"
            " are."
        ),
        Card(
            f"Head {name} of {MODEL}",
            row,
            {
                "Leading eigenvalue of V": (
                    f"{lead.real:.3f}" + (f" ± {abs(lead.imag):.3f} i" if lead.imag else "")
                ),
                "Is it a good triple?": "yes" if kind == "good triple" else f"no: {kind}",
                "The theorem then says": "tokens end on at most three parallel hyperplanes",
                "As t goes to infinity": found.no_limit if end is None else say_groups(found),
                "The run, at its end": (
                    f"{data['clusters'].values[-1]:.0f} groups of directions at t ="
                    f" {float(data['time'].values[-1]):.3g}, of {data['clusters'].values[0]:.0f} at"
                    " the start"
                ),
            },
        ),
        context.draw(
            "trained_head",
            draw_head(found),
            f"Left: eigenvalues of V of {name} in the complex plane. Middle: how this head moves"
            " the tokens of a chemical reaction. Right: the number of groups over time.",
            live=model_payload(found, hide=HIDDEN, theme="light"),
        ),
        Text(
            "Left: the eigenvalues of V. The large green dot is the leading one, on the positive"
            f" half of the axis. Middle: the symbols of the reaction {TEXT} (between ^ and $, two"
            " marks of the model), drawn on the two axes along which they differ most. Open"
            " circles are the start, full ones the end. Right: the number of different"
            " directions. The run ends at the time from which the certificate holds.",
            "What you see.",
        ),
    ], row


def say_groups(found: Flow) -> str:
    """Say how many tokens are in each certified group, and up to when."""
    end = found.end
    assert end is not None
    sizes = " and ".join(str(len(group)) for group in end.groups)
    until = (
        "for ever"
        if end.horizon is None
        else f"up to t = {end.horizon:.4g}, which is lambda_1 t = {end.horizon * end.rate.real:.3g}"
    )
    return (
        f"{len(end.groups)} group{'' if len(end.groups) == 1 else 's'} of {sizes} tokens,"
        f" certified {until}"
    )


def tell_rotating(context: Context, model: Any, frame: Any) -> tuple[list[Any], list[Row]]:
    """Tell of the first head with a leading pair whose group is certified; nothing if there is
    none.
    """
    for chosen in frame.itertuples():
        layer, head = int(chosen.layer), int(chosen.head)
        if leading_eigenvalue(model.weights(layer, head)).imag == 0.0:
            continue
        begun = time.perf_counter()
        found = certify(context, model, layer, head, 0.8)
        end = found.end
        if end is None or not end.rotates or end.horizon is None or end.period is None:
            continue
        name, rate = name_head(layer, head), end.rate
        row = Row(
            "trained_head",
            "trained_head_rotates",
            f"{MODEL}, {name}, with a complex leading pair: its tokens end as"
            f" {len(end.groups)} group{'' if len(end.groups) == 1 else 's'} in which the leader"
            " changes, up to a horizon.",
            "CERTIFIED",
            "",
            f"{len(end.groups)} group{'' if len(end.groups) == 1 else 's'} up to lambda_1 t ="
            f" {end.horizon * rate.real:.3g}",
            n=found.data.sizes["token"],
            d=model.config.d,
            time_asked=float(found.run.solve.t_end),
            time_reached=float(found.run.times[-1]),
            status=found.run.status.name,
            seconds=time.perf_counter() - begun,
        )
        return [
            Text(
                f"Many trained heads are of another kind, such as {name}: the leading eigenvalues"
                f" of V are a pair, {rate.real:.3g} ± {abs(rate.imag):.3g} i. Then no theorem of the"
                " paper applies, and no token can be the final leader: the tokens turn, and each"
                " comes to the front in turn. Yet the certificate answers where they end."
            ),
            Card(
                f"Head {name} of {MODEL}",
                row,
                {
                    "Leading eigenvalues of V": f"{rate.real:.3f} ± {abs(rate.imag):.3f} i",
                    "As t grows": say_groups(found),
                    "Its leader": (
                        f"none is final: the lead goes once round the group in t = {end.period:.3g}"
                    ),
                    "Known of the rescaled tokens": (
                        f"{end.points.shape[1]} of {end.growing} growing coordinates, to"
                        f" {end.error:.1g} of the largest"
                    ),
                },
            ),
            context.draw(
                "trained_head_rotates",
                draw_end(found),
                f"Left: eigenvalues of V of {name}. Middle: rescaled tokens move to one point."
                " Right: their distance from it falls exponentially.",
            ),
            Text(
                "Left: the eigenvalues of V, with the leading pair. Middle: the tokens, turned and"
                " shrunk back by e^(−tV), on the plane of this pair. They come to the star, which"
                " is certified. Right: how far each token is from the star. The grey part is"
                " certified; beyond the horizon nothing is claimed.",
                "What you see.",
            ),
        ], [row]
    return [], []


stops.register("trained_head")(Stop(4, "One head of a trained model", tell))
