"""movie: write a run, or a result of a trained model that moves, as a .gif or .mp4, completely or not
at all.
"""

from __future__ import annotations

import numbers
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from attnlab.displayed import say_instead
from attnlab.files import cannot_write, replace_file
from attnlab.progress import Progress, ProgressOption, track
from attnlab.render.film import Film, Films
from attnlab.render.kinds import Stage
from attnlab.render.names import check_movie_name
from attnlab.render.plots import check_run_options, choose_kind
from attnlab.render.results import Picture, even_positions, picture_of
from attnlab.render.scene import make_scene
from attnlab.render.style import house_style
from attnlab.types import Limit, Trajectory

if TYPE_CHECKING:
    import xarray

    from attnlab.models.studies.flows import Flow

ENCODING = (
    "-preset",
    "medium",
    "-crf",
    "20",
    "-vf",
    "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white",
    "-movflags",
    "+faststart",
)
"""H.264 that every browser and player shows: colours at half resolution, which needs even sizes,
and the index in front.
"""

DOING = "filming"


@overload
def movie(
    run: Trajectory | Flow | xarray.Dataset,
    path: str | os.PathLike[str],
    *,
    fps: float = 20,
    frames: int = 100,
    kind: str | None = None,
    progress: ProgressOption = False,
    dpi: float = 120,
    member: int = 0,
    frame: str | None = None,
    head: int | None = None,
) -> Film: ...
@overload
def movie(
    run: Trajectory | Flow | xarray.Dataset,
    path: list[str] | list[Path] | tuple[str | os.PathLike[str], ...],
    *,
    fps: float = 20,
    frames: int = 100,
    kind: str | None = None,
    progress: ProgressOption = False,
    dpi: float = 120,
    member: int = 0,
    frame: str | None = None,
    head: int | None = None,
) -> Films: ...
def movie(
    run: Trajectory | Flow | xarray.Dataset,
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    fps: float = 20,
    frames: int = 100,
    kind: str | None = None,
    progress: ProgressOption = False,
    dpi: float = 120,
    member: int = 0,
    frame: str | None = None,
    head: int | None = None,
) -> Film | Films:
    """Write a run as a movie and return the path, which a notebook shows as a movie.

    Frames are spread evenly over the saved times. If there are fewer saved times than frames,
    tokens move in straight lines between them. An existing file is replaced only when the new one
    is complete.

    A Flow, and the Datasets of al.models.sentence and iterate, show their tokens with words, in the
    plane of their figure. The movie of a repeated layer gives more frames to the first layers.

    Parameters
    ----------
    run : Trajectory, Flow or xarray.Dataset
        The run, or the result of al.models.flow, sentence or iterate.
    path : str or path, or a sequence of them
        The name of a .gif or .mp4 file. Two names, one of each kind, get the same frames, which are
        drawn once.
    fps : float, optional
        Frames per second.
    frames : int, optional
        The number of frames.
    kind, frame, head
        As in `plot`, for a Trajectory.
    member : int, optional
        The member of a batch, or the text of several, counted from 0.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.
    dpi : float, optional
        Pixels per inch of the figure.

    Returns
    -------
    Film or Films
        The path of the movie. A list of paths for several names.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0)
    >>> film = al.movie(run, "run.gif", frames=2, dpi=30)
    >>> film.name
    'run.gif'
    """
    picture = picture_of(run)
    if not isinstance(run, Trajectory) and (picture is None or picture.stage is None):
        raise TypeError(_refusal(run, picture))
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    targets = [check_movie_name(one) for one in paths]
    if not targets:
        raise ValueError("movie needs the name of at least one file, got an empty list.")
    if not isinstance(frames, numbers.Integral) or frames < 1:
        raise ValueError(f"frames must be a whole number, 1 or more, got {frames!r}.")
    for name, value in (("fps", fps), ("dpi", dpi)):
        if not isinstance(value, numbers.Real) or not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number, got {value!r}.")
    with track(progress, DOING) as progress, house_style(), ExitStack() as files:
        if isinstance(run, Trajectory):
            scene = make_scene(run, member, frame)
            stage = choose_kind(scene, kind).stage(scene, head)
            where = even_positions(len(scene.times), int(frames))
        else:
            assert picture is not None and picture.stage is not None
            check_run_options(kind=kind, frame=frame, head=head)
            shown = picture.choose(run, member)
            stage = picture.stage(shown)
            where = picture.positions(picture.steps(shown), int(frames))
        temporary = [files.enter_context(replace_file(target)) for target in targets]
        written = dict(zip(targets, temporary, strict=True))
        _record(stage, where, written, float(fps), dpi, progress)
    return Film(targets[0]) if isinstance(path, (str, os.PathLike)) else Films(map(Film, targets))


def _refusal(thing: Any, picture: Picture | None) -> str:
    """Say that a thing cannot be filmed, and what to do instead."""
    if isinstance(thing, Limit):
        return (
            "A Limit has no time axis, so it cannot be filmed. Use plot(limit), or movie(run) with"
            " the run it came from."
        )
    name = type(thing).__name__
    if picture is not None and picture.no_movie:
        return f"movie cannot film {picture.title}. {picture.no_movie}"
    instead = say_instead(thing, "movie")
    if instead:
        return f"movie cannot film a record {name}. {instead}"
    return (
        "movie draws a Trajectory, as simulate(...) and load(...) return it, or what models.flow,"
        f" models.sentence and models.iterate return; got {name}."
    )


def _record(
    stage: Stage,
    where: np.ndarray,
    files: Mapping[Path, Path],
    fps: float,
    dpi: float,
    progress: Progress,
) -> None:
    """Draw every frame once and give it to all files, {name: temporary name}."""
    figure, show = stage
    show(float(where[0]))
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    figure.set_layout_engine(
        "none"
    )  # laid out once: panels stand still, and a frame takes half the time
    size = canvas.get_width_height()
    sinks: list[GifSink | Mp4Sink] = []
    try:
        for target, file in files.items():
            sinks.append(
                (GifSink if file.suffix.lower() == ".gif" else Mp4Sink)(target, file, size, fps)
            )
        for number, position in enumerate(where):
            show(float(position))
            canvas.draw()
            picture = bytes(canvas.buffer_rgba())
            for sink in sinks:
                sink.add(picture)
            progress((number + 1) / len(where), DOING)
        for sink in sinks:
            sink.finish()
    finally:
        for sink in sinks:
            sink.close()


class GifSink:
    """Frames of a .gif, written by Pillow when all are there."""

    def __init__(self, target: Path, file: Path, size: tuple[int, int], fps: float):
        self.target, self.file, self.size, self.milliseconds = target, file, size, round(1000 / fps)
        self.pictures: list[Any] = []

    def add(self, picture: bytes) -> None:
        """The next frame, in RGBA."""
        from PIL import Image

        image = Image.frombuffer("RGBA", self.size, picture, "raw", "RGBA", 0, 1).convert("RGB")
        # few colours are used, and a palette for each frame keeps them exact; equal frames stay
        # frames
        self.pictures.append(
            image.quantize(colors=255, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        )

    def finish(self) -> None:
        """Write the file."""
        first, *others = self.pictures
        options: dict[str, Any] = {
            "save_all": True,
            "append_images": others,
            "duration": self.milliseconds,
            "loop": 0,
        }
        try:
            first.save(self.file, format="GIF", disposal=1, **options)
        except OSError as problem:
            raise cannot_write(self.target, problem.strerror or str(problem)) from problem

    def close(self) -> None:
        """Drop the frames."""
        self.pictures.clear()


class Mp4Sink:
    """Frames of an .mp4, sent to the encoder that imageio-ffmpeg carries."""

    def __init__(self, target: Path, file: Path, size: tuple[int, int], fps: float):
        from imageio_ffmpeg import get_ffmpeg_exe

        self.target = target
        rate = str(Fraction(fps).limit_denominator())
        source = [
            "-f",
            "rawvideo",
            "-s",
            f"{size[0]}x{size[1]}",
            "-pix_fmt",
            "rgba",
            "-r",
            rate,
            "-i",
            "-",
        ]
        command = [
            get_ffmpeg_exe(),
            "-y",
            *source,
            "-an",
            "-vcodec",
            "libx264",
            "-pix_fmt",
            "yuv420p",
            *ENCODING,
            "-v",
            "error",
        ]
        # a process group of its own: Ctrl-C is for us, who then end it
        self.encoder = subprocess.Popen(
            [*command, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def add(self, picture: bytes) -> None:
        """The next frame, in RGBA."""
        assert self.encoder.stdin is not None
        try:
            self.encoder.stdin.write(picture)
        except OSError:  # the encoder has gone, and its last words say why
            self.finish()
            raise cannot_write(self.target, "the encoder stopped") from None

    def finish(self) -> None:
        """Wait until the file is complete."""
        _, words = self.encoder.communicate()
        if self.encoder.returncode:
            lines = words.decode(errors="replace").strip().splitlines()
            raise cannot_write(
                self.target, lines[-1].rpartition("] ")[2] if lines else "the encoder stopped"
            )

    def close(self) -> None:
        """End the encoder; what it has written is complete after `finish`, and thrown away
        otherwise.
        """
        if self.encoder.poll() is None:
            self.encoder.kill()
        for pipe in (self.encoder.stdin, self.encoder.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self.encoder.wait()
