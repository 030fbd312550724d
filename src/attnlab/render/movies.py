"""movie: a run as a .gif or .mp4, written whole or not at all."""

from __future__ import annotations

import numbers
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import matplotlib
import numpy as np
from matplotlib.animation import FFMpegWriter, PillowWriter

from attnlab.render.kinds import Stage
from attnlab.render.names import check_movie_name, closed_folder
from attnlab.render.plots import chosen_kind
from attnlab.render.scene import Scene, make_scene
from attnlab.render.style import house_style
from attnlab.types import Limit, Trajectory

ENCODING = ("-preset", "medium", "-crf", "20", "-pix_fmt", "yuv420p", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white",
            "-movflags", "+faststart")
"""H.264 that every browser and player shows: colours at half resolution, which needs even sizes, and the index in front."""


def movie(run: Trajectory, path: str | os.PathLike[str], *, fps: float = 20, frames: int = 100, kind: str | None = None,
          progress: bool = False, dpi: float = 120, member: int = 0, frame: str | None = None, head: int | None = None) -> Path:
    """Write the run as a movie and return its path; kind, member, frame and head as in `plot`.

    Frames are spread evenly over the saved times. Where there are fewer saved times than frames, tokens move
    in straight lines between them. An existing file is replaced only when the new one is complete.
    """
    if isinstance(run, Limit):
        raise TypeError("A Limit stands still: draw it with plot(limit), or film the run that it is the limit of.")
    if not isinstance(run, Trajectory):
        raise TypeError(f"movie draws a Trajectory, as simulate(...) and load(...) return it; got {type(run).__name__}.")
    target = check_movie_name(path)
    if not isinstance(frames, numbers.Integral) or frames < 1:
        raise ValueError(f"frames must be a whole number, 1 or more, got {frames!r}.")
    for name, value in (("fps", fps), ("dpi", dpi)):
        if not isinstance(value, numbers.Real) or not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number, got {value!r}.")
    with house_style():
        scene = make_scene(run, member, frame)
        chosen = chosen_kind(scene, kind)
        with _written_whole(target) as temporary:
            _record(chosen.stage(scene, head), positions(scene, int(frames)), temporary, fps, dpi, progress)
    return target


def positions(scene: Scene, frames: int) -> np.ndarray:
    """The position of every frame: numbers of saved times, or between them where there are fewer of them than frames."""
    even = np.linspace(0, len(scene.times) - 1, frames)
    return np.rint(even) if len(scene.times) >= frames else even


def _record(stage: Stage, where: np.ndarray, file: Path, fps: float, dpi: float, progress: bool) -> None:
    figure, show = stage
    show(float(where[0]))
    figure.set_dpi(dpi)
    figure.canvas.draw()
    figure.set_layout_engine("none")             # laid out once: panels stand still, and a frame takes half the time
    with _progress(progress) as advance, _writer(file, fps) as writer:
        writer.setup(figure, str(file), dpi)
        # not writer.saving(...): after an error or Ctrl-C it would still encode everything, and hide the error behind its own
        try:
            for position in where:
                show(float(position))
                writer.grab_frame()
                advance(len(where))
            writer.finish()
        except (BrokenPipeError, CalledProcessError) as problem:
            _stop(writer)
            raise OSError(f"The encoder stopped before the movie was complete ({problem}). Is the disk full?") from None
        except BaseException:
            _stop(writer)
            raise


def _stop(writer: Any) -> None:
    """End the encoder's process if there is one; what it has written is thrown away."""
    if isinstance(writer, FFMpegWriter):
        with suppress(OSError, ValueError, CalledProcessError):
            writer.finish()


@contextmanager
def _writer(file: Path, fps: Any) -> Iterator[Any]:
    """The writer for a file's suffix. The encoder for .mp4 is the one that imageio-ffmpeg carries."""
    if file.suffix.lower() == ".gif":
        yield PillowWriter(fps=fps)
        return
    import imageio_ffmpeg

    with matplotlib.rc_context({"animation.ffmpeg_path": imageio_ffmpeg.get_ffmpeg_exe()}):
        yield FFMpegWriter(fps=fps, codec="libx264", extra_args=list(ENCODING))


@contextmanager
def _progress(wanted: bool) -> Iterator[Any]:
    """A function to call once a frame with the number of all of them; it moves a bar on the terminal if one is wanted."""
    if not wanted:
        yield lambda total: None
        return
    from rich.progress import Progress

    with Progress(transient=True) as bar:
        task = bar.add_task("movie", total=None)
        yield lambda total: bar.update(task, total=total, advance=1)


@contextmanager
def _written_whole(target: Path) -> Iterator[Path]:
    """A new file beside `target` that takes its place if all goes well and is removed if not."""
    temporary = target.with_name(f".{target.stem}.{uuid.uuid4().hex[:8]}{target.suffix.lower()}")
    try:
        temporary.open("xb").close()
    except OSError as problem:
        raise type(problem)(closed_folder(target, "movie", problem.strerror)) from None
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
