"""The theory: which statement applies to given weights, what it predicts, and whether a run does
it.

    al.predict(w)       -> [Prediction]     from (Q, K, V), and x0 where a hypothesis is about it
    al.check(run)       -> [Verdict]        SUPPORTED, CONTRADICTED, OUT_OF_SCOPE or UNDECIDED, with numbers

To add a statement
------------------
A statement is a theorem, a conjecture or an estimate. Write `theory/statements/<name>.py` with one
`theorems.register("<name>")(Theorem(...))` (the record is in verdicts.py). It needs hypotheses
(hypotheses.py has common ones), a prediction in words and as data, a measure (one number that must
stay below a bound, with its error: see evidence.py and claims.py), and four specimens: holds,
breaks, short, spoil. The shared test in `tests/conformance/test_theorems.py` runs all four and
expects SUPPORTED, OUT_OF_SCOPE, UNDECIDED and CONTRADICTED. No second place to edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import Registry, import_name

if TYPE_CHECKING:
    from attnlab.theory.verbs import check as check
    from attnlab.theory.verbs import predict as predict
    from attnlab.verdicts import Theorem

theorems: Registry[Theorem] = Registry("statement", package="attnlab.theory.statements")

_HOME = {"check": "attnlab.theory.verbs", "predict": "attnlab.theory.verbs"}
__all__ = ["check", "predict", "theorems"]


if not TYPE_CHECKING:  # which sees the imports above, and then knows the types

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME, name)
