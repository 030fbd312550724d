"""One word for one thing: members of a batch, leading eigenvalues of matrices, leaders among
tokens, heads as L5H10.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import attnlab
from attnlab.models.checkpoints.head_names import name_head, name_heads

SOURCE = Path(attnlab.__file__).parent
DOCS = SOURCE.parents[1] / "docs"
TEXTS = [*sorted(SOURCE.rglob("*.py")), *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("*.py"))]

FORBIDDEN = {
    r"\breplicas? of (a|the) batch\b": (
        "the members of a batch are members; replicas are perturbed starts"
    ),
    r"\brun of (a|the) batch\b": "the members of a batch are members",
    r"(positive|negative|complex|real|larger?) leaders?\b(?!\")": (
        "a matrix has a leading eigenvalue; leaders are tokens"
    ),
    r"\bwhat leads\b|\bleads V\b": "a matrix has a leading eigenvalue; leaders are tokens",
    r"layer \{[^}]*\},? (and )?head \{|layer \d+, head \d+(?!,)": (
        "a head is named by name_head, L5H10"
    ),
}
KEPT = '"replicas": numbers["members"]'
"""A key of `attnlab run --json` that programs may rely on."""


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_every_text_uses_the_one_word(pattern):
    for path in TEXTS:
        found = re.search(
            pattern, path.read_text(encoding="utf-8").replace(KEPT, ""), re.IGNORECASE
        )
        assert found is None, f"{path.name}: {found.group(0)!r}: {FORBIDDEN[pattern]}."


def test_the_patterns_find_what_they_are_for():
    for words in (
        "replicas of a batch",
        "Which run of a batch",
        "positive leaders",
        "what leads V",
        'f"layer {layer}, head {head}"',
    ):
        assert any(re.search(pattern, words, re.IGNORECASE) for pattern in FORBIDDEN), words
    for words in (
        "positive leading eigenvalues",
        "a leader among tokens",
        "members of a batch",
        "L5H10",
    ):
        assert not any(re.search(pattern, words, re.IGNORECASE) for pattern in FORBIDDEN), words


def test_the_name_of_a_head():
    assert (name_head(5, 10), name_heads(5, 10), name_heads(5, None)) == (
        "L5H10",
        "L5H10",
        "layer 5, all heads",
    )
