"""Stop 4: one head of a trained model."""

from __future__ import annotations

import time

from attnlab.explorer.embed import HIDDEN
from attnlab.explorer.trained import model_payload
from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.studies.flows import flow
from attnlab.models.studies.spectra_table import spectra
from attnlab.render.tour_page import draw_head
from attnlab.theory import check
from attnlab.tour.context import Context
from attnlab.tour.record import Card, Chapter, Row, Stop, Text, left_out
from attnlab.tour.stops import stops
from attnlab.verdicts import Outcome, Verdict

MODEL, TEXT = "albert-chem", "CC(=O)O.OCC>>CC(=O)OCC"
ABOUT = "a small ALBERT that reads chemical reactions"
T_END = 15.0
"""At t = 5 the tokens still move, and no verdict is possible; t = 30, twice this time, is the last
before the precision wall.
"""

WORK = 5e4
"""Units of work for a certificate, about two seconds. It is not expected to succeed: leaders change
long after the run.
"""

OPENING = (
    "So far we chose V. A trained model has its own. One attention head writes into a token V ="
    " W_(O) W_(V) times what it reads. If this head alone moves the tokens, the theorems say that"
    " this matrix decides what happens. Does training find matrices to which the theorems apply?"
)


def tell(context: Context) -> Chapter:
    """Show the spectrum of one head, whether it is a good triple, and its flow."""
    model, why = context.model(MODEL)
    if model is None:
        row = Row(
            "trained_head", "trained_head", f"One head of {MODEL}, {ABOUT}.", "not here", found=why
        )
        return left_out(row, OPENING, f"{MODEL}, {ABOUT}")
    begun = time.perf_counter()
    frame = spectra(model)
    good = frame[frame["verdict"] == "good triple"].sort_values("gap", ascending=False)
    chosen = good.iloc[0] if len(good) else frame.iloc[0]
    layer, head, kind = int(chosen["layer"]), int(chosen["head"]), str(chosen["verdict"])
    name = name_head(layer, head)
    found = flow(
        model,
        layer,
        head,
        text=TEXT,
        t_end=T_END,
        stepper="adaptive",
        limit=False,
        check=False,
        progress=context.progress.next_part(0.5, f"the flow of {name} of {MODEL}"),
    )
    said = check(
        found.run, names=["three_hyperplanes"], work=WORK, progress=context.progress.next_part(0.8)
    )[0]
    assert isinstance(said, Verdict)  # of one run
    total = len(frame)
    chance = frame.attrs["null_shares"]["good triple"]
    data = found.data
    row = Row(
        "trained_head",
        "trained_head",
        f"{MODEL}, {name}: tokens that this head alone moves end on at most three "
        "parallel hyperplanes.",
        said.outcome.name,
        "at most three parallel hyperplanes",
        f"{data['clusters'].values[0]:.0f} groups become {data['clusters'].values[-1]:.0f}",
        n=data.sizes["token"],
        d=model.config.d,
        time_asked=float(found.run.solve.t_end),
        time_reached=float(found.run.times[-1]),
        status=found.run.status.name,
        seconds=time.perf_counter() - begun,
        is_ok=said.outcome is not Outcome.CONTRADICTED,
    )
    lead = found.heads[0].numbers.lambda1
    return Chapter(
        [
            Text(OPENING),
            Text(
                f"The model is {MODEL}, {ABOUT}: {model.config.layers} layers that share one set of"
                f" {total} heads, in {model.config.d} dimensions. A theorem has three hypotheses"
                " about a head: the largest eigenvalue of V is positive, it is simple, and its"
                f" direction attends to itself. We call this a good triple. {len(good)} of the"
                f" {total} heads are good triples. Of {frame.attrs['null_draws']} random heads of"
                f" the same shape {chance:.0%} are."
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
                    "Groups of directions": (
                        f"{data['clusters'].values[0]:.0f} at the start,"
                        f" {data['clusters'].values[-1]:.0f} at t ="
                        f" {float(data['time'].values[-1]):g}, of {data.sizes['token']} tokens"
                    ),
                    "They attend to": ", ".join(
                        f"“{found.words[one.leader]}” ({len(one.members)} tokens)"
                        for one in found.clusters[:3]
                    ),
                },
            ),
            context.draw(
                "trained_head",
                draw_head(found),
                f"Left: eigenvalues of V of {name} in the complex plane. Middle: how this head"
                " moves the tokens of a chemical reaction. Right: the number of groups over time.",
                live=model_payload(found, hide=HIDDEN, theme="light"),
            ),
            Text(
                "Left: the eigenvalues of V. The large green dot is the leading one, on the"
                f" positive half of the axis. Middle: the symbols of the reaction {TEXT} (between ^"
                " and $, two marks of the model), drawn on the two axes along which they differ"
                " most. Open circles are the start, full ones the end. Right: the number of"
                " different directions.",
                "What you see.",
            ),
            Text(
                "Trained models do contain heads to which the theorem applies, but hardly more"
                " often than random matrices do. Training mainly changes the size of the leading"
                " eigenvalue. Alone, such a head does sort its tokens into few groups. But most"
                " heads are of another kind, and no head acts alone. The next stop looks at a whole"
                " model.",
                "Why it matters.",
            ),
        ],
        [row],
    )


stops.register("trained_head")(Stop(4, "One head of a trained model", tell))
