"""Small sweeps for the tests, and their results by nested loops over `al.run_spec`."""

from __future__ import annotations

import copy
import itertools

import attnlab as al
from attnlab.sweep import Rows

BASE = {
    "weights": {"family": "identity"},
    "dynamics": {"geometry": "sphere"},
    "start": {"law": "sphere", "n": 5, "d": 3},
    "solve": {"t_end": 3.0, "saves": 7},
}
SPREAD = {"spread": {"observable": "diameter"}}
TINY = {"base": BASE, "axes": {"dynamics.beta": [0.5, 2.0]}, "seeds": 3, "numbers": SPREAD}


def changed(data, **more):
    """A copy of a sweep's table with other entries."""
    return {**copy.deepcopy(data), **more}


def specs_by_loops(data):
    """{values of the axes: Spec} of a sweep without zipped axes and exclusions, each written out by
    hand.
    """
    axes = dict(data.get("axes", {}))
    if "seeds" in data:
        axes["start.rng"] = list(range(data["seeds"]))
    found = {}
    for values in itertools.product(*axes.values()):
        table = copy.deepcopy(data["base"])
        for key, value in zip(axes, values, strict=True):
            section, name = key.split(".")
            table.setdefault(section, {})[name] = value
        found[values] = al.Spec.from_dict(table)
    return found


def results(path):
    """{values of the axes: (status, numbers)} of a file of results, without what differs from run
    to run.
    """
    rows = list(Rows(path).read())
    found = {
        tuple(map(str, row.axes.values())): (
            row.digest,
            row.status,
            dict(row.numbers),
            row.error,
            row.seed,
        )
        for row in rows
    }
    assert len(found) == len(rows)
    return found
