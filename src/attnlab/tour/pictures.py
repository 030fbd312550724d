"""The pictures of the paper: which example, which statement speaks about it, and what to say."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from importlib.resources import files

from attnlab.types import Spec


@dataclass(frozen=True)
class Shown:
    """An example Spec, the statement that it shows, and how it is drawn; kind None is the figure that suits the run.

    says, see, why : what must happen, what is on the picture, why it matters;  times: of its panels
    t_end          : None for the time at which the published picture ends
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
        """The run, in words and numbers."""
        spec = Spec.from_toml(self._text)
        return spec if self.t_end is None else dataclasses.replace(spec, solve={**spec.solve, "t_end": self.t_end})

    @property
    def shows(self) -> str:
        """The comment on the first line of the Spec."""
        return self._text.splitlines()[0].removeprefix("#").strip()

    @property
    def _text(self) -> str:
        return (files("attnlab") / "examples" / f"{self.name}.toml").read_text(encoding="utf-8")


PICTURES = (
    Shown(
        "attention_1d", "Forty tokens on a line", "low_rank_boolean",
        "In the end all tokens but at most one attend to a single token: the leftmost or the rightmost.",
        "The attention matrix at three times. Row i shows which tokens token i attends to; dark means much attention. At first "
        "every token attends to all. In the last panel two dark columns are left: the two tokens at the ends, the leaders.",
        "(Almost) every row of this large matrix ends as one of two. Trained models show something similar: a few tokens "
        "receive most of the attention. Here it is a theorem, and it follows from the equation alone.",
        (0.0, 2.8, 10.0),
        kind="attention",
    ),
    Shown(
        "polytope_2d", "Twenty tokens in the plane, V = I", "polytope",
        "Seen through the camera, every token comes to rest at a corner of one convex polygon, or at one of finitely many other "
        "points on its edge or in the middle.",
        "Colours are groups, rings are leaders, the grey line is the hull around all tokens. The hull shrinks for a while, then "
        "stands still, and each token moves to one of its corners. The movie at the top of this page shows the same run.",
        "No rule fixes the number of groups. How many there are, and which token belongs to which, follows from the start. "
        "This is how clusters emerge.",
        (0.0, 1.0, 5.0),
        has_movie=True,
        is_proved=True,
    ),
    Shown(
        "polytope_3d", "Forty tokens in space, V = I", "polytope",
        "The same in space: every token comes to rest on one convex polytope, at its corners or at points beside them.",
        "From a cloud to the corners of a solid body. Tokens of one colour and shape end at one corner, and the ringed token "
        "there leads them.",
        "The theorem holds in any dimension. A language model has hundreds of them, which no picture shows; three can be drawn.",
        (0.0, 1.0, 10.0),
    ),
    Shown(
        "hyperplanes_2d", "One direction wins, in the plane", "three_hyperplanes",
        "If V stretches one direction more than all others, tokens end on at most three parallel lines.",
        "Two groups, and inside a group the tokens stand in a row: they agree in one number and stay different in the other.",
        "Tokens cluster in what matters most to V and keep their differences elsewhere. Clustering need not mean that "
        "everything is lost.",
        (0.0, 1.0, 5.0),
    ),
    Shown(
        "hyperplanes_3d", "One direction wins, in space", "three_hyperplanes",
        "At most three parallel planes. (The published picture ends at t = 5, a little before the tokens are within one per cent "
        "of their planes; this one goes on to t = 6.)",
        "Two planes, seen almost from their edge. Inside a plane tokens stay different from each other.",
        "There is room for one number to be decided: above or below. A head of this kind could work like a yes-or-no question.",
        (0.0, 1.8, 6.0),
        t_end=6.0,
    ),
    Shown(
        "polytope_times_line", "Half of each: V = diag(1, 1, −½)", "polytope_times_subspace",
        "In the two directions that grow, tokens come to rest on the boundary of a polygon; in the one that shrinks they may be "
        "anywhere. Together: the walls of a prism.",
        "From above it would look like the polygon of the plane. Along the third axis tokens drift apart.",
        "Matrices of real models have growing and shrinking directions together. This theorem covers such a mix.",
        (0.0, 1.2, 6.0),
    ),
    Shown(
        "codimension", "A conjecture: two growing directions", "codimension",
        "It is not proved: where one direction leads and a second one grows too, tokens end on at most three parallel lines. "
        "(It is meant for one simple leading eigenvalue: V = I, above, has nine places.)",
        "Where the tokens start (small) and where they end (large dots on dashed lines), with a proof for this one start.",
        "The run itself does not decide it: when the published picture ends, tokens are still far from where they are going. The "
        "certified limit, which needs no waiting, says how many lines there are. The next stop shows how much that matters.",
        (0.0, 1.0, 5.0),
        is_limit_shown=True,
    ),
)
"""In the order in which they are told."""
