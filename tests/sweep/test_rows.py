"""The file of results: whole or not there, one writer, and nothing foreign is touched."""

import math
import os
import sqlite3
import subprocess
import sys

import pytest

from attnlab.files import CannotWrite
from attnlab.sweep import Row, Rows
from attnlab.sweep.lock import InUse
from attnlab.sweep.rows import NotRows

ROWS = [
    Row(
        "a" * 16,
        "ok",
        {"x": 0.1, "y.z": [1, 2]},
        {"spread": 0.1 + 0.2, "word": "yes", "nothing": None, "count": 3},
        seconds=0.5,
        seed=7,
        versions="v",
        measured="m",
    ),
    Row("b" * 16, "max_steps", {"x": 0.2, "y.z": "w"}, {}, error="It stopped.", measured="m"),
    Row(
        "c" * 16,
        "ok",
        {"x": 1e-300, "y.z": True},
        {"spread": math.inf, "word": -math.inf},
        measured="other",
    ),
]


@pytest.fixture
def rows(tmp_path):
    return Rows(
        tmp_path / "phase.sqlite",
        axes=["x", "y.z"],
        numbers=["spread", "status", "o'clock\"s"],
        source="phase.toml",
    )


def test_rows_come_back_as_they_were(rows):
    with rows.open():
        rows.write(ROWS)
        assert list(rows.read()) == ROWS
    assert list(rows.read()) == ROWS
    assert list(Rows(rows.path).read()) == ROWS
    assert rows.count() == {"ok": 2, "max_steps": 1}
    assert os.listdir(rows.path.parent) == ["phase.sqlite"]


def test_done_answers_for_one_table_of_numbers_and_retries_on_request(rows):
    with rows.open():
        rows.write(ROWS)
        assert rows.done() == {"a" * 16, "b" * 16, "c" * 16}
        assert rows.done("m") == {"a" * 16, "b" * 16}
        assert rows.done("m", retry=["failed"]) == {"a" * 16} == rows.done("m", retry=["max_steps"])
        assert rows.done("m", retry=["crashed"]) == {"a" * 16, "b" * 16}


def test_a_row_of_the_same_digest_is_replaced_and_nan_is_nothing(rows):
    with rows.open():
        rows.write(ROWS)
        rows.write([Row("b" * 16, "ok", {"x": 0.2}, {"spread": math.nan})])
        found = {row.digest: row for row in rows.read()}
        assert len(found) == 3 and found["b" * 16].numbers == {"spread": None}
        rows.delete(["a" * 16])
        assert rows.count() == {"ok": 2}


def test_other_programs_see_axes_and_numbers_as_columns(rows):
    with rows.open():
        rows.write(ROWS)
    with sqlite3.connect(rows.path) as connection:
        cursor = connection.execute(
            'SELECT "x", "y.z", spread, "numbers.status", "o\'clock""s" FROM wide ORDER BY digest'
        )
        assert cursor.fetchall()[0] == (0.1, "[1,2]", 0.1 + 0.2, None, None)
        assert connection.execute("PRAGMA application_id").fetchone() == (0x61666D31,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert rows.meta()["format"] == "attnlab sweep 1" and rows.meta()["source"] == "phase.toml"


def test_a_second_writer_is_told_who_is_there(rows):
    with rows.open(), pytest.raises(InUse, match=f"Process {os.getpid()} is writing"):
        Rows(rows.path).open().__enter__()
    with rows.open():
        pass


def test_a_process_that_is_killed_leaves_its_rows_and_no_lock(rows):
    code = (
        "import os, signal, sys\nfrom attnlab.sweep import Row, Rows\nrows = Rows(sys.argv[1],"
        " axes=['x'])\nwith rows.open():\n    rows.write([Row('a' * 16, 'ok', {'x': 1}, {'y':"
        " 2.5})])\n    rows._connection.execute('BEGIN')\n    rows._connection.execute(\"INSERT"
        " INTO cells (digest, status) VALUES ('half', 'ok')\")\n    os.kill(os.getpid(),"
        " signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, rows.path]).returncode == -9
    assert [row.numbers for row in Rows(rows.path).read()] == [{"y": 2.5}]
    with rows.open():
        assert rows.done() == {"a" * 16}


@pytest.mark.parametrize(
    "content", [b"", b"hello\n" * 100, b"SQLite format 3\0" + bytes(200), b"SQLite format 3\0"]
)
def test_a_foreign_file_is_refused_and_not_touched(rows, content):
    rows.path.write_bytes(content)
    for use in (lambda: rows.open().__enter__(), lambda: list(rows.read())):
        with pytest.raises(NotRows, match="Nothing in it was changed"):
            use()
    assert rows.path.read_bytes() == content
    assert os.listdir(rows.path.parent) == ["phase.sqlite"]


def test_the_database_of_another_program_is_refused_and_not_touched(rows):
    with sqlite3.connect(rows.path) as connection:
        connection.execute("CREATE TABLE cells (digest TEXT)")
    connection.close()
    before = rows.path.read_bytes()
    with pytest.raises(NotRows, match="not that of a sweep"):
        rows.open().__enter__()
    assert rows.path.read_bytes() == before


@pytest.mark.parametrize("damage", ["cut", "page", "format", "column"])
def test_a_damaged_database_is_refused_and_not_touched(rows, damage):
    with rows.open():
        rows.write(
            Row(f"{number:016x}", "ok", {"x": number}, {"spread": number / 3})
            for number in range(500)
        )
    if damage in ("format", "column"):
        statements = ["UPDATE meta SET value = 'attnlab sweep 2' WHERE key = 'format'"]
        if damage == "column":
            statements = ["DROP VIEW wide", "ALTER TABLE cells DROP COLUMN seed"]
        with sqlite3.connect(rows.path) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()
        for suffix in ("-wal", "-shm"):
            assert not rows.path.with_name(rows.path.name + suffix).exists()
    else:
        content = rows.path.read_bytes()
        rows.path.write_bytes(
            content[: len(content) // 2]
            if damage == "cut"
            else content[:8192] + bytes(4096) + content[12288:]
        )
    before = rows.path.read_bytes()
    with pytest.raises(NotRows, match="Nothing in it was changed"):
        rows.open().__enter__()
    assert rows.path.read_bytes() == before
    assert os.listdir(rows.path.parent) == ["phase.sqlite"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_takes_no_files_is_refused(rows):
    rows.path.parent.chmod(0o500)
    try:
        with pytest.raises(CannotWrite, match="You may not write to the folder"):
            rows.open().__enter__()
    finally:
        rows.path.parent.chmod(0o700)


def test_a_missing_folder_and_a_folder_of_that_name_are_refused(tmp_path):
    with pytest.raises(CannotWrite, match="no folder"):
        Rows(tmp_path / "none" / "x.sqlite").open().__enter__()
    (tmp_path / "y.sqlite").mkdir()
    with pytest.raises(CannotWrite, match="is a folder"):
        Rows(tmp_path / "y.sqlite").open().__enter__()
    with pytest.raises(FileNotFoundError, match="Run the sweep first"):
        list(Rows(tmp_path / "z.sqlite").read())
