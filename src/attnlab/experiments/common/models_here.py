"""The models of an experiment that can be loaded here, and why the others cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attnlab.models import load
from attnlab.models.checkpoints.record import NotFetched


class ModelsHere:
    """Models by name, and the reason for each one that is missing; NotFetched where all are.

    names: names that `attnlab models` lists. stand_ins: functions that make a model in memory, by
    name: models of size small.
    """

    def __init__(
        self, names: Iterable[str], stand_ins: Mapping[str, Callable[[], Any]] | None = None
    ):
        self.models: dict[str, Any] = {}
        self.why: dict[str, str] = {}
        for name in names:
            make = (stand_ins or {}).get(name)
            try:
                self.models[name] = load(name, offline=True) if make is None else make()
            except NotFetched as problem:
                self.why[name] = str(problem)
        if not self.models:
            raise NotFetched(next(iter(self.why.values())))

    def without(self, case: Mapping[str, Any]) -> str:
        """Why a case is left out; "" where its model is here."""
        return self.why.get(case["model"], "")
