"""Writing files: whole or not at all, with a sentence where the disk is full, and nothing left
behind for ever.
"""

from __future__ import annotations

import ast
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import attnlab
from attnlab import files
from attnlab.files import (
    CannotWrite,
    Damaged,
    replace_file,
    temporary_name,
    with_digest,
    without_digest,
    write_bytes,
    write_text,
)
from places import TRUTH

ROOT = Path(attnlab.__file__).parent


def python(code: str, *arguments: object, **options) -> subprocess.CompletedProcess:
    """Run `code` in an interpreter of its own, which can import the hand-made runs of
    conftest.py.
    """
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(TRUTH)!r})\n{code}",
        *map(str, arguments),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ------------------------------------------------------------------------------------------- whole
# or not at all


@pytest.mark.parametrize(
    "problem", [OSError(28, "No space left on device"), RuntimeError("a bug"), KeyboardInterrupt()]
)
def test_what_was_there_stays_where_writing_fails(tmp_path, problem):
    (tmp_path / "a.txt").write_text("before")
    with pytest.raises(CannotWrite if isinstance(problem, OSError) else type(problem)) as caught:
        with replace_file(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise problem
    if isinstance(problem, OSError):
        sentence = (
            f"{tmp_path / 'a.txt'} cannot be written (No space left on device): make room there, or"
            " choose another folder."
        )
        assert str(caught.value) == sentence
    assert (tmp_path / "a.txt").read_text() == "before" and os.listdir(tmp_path) == ["a.txt"]


def test_nobody_sees_a_part(tmp_path):
    write_text(tmp_path / "a.txt", "before")
    with replace_file(tmp_path / "a.txt") as temporary:
        assert (
            temporary.suffix == ".txt"
            and temporary.parent == tmp_path
            and temporary.read_text() == ""
        )
        temporary.write_text("after")
        assert (tmp_path / "a.txt").read_text() == "before"
    assert (tmp_path / "a.txt").read_text() == "after" and os.listdir(tmp_path) == ["a.txt"]


def test_texts_are_written_as_they_are(tmp_path):
    write_text(tmp_path / "a.txt", "a\r\nb\nβ")
    assert (tmp_path / "a.txt").read_bytes() == b"a\r\nb\n\xce\xb2"


@pytest.mark.parametrize("name", ["a" * 255, "a." + "b" * 253, ".hidden", "no suffix.", "a.b c"])
def test_every_name_that_a_file_can_have_is_written(tmp_path, name):
    write_text(tmp_path / name, "x")
    assert os.listdir(tmp_path) == [name]


def test_places_that_take_no_file_are_sentences(tmp_path):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, sentence in (
        (".", "is a folder"),
        ("no/a", "There is no folder"),
        ("file/a", "There is no folder"),
        ("pipe", "is a device or a pipe"),
        ("loop", "loop cannot be written .*: choose another folder"),
    ):
        with pytest.raises(CannotWrite, match=sentence):
            write_text(tmp_path / name, "x")
    with pytest.raises(
        CannotWrite, match="/dev/null is a device"
    ):  # root could replace it by a file
        write_text("/dev/null", "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert sorted(os.listdir(tmp_path)) == ["file", "loop", "pipe"]


# ---------------------------------------------------------------------------------------------
# permissions and links


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o664, 0o444, 0o755])
def test_a_replaced_file_keeps_its_permissions(tmp_path, kept):
    write_text(tmp_path / "a.txt", "before")
    (tmp_path / "a.txt").chmod(kept)
    with replace_file(tmp_path / "a.txt") as temporary:
        assert not mode(temporary) & ~(kept | 0o600)  # private from the first byte on
        temporary.write_text("after")
    assert mode(tmp_path / "a.txt") == kept and (tmp_path / "a.txt").read_text() == "after"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_text(tmp_path / "a.txt", "x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a.txt") == 0o666 & ~mask


def test_the_file_behind_a_link_is_replaced(tmp_path):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    link, target = tmp_path / "here" / "a.txt", tmp_path / "there" / "b.txt"
    link.symlink_to("../there/b.txt")
    for text in ("made", "replaced"):  # the first finds nothing behind the link
        write_text(link, text)
        assert link.is_symlink() and target.read_text() == text
    assert os.listdir(tmp_path / "here") == ["a.txt"] and os.listdir(tmp_path / "there") == [
        "b.txt"
    ]


# -------------------------------------------------------------------------------------------- kills
# and leftovers


def test_a_kill_in_the_middle_leaves_the_old_file_and_the_next_write_tidies_up(tmp_path):
    write_text(tmp_path / "a.txt", "before")
    code = """
import os, signal
from attnlab.files import replace_file
with replace_file(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert python(code, tmp_path / "a.txt").returncode == -signal.SIGKILL
    assert (tmp_path / "a.txt").read_text() == "before"
    (left,) = set(os.listdir(tmp_path)) - {"a.txt"}
    assert (tmp_path / left).read_text() == "half"
    write_text(tmp_path / "other.txt", "x")
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "other.txt"]


def with_owner(name: Path, **changed: object) -> Path:
    """The temporary name with another machine, process or start in it."""
    parts = (
        dict(
            zip(
                ("prefix", "machine", "process", "start", "random"),
                name.stem.split("-"),
                strict=True,
            )
        )
        | changed
    )
    return name.with_name("-".join(map(str, parts.values())) + name.suffix)


def test_only_leftovers_of_dead_processes_are_removed(tmp_path):
    ours = temporary_name(tmp_path / "a.txt")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as living:
        living_start = files._started(living.pid)
        kept = [
            ours,
            with_owner(ours, process=living.pid, start=living_start),
            tmp_path / ".attnlab-notes",
            tmp_path / ".attnlab-0-0-0-0.txt",
            with_owner(ours, machine="00000000", process=1),
        ]
        old = with_owner(ours, machine="00000001", process=1)
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        dead = [with_owner(ours, process=gone.pid), with_owner(ours, process=10**30), old]
        if files._started(os.getpid()):  # where the system tells
            dead.append(
                with_owner(ours, start=int(ours.stem.split("-")[3]) + 1)
            )  # another process has the number now
        for path in (*kept, *dead):
            path.touch()
        eight_days_ago = time.time() - 8 * 86400
        os.utime(old, (eight_days_ago, eight_days_ago))
        write_text(tmp_path / "b.txt", "x")
        assert sorted(tmp_path.iterdir()) == sorted([*kept, tmp_path / "b.txt"])
        living.communicate(b"\n")
    write_text(tmp_path / "b.txt", "x")
    assert kept[1] not in tmp_path.iterdir()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only /proc tells")
def test_a_process_that_nobody_has_buried_is_dead(tmp_path):
    process = os.fork()
    if process == 0:
        os._exit(0)
    try:
        while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        with_owner(
            temporary_name(tmp_path / "a.txt"), process=process, start=files._started(os.getpid())
        ).touch()
        write_text(tmp_path / "a.txt", "x")
        assert os.listdir(tmp_path) == ["a.txt"]
    finally:
        os.waitpid(process, 0)


# --------------------------------------------------------------------------------------------------
# full disks

WRITERS = {
    "run.nc": "al.save(hand_made('observed'), path)",
    "run.toml": "hand_made('observed').spec.save(path)",
    "figure.png": "al.plot(hand_made('plain')).savefig(path)",
    "figure.pdf": "al.plot(hand_made('plain')).savefig(path)",
    "figure.svg": "al.plot(hand_made('plain')).savefig(path)",
    "film.gif": "al.movie(hand_made('plain'), path, frames=2, dpi=40)",
    "film.mp4": "al.movie(hand_made('plain'), path, frames=2, dpi=40)",
    "both.mp4": "al.movie(hand_made('plain'), [path, path.with_suffix('.gif')], frames=2, dpi=40)",
    "data.nc": "al.save(al.to_xarray(hand_made('plain')), path)",
}
FULL = """
import gc, os, resource
from pathlib import Path
import attnlab as al
from hand_made import hand_made
sys.dont_write_bytecode = True      # Python keeps half of the bytecode of a module where the disk is full

def limit(size):
    # what a full disk does, for one process and without root
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

for name, code in WRITERS.items():
    path = Path(sys.argv[1]) / name
    exec(code)
    whole = path.read_bytes()
    for number in range(8 if name == "run.nc" else 3):
        limit(len(whole) * number // 8)
        try:
            exec(code)
            print("written")
        except OSError as problem:
            print(problem)
        gc.collect()                    # where HDF5 used to end the process
        limit(resource.RLIM_INFINITY)
        is_whole = path.read_bytes() == whole and not [other for other in os.listdir(path.parent) if other.startswith(".")]
        assert is_whole, (name, number)
"""


@pytest.mark.slow
def test_a_full_disk_is_a_sentence_that_names_the_file(tmp_path):
    pytest.importorskip("resource")
    done = python(FULL.replace("WRITERS", repr(WRITERS)), tmp_path)
    assert done.returncode == 0, done.stderr
    names = [name for name in WRITERS for _ in range(8 if name == "run.nc" else 3)]
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        assert line.startswith(f"{tmp_path / name} cannot be written ("), line
        assert line.endswith("): make room there, or choose another folder."), line


def test_a_run_on_a_disk_of_12_kilobytes(tmp_path):
    """The disk on which HDF5 ended the process. Mounting needs rights that most users do not
    have.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no rights to mount a disk")
    try:
        code = """
import gc
import attnlab as al
from hand_made import hand_made
for kind in ("plain", "observed") * 4:
    try:
        al.save(hand_made(kind), sys.argv[1])
    except OSError as problem:
        print(problem)
    gc.collect()
"""
        done = python(code, disk / "run.nc")
        sentence = (
            f"{disk / 'run.nc'} cannot be written (No space left on device): make room there, or"
            " choose another folder."
        )
        assert (
            done.returncode == 0
            and done.stdout.splitlines() == [sentence] * 8
            and os.listdir(disk) == []
        )
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# -------------------------------------------------------------------------------------------
# digests, and one module


def test_a_digest_knows_its_content_again():
    stored = with_digest(b"content")
    assert without_digest(stored) == b"content" and without_digest(with_digest(b"")) == b""
    for number in range(len(stored)):
        harmed = bytearray(stored)
        harmed[number] ^= 1
        with pytest.raises(Damaged):
            without_digest(bytes(harmed))
    for length in range(len(stored)):
        with pytest.raises(Damaged):
            without_digest(stored[:length])


STAGING = {"models/catalog/archives.py", "models/catalog/fetch.py", "models/catalog/clients.py"}
"""These write into a temporary folder, which becomes the model's folder when it is complete."""

PASSED_ON = {"models/studies/tables.py"}
"""A DataFrame whose to_csv is that of pandas: it writes where and how the user says."""


def writes(tree: ast.AST) -> list[int]:
    """The lines of calls that write a file in place."""
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = (
            node.func.attr
            if isinstance(node.func, ast.Attribute)
            else node.func.id
            if isinstance(node.func, ast.Name)
            else ""
        )
        owner = (
            node.func.value.id
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
            else ""
        )
        words = [
            value.value
            for value in (*node.args[:2], *(word.value for word in node.keywords))
            if isinstance(value, ast.Constant) and isinstance(value.value, str)
        ]
        is_open = name == "open" and any(
            word and set(word) <= set("rwxabt+") and set(word) & set("wxa+") for word in words
        )
        is_method = (
            name in ("write_text", "write_bytes")
            and isinstance(node.func, ast.Attribute)
            and owner != "files"
        )
        is_table = (
            name in ("to_netcdf", "to_csv")
            and node.args
            or name in ("NamedTemporaryFile", "mkstemp")
        )
        if is_open or is_method or is_table:
            lines.append(node.lineno)
    return lines


def test_the_search_finds_what_writes():
    text = (
        "open(a,"
        " 'w')\np.open('xb')\np.write_text(b)\nd.to_csv(p)\nd.to_csv()\nopen(a)\nwrite_text(p,"
        " t)\np.open('rb')\n"
    )
    assert writes(ast.parse(text)) == [1, 2, 3, 4]


def test_every_file_is_written_through_one_module():
    found = {
        path.relative_to(ROOT).as_posix(): writes(ast.parse(path.read_text()))
        for path in sorted(ROOT.rglob("*.py"))
    }
    assert {
        name: lines
        for name, lines in found.items()
        if lines and name not in STAGING | PASSED_ON and name != "files.py"
    } == {}
    assert found["files.py"] and all(found[name] for name in STAGING | PASSED_ON)


def test_bytes_of_every_kind_are_written(tmp_path):
    for content in (b"abc", memoryview(b"abc"), b""):
        write_bytes(tmp_path / "a", content)
        assert (tmp_path / "a").read_bytes() == bytes(content)
