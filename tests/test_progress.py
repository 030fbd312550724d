"""Progress: parts of work, cancelling from any thread, and where a bar is shown."""

from __future__ import annotations

import io
import math
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import attnlab as al
from attnlab import bars
from attnlab.limits.allowance import Allowance
from attnlab.progress import as_progress, track
from clock import PATIENCE, is_soon, wait_until
from progress_record import Record


def test_a_part_reports_its_place_in_the_whole():
    heard = Record()
    progress = al.Progress(heard)
    progress.part(0.2, 0.6, "reading")(0.5, "page 3")
    progress.part(0.6, 1.0).piece(1, 4, "chapter")(0.5)
    progress(1.0, "done")
    assert heard.fractions == pytest.approx([0.4, 0.75, 1.0]) and heard.words == [
        "reading: page 3",
        "chapter",
        "done",
    ]


def test_pieces_of_unknown_number_never_reach_the_end():
    heard = Record()
    progress = al.Progress(heard)
    for _ in range(30):
        progress.next_part(0.5)(1.0)
    assert heard.fractions[:3] == [0.5, 0.75, 0.875] and heard.fractions[-1] < 1.0


def test_fractions_ascend_inside_0_and_1_whatever_is_reported():
    heard = Record()
    progress = al.Progress(heard)
    for fraction in (-1.0, 0.5, 0.2, math.nan, 0.7, 3.0, 0.9):
        progress(fraction)
    assert heard.fractions == [0.0, 0.5, 0.5, 0.5, 0.7, 1.0, 1.0] and progress.fraction == 1.0


def test_one_progress_serves_one_function_after_another():
    heard = Record()
    progress = al.Progress(heard)
    for _ in range(2):
        with track(progress) as inside:
            inside(0.5)
    assert heard.fractions == [0.0, 0.5, 1.0] * 2
    heard.fractions.clear()
    progress = al.Progress(heard)
    for number in range(2):  # but parts go on where the last one ended
        with track(progress.piece(number, 2)):
            pass
    assert heard.fractions == [0.0, 0.5, 0.5, 1.0]


@pytest.mark.parametrize("given", [5, "yes", [1], 0.5])
def test_what_is_no_progress_is_refused(given):
    with pytest.raises(
        TypeError, match=r"False, True, a function f\(fraction, doing\) or an attnlab.Progress, got"
    ):
        al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, progress=given)
    with pytest.raises(TypeError, match=r"cancel must be a threading.Event, got"):
        al.Progress(cancel=given)


def test_what_a_function_raises_ends_the_work_and_reaches_the_caller():
    def broken(fraction, doing):
        raise ZeroDivisionError("a fault of the user's own")

    with pytest.raises(ZeroDivisionError, match="a fault of the user's own"):
        al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, progress=broken)


# --------------------------------------------------------------------------------------------------
# cancelling


def test_the_whole_and_its_parts_are_cancelled_together():
    token = threading.Event()
    progress, other = al.Progress(cancel=token), al.Progress(cancel=token)
    part = progress.part(0.0, 0.5).piece(0, 2)
    part(0.1)
    part.cancel()
    assert (
        progress.is_cancelled
        and other.is_cancelled
        and token.is_set()
        and "cancelled" in repr(progress)
    )
    for one in (progress, part, other, al.Progress(progress)):
        with pytest.raises(al.Cancelled, match="was cancelled"):
            one(0.5)
    assert issubclass(al.Cancelled, KeyboardInterrupt) and not al.Progress().is_cancelled


def test_work_inside_other_work_is_cancelled_with_it():
    """Also where it has a progress of its own making: an experiment calls simulate without one."""
    weights, x0 = al.Weights(V=np.eye(2)), np.eye(2)
    progress = al.Progress()
    with track(progress) as inside:
        assert al.simulate(weights, x0, t_end=1.0).is_ok
        inside.cancel()
        run = al.simulate(weights, x0, t_end=1.0, throw=False)
        assert run.status is al.Status.INTERRUPTED and np.array_equal(run.x, [x0])
        with pytest.raises(al.RunInterrupted):
            al.simulate(weights, x0, t_end=1.0, progress=lambda fraction, doing: None)
        with pytest.raises(al.Cancelled):
            al.limit(weights, x0)
        assert as_progress(None).is_cancelled and not al.Progress().is_cancelled
    assert al.simulate(weights, x0, t_end=1.0).is_ok and not as_progress(None).is_cancelled


def test_a_cancelled_run_is_the_interrupted_one():
    """As after Ctrl-C: RunInterrupted with what was computed, or that itself."""
    weights, x0 = al.Weights(V=np.eye(2)), np.random.default_rng(0).normal(size=(3, 5, 2))
    heard = Record()
    progress = al.Progress(heard)
    progress.cancel()
    with pytest.raises(al.RunInterrupted) as caught:
        al.simulate(weights, x0, t_end=1.0, progress=progress)
    run = al.simulate(weights, x0, t_end=1.0, progress=progress, throw=False)
    assert heard.fractions == [0.0, 0.0]  # and not that all is done
    for found in (caught.value.run, run):
        assert (
            (found.status == al.Status.INTERRUPTED).all()
            and np.array_equal(found.x[:, 0], x0)
            and len(found.times) == 1
        )


class LateToken(threading.Event):
    """A cancel token that is set when it is looked at for the `count`-th time."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def is_set(self):
        self.count -= 1
        return self.count <= 0


def test_a_cancelled_limit_is_never_called_undecided():
    """Wherever the cancel falls: an answer that blames the time limit would be wrong."""
    x0 = np.array([[1.0, 0.0], [0.9, np.sqrt(0.19)], [0.0, 1.0]])
    outcomes = set()
    for count in range(1, 400, 3):
        progress = al.Progress(cancel=LateToken(count))
        try:
            outcomes.add(
                al.limit(al.Weights(V=np.eye(2)), x0, geometry="sphere", progress=progress).grade
            )
        except KeyboardInterrupt:
            outcomes.add("cancelled")
    assert outcomes == {"cancelled", "group"}


def test_a_cancel_ends_what_counts_its_work():
    """Where digits are many, a single step of a limit takes seconds: it is left between two
    evaluations.
    """
    allowance = Allowance(1e9, 60.0, time.monotonic() + 60.0, progress=al.Progress())
    share = allowance.share(0.5)
    assert not share.is_over
    allowance.progress.cancel()
    assert share.is_late and share.is_over and allowance.is_over


ROTATION = np.array([[0.0, -1.0], [1.0, 0.0]])
ENDLESS = {"t_end": 1e9, "saves": 2, "max_steps": 10**9}
"""Nothing grows and nothing comes to rest."""


def simulate_small(progress):
    al.simulate(
        al.Weights(V=ROTATION),
        np.random.default_rng(0).normal(size=(30, 2)),
        **ENDLESS,
        progress=progress,
    )


def simulate_large(progress):
    al.simulate(
        al.Weights(V=ROTATION),
        np.random.default_rng(0).normal(size=(2000, 2)),
        **ENDLESS,
        progress=progress,
    )


def simulate_batch(progress):
    al.simulate(
        al.Weights(V=ROTATION),
        np.random.default_rng(0).normal(size=(5, 30, 2)),
        **ENDLESS,
        progress=progress,
    )


def measure_layers(progress):
    """The error of layers is measured in NumPy, in a thread of its own."""
    from attnlab.engine.simulation import add_error

    run = al.simulate(
        al.Weights(V=np.zeros((2, 2))), np.ones((2, 2)), layers=200_000, dt=1.0, saves=2
    )
    found = add_error(run, np.ones((2, 2)), progress)
    assert found.status is al.Status.INTERRUPTED and found.error is None
    progress.raise_if_cancelled()


def observe(progress):
    from attnlab.analysis import observables
    from attnlab.analysis.under_way import time_by_time

    @time_by_time()
    def sleeping(run):
        return lambda at: time.sleep(0.02) or 1.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(observables._things, "sleeping", sleeping)
        al.simulate(
            al.Weights(V=np.eye(2)),
            np.eye(2),
            t_end=1.0,
            saves=5000,
            observe=["sleeping"],
            progress=progress,
        )


def limit_of_many(progress):
    x0 = np.random.default_rng(0).uniform(-5, 5, (2500, 3))
    al.limit(
        al.Weights(V=np.diag([1.0, 0.97, 0.95])), x0, work=1e12, budget=300.0, progress=progress
    )


def limit_with_digits(progress):
    x0 = np.random.default_rng(0).uniform(-5, 5, (12, 3))
    al.limit(
        al.Weights(V=np.diag([1.0, 0.99, 0.98])),
        x0,
        digits=400,
        work=1e12,
        budget=300.0,
        progress=progress,
    )


def limit_with_symmetry(progress):
    """A token that is tied for ever: Python code in the calling thread."""
    x0 = np.random.default_rng(1).uniform(-5, 5, (20, 2))
    x0 = np.concatenate([x0, -x0, np.zeros((1, 2))])
    al.limit(al.Weights(V=np.diag([1.0, 0.99])), x0, work=1e12, budget=300.0, progress=progress)


def check_large(progress):
    x0 = np.random.default_rng(0).uniform(-5, 5, (2500, 3))
    run = al.simulate(al.Weights(V=np.diag([1.0, 0.97, 0.95])), x0, t_end=0.01, saves=2)
    al.check(run, names=["codimension"], work=1e12, budget=300.0, progress=progress)


@pytest.mark.parametrize("is_main", [True, False], ids=["in the main thread", "in a worker thread"])
@pytest.mark.parametrize(
    ("work", "word"),
    [
        (simulate_small, "integrating"),
        (simulate_large, "integrating"),
        (simulate_batch, "integrating"),
        (measure_layers, ""),
        (observe, "sleeping"),
        (limit_of_many, "limit"),
        (limit_with_digits, "limit"),
        (limit_with_symmetry, "symmetry"),
        (check_large, "codimension: looking for the limit"),
    ],
    ids=lambda given: given.__name__ if callable(given) else "",
)
def test_another_thread_cancels_work_at_once(work, word, is_main):
    """The goal is 0.2 s after the cancel, or the rest of a step of a large system; left alone it
    takes a minute at least.
    """
    assert is_soon(lambda: seconds_until_cancelled(work, word, is_main))


def seconds_until_cancelled(work, word, is_main) -> float:
    heard, cancelled, ended = Record(), [], []
    progress = al.Progress(heard)

    def cancel():
        end = time.monotonic() + PATIENCE
        while sum(word in words for words in heard.words) < 3 and time.monotonic() < end:
            time.sleep(0.01)  # until what is compiled is compiled, and the work goes on
        cancelled.append(time.perf_counter())
        progress.cancel()

    def do_it():
        with pytest.raises(KeyboardInterrupt):
            work(progress)
        ended.append(time.perf_counter())

    other = threading.Thread(target=cancel, daemon=True)
    other.start()
    if is_main:
        do_it()
    else:
        worker = threading.Thread(target=do_it)
        worker.start()
        worker.join(2 * PATIENCE)
    assert heard.fractions[-1] < 1.0 and sum(word in words for words in heard.words) >= 3
    return ended[0] - cancelled[0]


# --------------------------------------------------------------------------------------------------
# where it is shown


@pytest.fixture
def at_once(monkeypatch):
    """Bars appear without a delay."""
    monkeypatch.setattr(bars, "DELAY", 0.0)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


@pytest.fixture
def open_screen(monkeypatch):
    """A function, since pytest puts its own standard error in place when the test begins."""
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def open_it():
        monkeypatch.setattr(sys, "stderr", Screen())
        return sys.stderr

    return open_it


def test_a_terminal_has_a_bar_that_shows_any_words_and_is_removed(open_screen, at_once):
    screen = open_screen()
    with track(True, "[red]first") as progress:
        progress(0.25, "[/nothing] \x1b[2J\n")
        wait_until(lambda: "25 %" in screen.getvalue())  # it is drawn ten times a second
    shown = screen.getvalue()
    assert "[red]first" in shown and "25 %" in shown and r"[/nothing] \x1b[2J\n" in shown
    assert "\x1b[2J" not in shown and shown.endswith("\x1b[2K")  # the line is erased
    assert (
        shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1
        and not bars.Terminal.is_taken.locked()
    )


def test_short_work_shows_nothing(open_screen, monkeypatch):
    screen = open_screen()
    monkeypatch.setattr(bars, "DELAY", 60.0)  # what is short on a busy machine
    al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, progress=True)
    with track(True) as progress:
        progress(0.5, "short")
    assert screen.getvalue() == ""


def test_a_bar_appears_though_nothing_is_reported(open_screen, monkeypatch):
    screen = open_screen()
    monkeypatch.setattr(bars, "DELAY", 0.05)
    with track(True, "one long step"):
        wait_until(lambda: "one long step" in screen.getvalue())
    assert "one long step" in screen.getvalue() and not bars.Terminal.is_taken.locked()


def test_there_is_one_bar_at_a_time(open_screen, at_once):
    screen = open_screen()
    with track(True, "outer") as outer:
        outer(0.1, "outer")
        with track(True, "inner") as inner:
            inner(0.5, "inner")
            wait_until(lambda: "outer" in screen.getvalue())
            time.sleep(0.2)
        assert "inner" not in screen.getvalue() and "outer" in screen.getvalue()
    with track(True, "the next") as progress:
        progress(0.5, "the next")
    assert "the next" in screen.getvalue()


def test_a_bar_that_cannot_be_drawn_leaves_room_for_the_next(open_screen, at_once, monkeypatch):
    open_screen()
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(bars.Terminal, "__init__", lambda *_: 1 / 0)
        with track(True, "failing") as progress:
            progress(0.5)
    assert not bars.Terminal.is_taken.locked()


def test_a_bar_is_removed_after_an_error_and_between_two_parts(open_screen, at_once):
    open_screen()
    with pytest.raises(ZeroDivisionError), track(True, "failing") as progress:
        progress(0.5)
        raise ZeroDivisionError
    assert not bars.Terminal.is_taken.locked()
    progress = al.Progress(True)
    for number in range(2):
        with track(progress.piece(number, 2, "work")):
            assert bars.Terminal.is_taken.locked()
        assert not bars.Terminal.is_taken.locked()
    with track(al.Progress(al.Progress(True))):
        assert bars.Terminal.is_taken.locked()
    assert not bars.Terminal.is_taken.locked()
    progress = al.Progress(True)  # by hand, without `with`
    progress(0.5, "by hand")
    assert bars.Terminal.is_taken.locked()
    progress(1.0)
    assert not bars.Terminal.is_taken.locked()


@pytest.fixture
def notebook(monkeypatch):
    """A kernel, and what its cell showed: [(how, page, text)]."""
    shown = []

    class Handle:
        def update(self, content, raw):
            assert raw
            shown.append(("update", content["text/html"], content["text/plain"]))

    def display(content, raw, display_id):
        assert raw and display_id is True
        shown.append(("display", content["text/html"], content["text/plain"]))
        return Handle()

    kernel = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=object()),
        display=SimpleNamespace(display=display),
    )
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", kernel.display)
    return shown


def test_a_notebook_has_a_bar_that_is_escaped_and_emptied(notebook, at_once, capsys):
    with track(True) as progress:
        time.sleep(bars.PAUSE)
        progress(0.25, "<script>alert(1)</script> & \x1b[2J")
    first, *others = [how for how, _, _ in notebook]
    assert (
        first == "display" and len(others) >= 2 and set(others) == {"update"}
    )  # on a slow machine there are more
    page = notebook[1][1]
    assert (
        "&lt;script&gt;alert(1)&lt;/script&gt; &amp; \\x1b[2J" in page
        and 'value="0.2500"' in page
        and "25%" in page
    )
    assert (
        "<script" not in page and notebook[-1][1:] == ("", "") and capsys.readouterr() == ("", "")
    )


def test_a_notebook_is_updated_ten_times_a_second_at_most(notebook, at_once):
    began = time.monotonic()
    with track(True) as progress:
        for number in range(2000):
            progress(number / 2000, "counting")
            time.sleep(1e-4)
    assert 2 <= len(notebook) <= 3 + (time.monotonic() - began) / bars.PAUSE


def test_short_work_shows_nothing_in_a_notebook(notebook, monkeypatch):
    monkeypatch.setattr(bars, "DELAY", 60.0)  # what is short on a busy machine
    with track(True) as progress:
        progress(0.5, "short")
    assert notebook == []


def test_a_log_file_gets_few_lines(capsys):
    place, seconds = bars.Lines(), []
    for tenth in range(36_000):  # an hour
        place.show(tenth / 36_000, "a\x1b[2J\nb", tenth / 10)
        said = capsys.readouterr().err
        if said:
            assert said.count("\n") == 1 and said.startswith("attnlab: ") and r"a\x1b[2J\nb" in said
            seconds.append(tenth / 10)
    assert seconds[0] == 2.0 and len(seconds) < 40
    for before, after in zip(seconds, seconds[1:], strict=False):
        assert after - before >= min(10.0, 0.2 * before) and after - before <= max(
            10.1, 0.21 * after
        )


def test_a_log_file_that_is_closed_or_not_there_does_not_matter(monkeypatch):
    closed = io.StringIO()
    closed.close()
    place = bars.Lines()
    for file in (closed, None):
        monkeypatch.setattr(sys, "stderr", file)
        place.show(0.5, "work", 100.0)
        assert bars._find_place(0.0) is not None


@pytest.mark.parametrize(
    ("fraction", "seconds", "words"),
    [
        (0.0, 0.4, "0:00"),
        (0.25, 30.0, "0:30, 1:30 left"),
        (1.0, 3725.0, "1:02:05, 0:00 left"),
        (0.001, 90.0, "1:30"),
    ],
)
def test_clocks(fraction, seconds, words):
    assert bars.format_clock(fraction, seconds) == words
