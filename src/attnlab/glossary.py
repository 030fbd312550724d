"""The terms of attnlab and their meanings: one list for docs/glossary.md and every page. Imports
nothing from attnlab.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A word, its meaning in plain text, and the pattern that finds it in a text."""

    name: str
    meaning: str
    pattern: str

    @property
    def place(self) -> str:
        """The part of an address that leads to the word: the heading of docs/glossary.md as GitHub
        spells it.
        """
        return re.sub(r"[^\w\- ]", "", self.name).lower().replace(" ", "-")


TERMS = (
    Term(
        "Rescaled tokens",
        "z = e^{-tV} x: the tokens x with the growth that V alone would give divided out. With"
        " several heads V is the sum of the V_h. The tokens x usually run away. The rescaled tokens"
        " have limits, so clusters show in z.",
        r"rescaled tokens?",
    ),
    Term(
        "F",
        "The span of the growing directions of V: all (generalised) eigenvectors whose eigenvalue"
        " has a positive real part. Rescaled tokens have limits along F. Along the other directions"
        " z may grow without end, although x does not. `limit.basis` spans F.",
        r"(?<![\w`'_^-])F(?![\w'])",
    ),
    Term(
        "Leader",
        "The token that another token attends to most. Late in a run nearly all attention of a"
        " token goes to one token, its leader, and the tokens that share a leader form a cluster. A"
        " token may lead itself. `limit.leaders` names the leader of each token as t goes to"
        " infinity.",
        r"leaders?",
    ),
    Term(
        "Event",
        "A change of leader: from this time on a token attends to another token than before."
        " `limit.events` lists the events after the hand-over.",
        r"events?",
    ),
    Term(
        "Wall",
        "The time at which double precision ends. Tokens of one cluster then agree in all 16"
        " digits, so the computer can no longer tell which of them leads. This happens when the"
        " tokens have grown by about e^30. `simulate` stops there with the status"
        " PAST_DOUBLE_PRECISION. `limit` goes on.",
        r"(?:precision )?wall(?! clock)",
    ),
    Term(
        "Hand-over",
        "The moment at which `limit` stops integrating. Attention is Boolean by then: each token"
        " attends to its leader and to nothing else, up to a part that is bounded. From there on"
        " the motion is known in closed form, and `limit` computes the events one by one.",
        r"hand-over",
    ),
    Term(
        "Certificate",
        "What `limit` returns as its proof: from the computed state on, no token can change its"
        " leader again. The proof is exact for that state. The error bounds of the state are"
        " estimates, checked by two computations from slightly changed starts.",
        r"certificates?",
    ),
    Term(
        "Grade",
        "How much of a limit is certified. *proved*: as exact, and every rounding from the first"
        " tokens on is bounded (`proof=True`). *exact*: which tokens share a limit, where the"
        " limits are, and who leads. *group*: the same without the leaders, because tokens have"
        " merged below rounding. *undecided*: nothing is claimed, and `limit.reason` says why. (The"
        " page about sentences also grades the theory's answers; it explains that scale itself.)",
        r"grades?",
    ),
    Term(
        "Good triple",
        "Weights (Q, K, V) to which the theorem of the three hyperplanes applies. The eigenvalue of"
        " V with the largest modulus is real, positive and simple, and its eigenvector phi"
        " satisfies <Q phi, K phi> > 0.",
        r"good triples?",
    ),
    Term(
        "Natural time",
        "Time measured by the growth of the tokens: lambda_1 t, where lambda_1 is the largest real"
        " part of an eigenvalue of V (of the sum of the V_h for several heads). With H heads and"
        " V_h = I it is H t. Clusters show near 5, and double precision ends near 30.",
        r"natural (?:time|clock)",
    ),
    Term(
        "Member",
        "One of the runs of a batch. A batch has an array x0 of shape (batch, n, d), and its"
        " members are counted from 0.",
        r"members? of (?:a|the) batch|batch members?|batch",
    ),
    Term(
        "Verdict",
        "What a theorem says about a run, with one measured number and its bound. SUPPORTED: the"
        " data do what the theorem says. CONTRADICTED: they break it by more than their error."
        " OUT_OF_SCOPE: a hypothesis fails. UNDECIDED: the data cannot tell.",
        r"verdicts?",
    ),
)
"""In the order in which a reader needs them."""


def find_terms(text: str) -> list[Term]:
    """Return the terms that a text uses, in the order of TERMS. The text has no markup."""
    return [term for term in TERMS if compile_term(term).search(text)]


def compile_term(term: Term) -> re.Pattern[str]:
    """Return the pattern of a term as whole words. Capitals matter only for a single letter."""
    edges = term.pattern if len(term.name) == 1 else rf"\b(?:{term.pattern})\b"
    return re.compile(edges, 0 if len(term.name) == 1 else re.IGNORECASE)
