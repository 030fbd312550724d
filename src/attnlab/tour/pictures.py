"""The pictures of the paper: the example Spec, the statement about it, and the words on the
page.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from importlib.resources import files

from attnlab.types import Spec


@dataclass(frozen=True)
class Shown:
    """An example Spec, the statement that it shows, and how it is drawn.

    kind           : the kind of figure; None for the one that suits the run
    says, see, why : what must happen, what the picture shows, why it matters
    times          : the times of its panels
    t_end          : the end of the run; None for the time at which the published picture ends
    """

    name: str
    title: str
    theorem: str
    says: str
    see: str
    why: str
    times: tuple[float, ...]
    kind: str | None = None
    t_end: float | None = None
    has_movie: bool = False
    is_limit_shown: bool = False
    is_proved: bool = False

    @property
    def spec(self) -> Spec:
        """The Spec of the run."""
        spec = Spec.from_toml(self._text)
        return (
            spec
            if self.t_end is None
            else dataclasses.replace(spec, solve={**spec.solve, "t_end": self.t_end})
        )

    @property
    def shows(self) -> str:
        """The comment on the first line of the Spec."""
        return self._text.splitlines()[0].removeprefix("#").strip()

    @property
    def _text(self) -> str:
        return (files("attnlab") / "examples" / f"{self.name}.toml").read_text(encoding="utf-8")


PICTURES = (
    Shown(
        "attention_1d",
        "Forty tokens on a line",
        "low_rank_boolean",
        "In the end all tokens but at most one attend to a single token: the leftmost or the"
        " rightmost.",
        "The attention matrix at three times. Row i shows which tokens token i attends to; dark"
        " means much attention. At first every token attends to all others. The last panel has two"
        " dark columns: the tokens at the two ends, the leaders.",
        "(Almost) every row of this large matrix becomes one of two rows. Trained models show"
        " something similar: a few tokens receive most of the attention. Here it is a theorem, and"
        " it follows from the equation alone.",
        (0.0, 2.8, 10.0),
        kind="attention",
    ),
    Shown(
        "polytope_2d",
        "Twenty tokens in the plane, V = I",
        "polytope",
        "In the rescaled picture, every token comes to rest at a corner of one convex polygon, or"
        " at one of finitely many other points on its edge or in the middle.",
        "Colours are groups, rings are leaders, the grey line is the hull around all tokens. The"
        " hull shrinks for a while and then stops. Each token moves to one of its corners. The"
        " movie at the top of this page shows the same run.",
        "No rule fixes the number of groups. The start decides how many there are, and which token"
        " belongs to which group. This is how clusters emerge.",
        (0.0, 1.0, 5.0),
        has_movie=True,
        is_proved=True,
    ),
    Shown(
        "polytope_3d",
        "Forty tokens in space, V = I",
        "polytope",
        "The same in space: every token comes to rest on one convex polytope, at its corners or at"
        " points beside them.",
        "A cloud moves to the corners of a solid body. Tokens of one colour and shape end at one"
        " corner. The token with a ring there is their leader.",
        "The theorem holds in any dimension. A language model has hundreds of dimensions; a picture"
        " can show three.",
        (0.0, 1.0, 10.0),
    ),
    Shown(
        "hyperplanes_2d",
        "One direction wins, in the plane",
        "three_hyperplanes",
        "If V stretches one direction more than all others, tokens end on at most three parallel"
        " lines.",
        "There are two groups, and each group is a line: its tokens agree in one number and stay"
        " different in the other.",
        "Tokens cluster in the direction that V stretches most, and keep their differences in the"
        " others. So clustering need not lose all information.",
        (0.0, 1.0, 5.0),
    ),
    Shown(
        "hyperplanes_3d",
        "One direction wins, in space",
        "three_hyperplanes",
        "Tokens end on at most three parallel planes. (The published picture ends at t = 5, a"
        " little before the tokens are within one per cent of their planes. This one ends at t"
        " = 6.)",
        "Two planes, seen almost from the side. Inside a plane tokens stay different from each"
        " other.",
        "Each token makes one decision: above or below. A head of this kind could work like a"
        " yes-or-no question.",
        (0.0, 1.8, 6.0),
        t_end=6.0,
    ),
    Shown(
        "polytope_times_line",
        "Half of each: V = diag(1, 1, −½)",
        "polytope_times_subspace",
        "In the two growing directions, tokens come to rest on the boundary of a polygon. In the"
        " shrinking direction they may be anywhere. Together these are the walls of a prism.",
        "From above it would look like the polygon in the plane. Along the third axis tokens drift"
        " apart.",
        "Matrices of real models have both growing and shrinking directions. This theorem covers"
        " such a mix.",
        (0.0, 1.2, 6.0),
    ),
    Shown(
        "codimension",
        "A conjecture: two growing directions",
        "codimension",
        "This is not proved: if one direction leads and a second one grows too, tokens end on at"
        " most three parallel lines. (The conjecture is about one simple leading eigenvalue: V = I,"
        " above, has nine places.)",
        "Small dots show where the tokens start, large dots on dashed lines where they end. The end"
        " is certified for this start.",
        "The run itself does not decide it: when the published picture ends, tokens are still far"
        " from their limits. The certified limit says how many lines there are. The next stop shows"
        " how much that matters.",
        (0.0, 1.0, 5.0),
        is_limit_shown=True,
    ),
)
"""In the order of the page."""
