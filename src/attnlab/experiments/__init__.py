"""Experiments: one picture, the numbers behind it, and claims about them that can fail.

    attnlab reproduce polytope_3d          al.reproduce("polytope_3d", "results")

To add one
----------
Write `experiments/<name>.py` with one `experiments.register("<name>")(Experiment(...))` (the record is in record.py). It needs

    compute                                              Parts: a grid of cases and what is measured of one; parts.py says how
                                                         each kind of experiment fits, studies.py and datasets.py have common
                                                         pieces (or a function (size, progress) -> {name: xarray.Dataset})
    claims(data)            -> [Claim]                   numbers with an interval that does not come from our own output
    figures(data)           -> {name: Figure}            drawn from the data alone, so that they can be drawn again
    movie(data)             -> Trajectory to film        or None
    spoils                  -> {name: data -> data}      damages; every claim must fail under at least one of them

The shared test in `tests/conformance/test_experiments.py` runs every experiment at size "small": every claim holds,
fails under its spoil, survives the disk, and every figure draws. No second place to edit.
"""

from __future__ import annotations

from attnlab.registry import Registry

experiments = Registry("experiment", package="attnlab.experiments")

from attnlab.experiments.reproduce import reproduce  # noqa: E402  (it needs the registry)

__all__ = ["experiments", "reproduce"]
