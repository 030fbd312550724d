"""Write the certified limits of the explorer's presets, and the recording of a trained head.

python docs/make_presets.py             presets.json; the sphere takes a minute or two
python docs/make_presets.py trained     trained.json; fetches the model where it is not cached
"""

from __future__ import annotations

import json
import sys

from attnlab.explorer.payload import limit_record
from attnlab.explorer.presets import LIMITS, RECORDING, presets
from attnlab.explorer.trained import flow_view
from attnlab.files import write_text
from attnlab.run import limit_of_spec

WORK, BUDGET = 1e8, 600.0
"""Enough for the sphere, whose last two clusters meet at t = 570,000."""

MODEL, LAYER, HEAD, END = "minilm", 3, 6, 11.5
TEXT = "The cat sat on the mat, and the dog watched the cat."


def make_limits() -> None:
    """Write presets.json: {id: {digest of the Spec, limit or null, and what a Limit has that a page
    does not need}}.
    """
    found = {}
    for name in presets.in_order():
        spec = presets[name].spec
        limit = limit_of_spec(spec, work=WORK, budget=BUDGET, progress=sys.stderr.isatty())
        found[name] = {"digest": spec.digest(), "limit": None}
        if limit.certified:
            record = limit_record(limit, spec)
            del record["spec"]  # the preset has it
            events = [[event.t, event.token, event.before, event.after] for event in limit.events]
            found[name] = {
                "digest": spec.digest(),
                "limit": record,
                "basis": limit.basis.tolist(),
                "events": events,
                "digits": limit.digits,
            }
        print(f"{name}: {limit.reason[:100]}")
    lines = [
        f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'), allow_nan=False)}"
        for name, entry in found.items()
    ]
    write_text(LIMITS, "{\n" + ",\n".join(lines) + "\n}\n")


def make_recording() -> None:
    """Write trained.json: the flow of one trained head from a sentence."""
    import attnlab as al

    flow = al.models.flow(
        al.models.load(MODEL),
        LAYER,
        HEAD,
        text=TEXT,
        t_end=END,
        saves=201,
        limit=False,
        check=False,
        progress=sys.stderr.isatty(),
    )
    run, view = flow.run, flow_view(flow)
    spec, (cite, says) = view.spec.to_dict(), view.says
    stored = {
        "name": f"A trained head, {flow.name}",
        "watch": (
            f"One head of a trained model moves the {run.n} tokens of a sentence until all point"
            " the same way. Point at a token to read its word; the picture shows their directions"
            f" in three of {run.d} dimensions."
        ),
        "spec": spec,
        "says": [{"spec": spec, "cite": cite, "says": says}],
        "recording": view.recording,
    }
    text = json.dumps(stored, separators=(",", ":"), allow_nan=False)
    write_text(RECORDING, text + "\n")
    print(f"{flow}: {len(text) / 1000:.0f} KB. {flow.status}")


if __name__ == "__main__":
    make_recording() if "trained" in sys.argv[1:] else make_limits()
