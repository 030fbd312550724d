"""t = infinity: `limit` computes the state at which a start ends, and certifies it.

A simulation stops at a finite time, and double precision limits it further. `limit` goes on, in
seven steps, of which the first four are one attempt (attempt.py):

1. Integrate double.py, engine/flow.py follow the tokens with error bounds, beyond the end of double
   precision
2. Hand over frozen.py once every token attends to one token, its leader, keep the motion that is
   left
3. Follow events events.py, engine/contacts.py find the next change of leader, exactly; layers
   iterate the frozen map
4. Certify certificate.py prove that no leader changes again, and that all other attention is too
   small
5. Compare replicas.py two more attempts, of perturbed starts, must end in the same partition
6. Use symmetry symmetry.py, quotient.py where attempts disagree on symmetric data, compute one
   token of each orbit
7. Add digits careful.py where two doubles do not suffice, compute the start of the flow with more
   of them

`entry.py` checks what users give and `problem.py` makes the equation ready. `answer.py` takes the
steps in their order, and `report.py` makes the Limit, or `reasons.py` says why there is none.
`heads/` has these steps for several heads. `verification/` checks a certificate that was stored,
and `proof/` encloses the flow from the first tokens on. docs/design.md has the reasons and the
numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import import_name

if TYPE_CHECKING:
    from attnlab.limits.entry import limit as limit

_HOME = {"limit": "attnlab.limits.entry"}
__all__ = ["limit"]


if not TYPE_CHECKING:  # which sees the imports above, and then knows the types

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME, name)
