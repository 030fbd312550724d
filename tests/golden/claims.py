"""The claims of every experiment at size small, with every digit: a table for the move of experiments into folders.

    python tests/golden/claims.py compare [NAME ...]     says what has changed since; exit code 1 where something has
    python tests/golden/claims.py make                   writes claims.json beside this file

The last digits belong to one machine: another processor may add in another order. There compare two trees instead, with
`--file other.json` for both. The table goes when the experiments have moved.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import attnlab as al
from attnlab.experiments import experiments

FILE = Path(__file__).parent / "claims.json"


def claim_words(name: str) -> list[str]:
    """The claims of an experiment at size small, with every digit."""
    experiment = experiments[name]
    data = experiment.compute("small", al.Progress())
    return [f"{claim.text}: {float(claim.measured)!r} in [{claim.low!r}, {claim.high!r}]" for claim in experiment.claims(data)]


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
        given.file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    kept = json.loads(given.file.read_text(encoding="utf-8"))
    changed = [name for name in found if found[name] != kept.get(name)]
    for name in changed:
        print(f"{name}:\n  before {kept.get(name)}\n  now    {found[name]}")
    print(f"{len(found)} compared, {len(changed)} changed")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
