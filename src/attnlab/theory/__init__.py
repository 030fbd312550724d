"""The theory: which result applies to given weights, what it predicts, and whether a run does it.

    al.predict(w)       -> [Prediction]     from (Q, K, V), and x0 where a hypothesis is about it
    al.check(run)       -> [Verdict]        SUPPORTED, CONTRADICTED, OUT_OF_SCOPE or UNDECIDED, with numbers

To add a result
---------------
Write `theory/<name>.py` with one `theorems.register("<name>")(Theorem(...))` (the record is in verdicts.py). It needs hypotheses
(hypotheses.py has the common ones), a prediction in words and as data, a measure (one number that must stay below a bound, with
its error: see evidence.py and claims.py), and four specimens: holds, breaks, short, spoil. The shared test in
`tests/test_theorems.py` runs all four and expects SUPPORTED, OUT_OF_SCOPE, UNDECIDED and CONTRADICTED. No second place to edit.
"""

from __future__ import annotations

from attnlab.registry import Registry

theorems = Registry("result", package="attnlab.theory")

from attnlab.theory.verbs import check, predict  # noqa: E402  (they need the registry)

__all__ = ["check", "predict", "theorems"]
