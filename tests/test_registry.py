"""Things by name: taken once, found by scanning a folder, and a wrong name answers with the nearest."""

from __future__ import annotations

import sys

import pytest

from attnlab.registry import Registry, UnknownName, unknown_name


@pytest.fixture
def laws() -> Registry:
    made = Registry("start law")
    for name in ("uniform_cube", "normal", "sphere"):
        made.register(name)(name.upper())
    return made


def test_a_name_gives_what_was_registered(laws):
    assert laws["normal"] == "NORMAL"
    assert list(laws) == ["normal", "sphere", "uniform_cube"]
    assert len(laws) == 3 and "sphere" in laws and "cube" not in laws


def test_the_decorator_returns_what_it_decorates():
    def thing(): ...

    assert Registry("thing").register("a")(thing) is thing


def test_a_name_is_taken_once(laws):
    with pytest.raises(ValueError, match="start law 'normal' is registered already, by 'NORMAL'"):
        laws.register("normal")("another")
    assert laws["normal"] == "NORMAL"


def test_an_unknown_name_gets_the_nearest_and_the_list(laws):
    with pytest.raises(UnknownName) as caught:
        laws["unifrom_cube"]
    wanted = "Unknown start law 'unifrom_cube'. Did you mean 'uniform_cube'? Known: normal, sphere, uniform_cube."
    assert str(caught.value) == wanted
    assert isinstance(caught.value, LookupError) and not isinstance(caught.value, KeyError)


def test_nothing_is_suggested_where_nothing_is_near(laws):
    with pytest.raises(UnknownName) as caught:
        laws["zzz"]
    assert "Did you mean" not in str(caught.value)
    assert str(unknown_name("thing", "a", ())) == "Unknown thing 'a'. Known: none."


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A package whose files register themselves, and which is imported only when asked for a name."""
    package = tmp_path / "shapes_for_this_test"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from attnlab.registry import Registry\nshapes = Registry('shape', package='shapes_for_this_test')\n"
    )
    for name in ("circle", "square"):
        (package / f"{name}.py").write_text(f"from shapes_for_this_test import shapes\nshapes.register('{name}')(__name__)\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "shapes_for_this_test"
    for name in [name for name in sys.modules if name.startswith("shapes_for_this_test")]:
        del sys.modules[name]


@pytest.mark.parametrize("ask", [list, len, lambda shapes: "circle" in shapes, lambda shapes: shapes["circle"]])
def test_a_folder_is_scanned_when_a_name_is_first_asked_for(folder, ask):
    shapes = __import__(folder).shapes
    assert f"{folder}.circle" not in sys.modules
    ask(shapes)
    assert list(shapes) == ["circle", "square"]
    assert shapes["square"] == f"{folder}.square"


def test_a_file_that_cannot_be_imported_is_not_passed_over(folder, tmp_path):
    (tmp_path / folder / "broken.py").write_text("import a_module_that_is_not_there\n")
    shapes = __import__(folder).shapes
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        list(shapes)
