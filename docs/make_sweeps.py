"""Makes the figures of docs/sweeps: `python docs/make_sweeps.py FOLDER [NAME ...]` runs the sweeps
of examples/sweeps in FOLDER.

Results that are in FOLDER already are kept, so it can be interrupted. All of them take about ten
minutes on two cores.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from attnlab.sweep import Sweep, plot
from attnlab.sweep.refine import refine

DOCS = Path(__file__).parent
IMAGES, PAGES, SWEEPS = (
    DOCS / "images" / "sweeps",
    DOCS / "sweeps",
    DOCS.parent / "examples" / "sweeps",
)


REFINED = {"boundary": 1.25}
"""{sweep: the level at which it is refined, too, in a folder of its own}."""


def names() -> list[str]:
    """Return the names of the ready-made sweeps."""
    return sorted(path.stem for path in SWEEPS.glob("*.toml"))


def columns(name: str) -> list[str]:
    """Return the columns of the figure of a sweep: those of the command in the second line of its
    file.
    """
    found = re.fullmatch(
        rf"# attnlab sweep {name}\.toml --plot (\S+)",
        (SWEEPS / f"{name}.toml").read_text().splitlines()[1],
    )
    if found is None:
        raise ValueError(
            f"The second line of examples/sweeps/{name}.toml must be the command that draws its"
            " figure."
        )
    return found[1].split(",")


def main(folder: Path, wanted: list[str]) -> None:
    """Run the sweeps and draw their figures."""
    folder.mkdir(exist_ok=True)
    IMAGES.mkdir(exist_ok=True)
    for name in wanted or names():
        target = folder / f"{name}.toml"
        shutil.copyfile(SWEEPS / f"{name}.toml", target)
        sweep = Sweep.load(target)
        print(name, sweep.run(progress=True))
        plot(sweep, *columns(name)).savefig(IMAGES / f"{name}.png", dpi=110)
        if name in REFINED:
            (folder / "refined").mkdir(exist_ok=True)
            shutil.copyfile(target, folder / "refined" / target.name)
            sweep = Sweep.load(folder / "refined" / target.name)
            print(name, refine(sweep, *columns(name), level=REFINED[name], progress=True))
            plot(sweep, *columns(name)).savefig(IMAGES / f"{name}_refined.png", dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
