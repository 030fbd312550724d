"""The claims of every experiment at size small, with every digit: a table for the move of
experiments into folders.

    python tests/golden/claims.py compare [NAME ...]     says what has changed since; exit code 1 where something has
    python tests/golden/claims.py make                   writes claims.json beside this file

The last digits belong to one machine: another processor may add in another order. `compare` says
where they alone differ, and fails where a number moved by more than a part in a million of its
size, or another word or interval is there. To compare two trees digit by digit, make a table of
each with `--file`. The table goes when the experiments have moved.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from itertools import zip_longest
from pathlib import Path

import attnlab as al
from attnlab.experiments import experiments

FILE = Path(__file__).parent / "claims.json"


def claim_words(name: str) -> list[str]:
    """The claims of an experiment at size small, with every digit."""
    experiment = experiments[name]
    data = experiment.compute("small", al.Progress())
    return [
        f"{claim.text}: {float(claim.measured)!r} in [{claim.low!r}, {claim.high!r}]"
        for claim in experiment.claims(data)
    ]


def main() -> int:
    """Make the table, or compare with it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["make", "compare"])
    parser.add_argument("names", nargs="*", default=list(experiments))
    parser.add_argument("--file", type=Path, default=FILE)
    given = parser.parse_args()
    found = {}
    for name in given.names:
        print(name, file=sys.stderr, flush=True)
        found[name] = claim_words(name)
    if given.what == "make":
        given.file.write_text(
            json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        return 0
    kept = json.loads(given.file.read_text(encoding="utf-8"))
    changed = 0
    for name in found:
        for before, now in zip_longest(kept.get(name, ()), found[name], fillvalue=""):
            if before != now:
                is_close = before and now and is_same(before, now)
                changed += not is_close
                print(
                    f"{name}: {'last digits' if is_close else 'CHANGED'}\n  before {before}\n  now "
                    f"   {now}"
                )
    print(f"{len(found)} compared, {changed} changed")
    return bool(changed)


def is_same(before: str, now: str) -> bool:
    """Whether two claims have the same words, and numbers that differ in digits that the order of
    sums decides.
    """
    (text, number, allowed), (other_text, other, other_allowed) = (
        divide(one) for one in (before, now)
    )
    is_near = abs(number - other) <= 1e-6 * abs(number) or max(abs(number), abs(other)) < 1e-9
    return (
        text == other_text
        and is_near
        and all(
            abs(float(one) - float(two)) <= 1e-6 * abs(float(one)) or one == two
            for one, two in zip(allowed.split(", "), other_allowed.split(", "), strict=True)
        )
    )


def divide(claim: str) -> tuple[str, float, str]:
    """(text, measured, "low, high") of a line of the table."""
    words, _, allowed = claim.rpartition(" in [")
    text, _, number = words.rpartition(": ")
    return text, float(number), re.sub(r"np\.float64\(([^)]*)\)", r"\1", allowed.removesuffix("]"))


if __name__ == "__main__":
    sys.exit(main())
