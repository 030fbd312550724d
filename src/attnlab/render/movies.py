"""movie: a run as a .gif or .mp4, written whole or not at all."""

from __future__ import annotations

import numbers
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from attnlab.render.kinds import Stage
from attnlab.render.names import check_movie_name, closed_folder
from attnlab.render.plots import chosen_kind
from attnlab.render.scene import Scene, make_scene
from attnlab.render.style import house_style
from attnlab.types import Limit, Trajectory

ENCODING = ("-preset", "medium", "-crf", "20", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white",
            "-movflags", "+faststart")
"""H.264 that every browser and player shows: colours at half resolution, which needs even sizes, and the index in front."""


def movie(run: Trajectory, path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, fps: float = 20,
          frames: int = 100, kind: str | None = None, progress: bool = False, dpi: float = 120, member: int = 0,
          frame: str | None = None, head: int | None = None, told: Callable[..., None] | None = None) -> Any:
    """Write the run as a movie and return its path; kind, member, frame and head as in `plot`.

    Frames are spread evenly over the saved times. Where there are fewer saved times than frames, tokens move
    in straight lines between them. An existing file is replaced only when the new one is complete.
    A list of paths, one ending in .gif and one in .mp4, gets the same frames, drawn once.
    progress shows a bar; told, where given, is called with the fraction that is done and a word.
    """
    if isinstance(run, Limit):
        raise TypeError("A Limit stands still: draw it with plot(limit), or film the run that it is the limit of.")
    if not isinstance(run, Trajectory):
        raise TypeError(f"movie draws a Trajectory, as simulate(...) and load(...) return it; got {type(run).__name__}.")
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    targets = [check_movie_name(one) for one in paths]
    if not targets:
        raise ValueError("movie needs the name of at least one file, got an empty list.")
    if not isinstance(frames, numbers.Integral) or frames < 1:
        raise ValueError(f"frames must be a whole number, 1 or more, got {frames!r}.")
    for name, value in (("fps", fps), ("dpi", dpi)):
        if not isinstance(value, numbers.Real) or not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number, got {value!r}.")
    with house_style(), ExitStack() as files:
        scene = make_scene(run, member, frame)
        chosen = chosen_kind(scene, kind)
        temporary = [files.enter_context(_written_whole(target)) for target in targets]
        tell = files.enter_context(_progress(progress)) if told is None else told
        _record(chosen.stage(scene, head), positions(scene, int(frames)), temporary, float(fps), dpi, tell)
    return targets[0] if isinstance(path, (str, os.PathLike)) else targets


def positions(scene: Scene, frames: int) -> np.ndarray:
    """The position of every frame: numbers of saved times, or between them where there are fewer of them than frames."""
    even = np.linspace(0, len(scene.times) - 1, frames)
    return np.rint(even) if len(scene.times) >= frames else even


def _record(stage: Stage, where: np.ndarray, files: Sequence[Path], fps: float, dpi: float, tell: Callable[..., None]) -> None:
    """Draw every frame once and give it to all files."""
    figure, show = stage
    show(float(where[0]))
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    figure.set_layout_engine("none")             # laid out once: panels stand still, and a frame takes half the time
    size = canvas.get_width_height()
    sinks = [(GifSink if file.suffix.lower() == ".gif" else Mp4Sink)(file, size, fps) for file in files]
    try:
        for number, position in enumerate(where):
            show(float(position))
            canvas.draw()
            picture = bytes(canvas.buffer_rgba())
            for sink in sinks:
                sink.add(picture)
            tell((number + 1) / len(where), "filming")
        for sink in sinks:
            sink.finish()
    except BrokenPipeError as problem:
        raise OSError(f"The encoder stopped before the movie was complete ({problem}). Is the disk full?") from None
    finally:
        for sink in sinks:
            sink.close()


class GifSink:
    """Frames of a .gif, written by Pillow when all are there."""

    def __init__(self, file: Path, size: tuple[int, int], fps: float):
        self.file, self.size, self.milliseconds = file, size, round(1000 / fps)
        self.pictures: list[Any] = []

    def add(self, picture: bytes) -> None:
        """The next frame, in RGBA."""
        from PIL import Image

        image = Image.frombuffer("RGBA", self.size, picture, "raw", "RGBA", 0, 1).convert("RGB")
        # few colours are used, and a palette for each frame keeps them exact; equal frames stay frames
        self.pictures.append(image.quantize(colors=255, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE))

    def finish(self) -> None:
        """Write the file."""
        first, *others = self.pictures
        first.save(self.file, format="GIF", save_all=True, append_images=others, duration=self.milliseconds, loop=0, disposal=1)

    def close(self) -> None:
        """Let the frames go."""
        self.pictures.clear()


class Mp4Sink:
    """Frames of an .mp4, sent to the encoder that imageio-ffmpeg carries."""

    def __init__(self, file: Path, size: tuple[int, int], fps: float):
        import imageio_ffmpeg

        self.encoder = imageio_ffmpeg.write_frames(
            str(file), size, pix_fmt_in="rgba", fps=fps, codec="libx264", quality=None, macro_block_size=1,
            output_params=list(ENCODING),
        )
        self.encoder.send(None)

    def add(self, picture: bytes) -> None:
        """The next frame, in RGBA."""
        try:
            self.encoder.send(picture)
        except (OSError, StopIteration) as problem:
            raise BrokenPipeError(str(problem).strip().splitlines()[-1] if str(problem).strip() else "it has gone") from None

    def finish(self) -> None:
        """Wait until the file is complete."""
        self.encoder.close()

    def close(self) -> None:
        """End the encoder; what it has written is complete after `finish`, and thrown away otherwise."""
        with suppress(OSError, RuntimeError):
            self.encoder.close()


@contextmanager
def _progress(wanted: bool) -> Iterator[Callable[..., None]]:
    """A function to call with the fraction that is done; it moves a bar on the terminal if one is wanted."""
    if not wanted:
        yield lambda fraction, at="": None
        return
    from rich.progress import Progress

    with Progress(transient=True) as bar:
        task = bar.add_task("movie", total=1.0)
        yield lambda fraction, at="": bar.update(task, completed=fraction)


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
