"""Every public name in use, for a type checker: `mypy --strict` accepts this file. It is not
run.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import attnlab as al

# --------------------------------------------------------------------------------------------------
# the equation

weights = al.Weights(V=[[1.0, 0.0], [0.0, 0.5]], source="an example")
shape: tuple[int, int] = weights.heads, weights.d
M: NDArray[np.float64] = weights.M
dynamics = al.Dynamics.of(
    weights, kernel={"name": "sigmoid", "bias": -2.0}, beta=2.0, feedforward=None
)
dynamics = dynamics.replace(kernel="softmax", feedforward=al.FeedForward(sigma="tanh"))
is_exact: bool = (
    dynamics.kernel.is_softmax and dynamics.geometry.is_linear and not dynamics.feedforward.is_none
)
seen: NDArray[np.bool_] = dynamics.mask.seen(3)
again = al.Dynamics.from_words(dynamics.words(), weights)
for axis in (
    al.kernels,
    al.masks,
    al.spaces,
    al.scores,
    al.reads,
    al.writes,
    al.speeds,
    al.drifts,
    al.noises,
):
    names: list[str] = list(axis)
    words: str = axis.default


@al.kernels.register("half")
class Half:
    """A kernel of one's own."""

    rows_sum_to_one = False
    is_row_local = True
    hardens = False

    def weights(self, scores: NDArray[np.float64], seen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Half of what is seen."""
        return np.where(seen, 0.5, 0.0)


half: Half = Half()

# --------------------------------------------------------------------------------------------------
# a run

x0 = np.eye(2)
run: al.Trajectory = al.simulate(
    weights, x0, t_end=1.0, observe=["diameter"], kernel=half, progress=True
)
x: NDArray[np.float64] = run.x
z: NDArray[np.float64] | None = run.z
tokens, scale = run.scaled_x(slice(-1, None))
solve: al.Solve = run.solve
ended: str = run.status.value if run.is_ok else al.Status.STALLED.value
try:
    rescaled: NDArray[np.float64] = run.rescaled
except al.NoRescaledFrame as no_frame:
    print(no_frame)
try:
    al.simulate(weights, x0, t_end=1e3)
except al.RunInterrupted as interrupted:
    partial: al.Trajectory = interrupted.run
except al.RunFailed as failed:
    partial = failed.run
except al.UnknownName:
    raise
velocity: NDArray[np.float64] = al.velocity(weights, x0, frame="z")
P: NDArray[np.float64] = al.attention(run, at=0)
progress = al.Progress(lambda fraction, doing: print(fraction, doing), cancel=threading.Event())
try:
    with progress.part(0.0, 0.5, "first") as first:
        first(0.5, "half")
except al.Cancelled:
    progress.cancel()

# --------------------------------------------------------------------------------------------------
# t = infinity

limit: al.Limit = al.limit(weights, x0)
several: list[al.Limit] = al.limit(weights, [x0, 2.0 * x0], proof=True)
listed: al.Limit = al.limit(weights, [[1.0, 0.0], [0.0, 1.0]], times=[10.0])
count: int | None = al.limit(run).count
is_proved: bool = limit.grade == al.Grade.PROVED and limit.certified
events: tuple[al.Event, ...] = limit.events
verified: al.Verification = al.verify(limit, again=True)
all_verified: list[al.Verification] = al.verify(several)

# --------------------------------------------------------------------------------------------------
# theory

prediction: al.Prediction = al.predict(weights, x0)[0]
unmet: list[str] = [one.asked for one in prediction.unmet]
verdicts = al.check(run, names=["polytope"])
summary: str = verdicts.summary
for verdict in verdicts:
    if isinstance(verdict, al.Verdict) and verdict.outcome is not al.Outcome.SUPPORTED:
        print(verdict.paragraph())

# --------------------------------------------------------------------------------------------------
# files and pictures

spec = al.Spec.load("run.toml")
resolved = al.resolve(spec)
run = al.run_spec(resolved, throw=False)
al.save(run, "run.nc")
al.save(several, Path("limits.csv"))
loaded = al.load("run.nc")
if isinstance(loaded, al.Trajectory):
    al.plot(loaded, "paths", width=3.4).savefig("run.pdf")
time = al.to_xarray(run)["time"]
film: Path = al.movie(run, "run.mp4")
films: list[Path] = [*al.movie(run, ["run.mp4", "run.gif"])]
page: Path = al.explore(spec, "run.html")
explorer = al.Explorer(spec, height=400)
certified: al.Limit = explorer.certify()
claims: object = al.reproduce("rates", size="small")["claims"]

# --------------------------------------------------------------------------------------------------
# sweeps

sweep = al.Sweep.load("phase.toml")
computed: int = sweep.run(workers=0, progress=progress).computed
frame = al.sweep.load(sweep)
columns: list[str] = list(frame.columns)
dataset = al.sweep.load("phase.toml", "xarray")
sizes: dict[str, int] = {str(name): size for name, size in dataset.sizes.items()}
table: Path = al.sweep.export(sweep, "phase.csv")
al.sweep.plot("phase.sqlite", "dynamics.beta", "spread").savefig("phase.png")
grid = al.sweep.Grid({"n": [2, 4]})
cells: int = len(grid)
with al.sweep.Rows("rows.sqlite", axes=grid.keys).open() as rows:
    rows.write([al.sweep.Row("0123456789abcdef", "ok", next(iter(grid)))])
small: al.sweep.Sweep = sweep.reduced()

# --------------------------------------------------------------------------------------------------
# trained models

try:
    model: al.models.Model = al.models.load("minilm", offline=True)
except al.models.BadModel:
    raise
config: al.models.Config = model.config
parts: al.models.Parts = model.parts
known: list[str] = list(al.models.families)
ids, pieces = model.tokens("a sentence")
hidden: NDArray[np.float64] = model.hidden_states(ids)
of_head: al.Weights = model.weights(0, head=1)
verdict_column: object = al.models.spectra(model)["verdict"]
steps: int = al.models.sentence(model, "a sentence").sizes["step"]
flow: al.models.Flow = al.models.flow(model, 0, 1, text="a sentence")
outcome: object = al.models.iterate(model, "a sentence").attrs["outcome"]
said: list[str] = al.models.findings(flow)
given: al.models.Model = al.models.heads(Q=np.eye(3), K=np.eye(3), V=np.eye(3))
measured: tuple[int, ...] = tuple(al.models.survey(model, ["a sentence"]).sizes.values())
summarised: int = len(al.models.intervals(al.models.survey(model, ["a sentence"])))
changed: object = al.models.compare(model, model)["mean"]
in_rows: int = len(al.models.table(flow))
studies: al.models.Dossier = al.models.dossier(model, ["a sentence"])
