"""attnlab sentence: tables, words, files, figures, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.render.sentence_figure import draw_iteration, draw_sentence
from attnlab.render.sentence_planes import _common_plane, draw_words
from attnlab.render.word_labels import label_points, spread_out
from command_line import attnlab, refused
from tiny_models import TOKENIZER

IDS = "3,1,4,1,5,9,2"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny models in folders; bert has a tokenizer of six words."""
    made = {}
    for family in ("bert", "albert", "llama"):
        made[family] = tiny_models.write_folder(
            tmp_path_factory.mktemp(family), *getattr(tiny_models, family)()
        )
    (made["bert"] / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    return made


@pytest.fixture(scope="module")
def data(folders):
    return al.models.sentence(al.models.load(folders["bert"]), "The cat sat")


def test_tables_and_words(folders):
    shown = attnlab("sentence", folders["bert"], "The cat sat").stdout
    for word in (
        "5 tokens after each of 2 layers",
        "cosine",
        "clusters",
        "entropy",
        "leaders",
        "[CLS]",
        "real stack",
        "no feed-forward",
        "idealised model",
        "random weights",
        "The real stack takes 5 tokens",
        "Untrained weights end",
        "leads in",
    ):
        assert word in shown, word
    assert "no mask" not in shown and "repeated" not in shown  # bert has no mask, and no tied layer
    assert shown.count("one layer tied") >= 2  # at the depth of the model, and at four times that


def test_the_numbers_are_those_of_the_function(folders, data):
    record = json.loads(attnlab("sentence", folders["bert"], "The cat sat", "--json").stdout)
    assert record["words"] == data["word"].values.tolist() and record["is_special"] == [
        True,
        False,
        False,
        False,
        True,
    ]
    rows = {(row["variant"], row["step"]): row for row in record["variants"]}
    for name in ("real", "twin", "random"):
        for step in range(3):
            one = data.sel(variant=name).isel(step=step)
            assert rows[name, step]["cosine"] == pytest.approx(float(one["cosine"]), rel=1e-6)
            assert rows[name, step]["turn"] == pytest.approx(float(one["turn"]), abs=1e-6)
    leader = int(data["leader"].sel(variant="real").values[0])
    assert rows["real", 0]["leader_word"] == str(data["word"].values[leader])
    assert "iteration" not in record and any("Untrained weights" in line for line in record["said"])
    options = ("--json", "--no-special", "--only", "random", "--rng", 5)
    other = json.loads(attnlab("sentence", folders["bert"], "The cat sat", *options).stdout)
    assert other["special"] == 0 and len(other["words"]) == 3
    assert {row["variant"] for row in other["variants"]} == {"real", "random"}


def test_a_tied_model_is_iterated(folders):
    shown = attnlab(
        "sentence", folders["albert"], "--ids", IDS, "--only", "twin", "--times", 30
    ).stdout
    assert "Its layer, repeated: " in shown
    record = json.loads(
        attnlab(
            "sentence", folders["albert"], "--ids", IDS, "--only", "twin", "--times", 30, "--json"
        ).stdout
    )
    answer = al.models.iterate(
        al.models.load(folders["albert"]), ids=[int(one) for one in IDS.split(",")], times=30
    ).attrs
    assert (
        record["iteration"]["answer"] == answer["answer"]
        and record["iteration"]["outcome"] == answer["outcome"]
    )


def test_a_causal_model_has_a_mask_to_lose(folders):
    assert (
        "no mask" in attnlab("sentence", folders["llama"], "--ids", IDS, "--only", "no_mask").stdout
    )


@pytest.mark.slow
def test_files_are_written(folders, tmp_path):
    import pandas
    import xarray

    names = {
        option: tmp_path / name
        for option, name in (
            ("-o", "a.png"),
            ("--words", "b.pdf"),
            ("--iteration", "c.svg"),
            ("--csv", "d.csv"),
            ("--nc", "e.nc"),
        )
    }
    said = attnlab(
        "sentence",
        folders["bert"],
        "The cat sat",
        "--layer",
        1,
        "--times",
        20,
        *(part for pair in names.items() for part in pair),
    ).stdout
    assert "Layer 1, repeated: " in said
    for path in names.values():
        assert path.stat().st_size > 500 and f"written to {path}." in said.replace("\n", "")
    frame = pandas.read_csv(names["--csv"])
    assert (
        len(frame) == 3 * 8 + 9 and frame["cosine"].notna().all()
    )  # eight stacks of two layers, one of eight
    with xarray.open_dataset(names["--nc"]) as back:
        assert back.sizes["token"] == 5 and back.attrs["tied_layer"] == 1
    assert "exists already" in refused(
        "sentence", folders["bert"], "The cat sat", "--csv", names["--csv"]
    )
    attnlab(
        "sentence", folders["bert"], "The cat", "--only", "real", "--csv", names["--csv"], "--force"
    )
    assert len(pandas.read_csv(names["--csv"])) == 3


def test_unknown_words_are_counted_and_told(folders):
    said = attnlab("sentence", folders["bert"], "The 猫 sat ☃", "--only", "real").stdout
    assert "2 of 6 tokens are characters or words that the tokenizer does not know" in said


def test_bad_input_is_one_sentence(folders, tmp_path):
    bert = folders["bert"]
    assert "The sentence is empty" in refused("sentence", bert, "   ")
    assert "Give a sentence in quotation marks, or --ids" in refused("sentence", bert)
    assert "not both" in refused("sentence", bert, "The cat", "--ids", "1,2")
    assert "places for 10 tokens, got 14" in refused("sentence", bert, "the cat " * 6)
    assert "at least two tokens" in refused("sentence", bert, "cat", "--no-special")
    assert "at least two tokens" in refused("sentence", bert, "--ids", "4")
    assert "must name two token ids" in refused("sentence", bert, "--ids", "")
    assert "--ids must be whole numbers" in refused("sentence", bert, "--ids", "1,x")
    assert "Token ids must be 0 to 18" in refused("sentence", bert, "--ids", "1,99")
    said = refused("sentence", folders["albert"], "The cat")
    assert "has no tokenizer" in said and "--ids 1,2,3" in said
    assert "Did you mean 'twin'" in refused("sentence", bert, "The cat", "--only", "twinn")
    assert "cosine must be between" in refused("sentence", bert, "The cat", "--cosine", "1.5")
    assert "There is no layer 7" in refused("sentence", bert, "The cat", "--layer", "7")
    assert "must end in .csv" in refused("sentence", bert, "The cat", "--csv", tmp_path / "a.txt")
    assert "must end in .nc" in refused("sentence", bert, "The cat", "--nc", tmp_path / "a.txt")
    assert "must end in .png" in refused("sentence", bert, "The cat", "-o", tmp_path / "a.txt")
    assert "There is no folder" in refused(
        "sentence", bert, "The cat", "-o", tmp_path / "none" / "a.png"
    )
    assert "the same file" in refused(
        "sentence", bert, "The cat", "-o", tmp_path / "a.png", "--words", tmp_path / "a.png"
    )
    assert "Add twin to --only" in refused(
        "sentence", bert, "The cat", "--only", "random", "--words", tmp_path / "a.png"
    )
    assert not list(tmp_path.iterdir())


def texts(figure):
    return [
        text.get_text()
        for half in (figure, *figure.subfigs)
        for axes in half.axes
        for text in (
            *axes.texts,
            *axes.get_xticklabels(),
            *axes.get_yticklabels(),
            axes.title,
            *(child for part in axes.child_axes for child in part.get_yticklabels()),
        )
    ]


def test_the_overview_names_variants_words_and_leaders(data):
    figure = draw_sentence(data)
    figure.draw_without_rendering()
    found = texts(figure)
    assert {
        "[CLS]",
        "the",
        "cat",
        "sat",
        "[SEP]",
        "real stack",
        "idealised model",
        "random weights",
    } <= set(found)
    shares = data["received"].sel(variant="real").values[0]
    assert f"{data['word'].values[shares.argmax()]}  {shares.max():.0%}" in found
    lines = {line.get_label(): line.get_ydata() for line in figure.subfigs[0].axes[0].lines}
    np.testing.assert_array_equal(lines["twin"], data["cosine"].sel(variant="twin").values[:3])
    assert "no_mask" not in lines and "tied" in lines


def test_the_planes_label_every_word_once(data):
    figure = draw_words(data)
    assert len(figure.axes) == 6
    for axes in figure.axes:
        assert sorted(text.get_text() for text in axes.texts) == sorted(
            data["word"].values.tolist()
        )
    with pytest.raises(ValueError, match="no variant 'twin'"):
        draw_words(data.sel(variant=["real"]))


def test_a_plane_keeps_distances_of_flat_sets():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(9, 2)))[0]
    sets = [rng.normal(size=(5, 2)) @ basis.T + 3.0 for _ in range(2)]
    flat, shares = _common_plane(sets)
    assert shares == pytest.approx([1.0, 1.0])
    for one, other in zip(flat, sets, strict=True):
        np.testing.assert_allclose(
            np.linalg.norm(one[0] - one[1:], axis=1), np.linalg.norm(other[0] - other[1:], axis=1)
        )


def test_the_iteration_is_drawn_with_its_answer(folders):
    data = al.models.iterate(al.models.load(folders["bert"]), "The cat sat", times=25)
    figure = draw_iteration(data)
    figure.draw_without_rendering()
    assert data.attrs["answer"].split(".")[0][:30] in figure._supxlabel.get_text().replace(
        "\n", " "
    )
    assert {"[CLS]", "cat", "[SEP]"} <= set(texts(figure))


def test_labels_keep_apart_and_in_order():
    places = [0.5, 0.51, 0.52, 0.0, 1.0, 0.99]
    moved = spread_out(places, 0.0, 1.0, 0.1)
    assert (np.diff(np.sort(moved)) > 0.1 - 1e-9).all() and np.argsort(
        moved
    ).tolist() == np.argsort(places).tolist()
    assert min(moved) >= -1e-9 and max(moved) <= 1 + 1e-9
    assert (
        spread_out([0.2, 0.8], 0.0, 1.0, 0.1) == pytest.approx([0.2, 0.8])
        and spread_out([], 0, 1, 0.1) == []
    )
    assert np.diff(np.sort(spread_out([0.5] * 30, 0.0, 1.0, 0.1))) == pytest.approx(1 / 29)


def test_words_do_not_cover_each_other():
    from matplotlib.text import Text

    from attnlab.render.style import new_figure

    figure = new_figure(4, 4)
    axes = figure.subplots()
    rng = np.random.default_rng(1)
    points = rng.normal(scale=0.15, size=(14, 2))
    axes.set(xlim=(-1, 1), ylim=(-1, 1))
    figure.draw_without_rendering()
    label_points(axes, points, ["because"] * 14, ["black"] * 14)
    figure.draw_without_rendering()
    boxes = [
        Text.get_window_extent(text) for text in axes.texts
    ]  # the words alone, without their hair lines
    pairs = [(i, j) for i in range(14) for j in range(i) if boxes[i].overlaps(boxes[j])]
    assert not pairs


def test_an_interrupted_idealised_model_is_an_interruption(folders, monkeypatch):
    from attnlab.types import RunInterrupted

    def interrupted(*args, **options):
        raise RunInterrupted("Ctrl-C", None)

    monkeypatch.setattr("attnlab.engine.simulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        al.models.sentence(al.models.load(folders["bert"]), "The cat sat", only=["twin"])


def test_tokens_that_come_apart_are_not_said_to_join(folders, data):
    from attnlab.models import findings

    shown = data.copy(deep=True)
    shown["clusters"].values[0, 0], shown["clusters"].values[0, 2] = 2, 4
    assert "some groups split" in findings(shown)[0]
    shown["clusters"].values[0, 0] = 5
    assert "some of them join" in findings(shown)[0]


def test_figures_come_from_python_too(folders, data):
    model = al.models.load(folders["albert"])
    assert al.plot(al.models.iterate(model, ids=[1, 2, 3], times=5)).axes
    assert al.plot(
        al.models.flow(model, ids=[1, 2, 3], t_end=0.1, saves=3, limit=False, check=False)
    ).axes
    with pytest.raises(ValueError, match="head applies only to figures of a run"):
        al.plot(data, head=1)
    with pytest.raises(TypeError, match="models.sentence"):
        al.plot({"a": 1})
    assert {"sentence", "flow", "iterate", "spectra"} <= set(dir(al.models))


def test_the_note_of_the_figure_names_only_lines_that_are_drawn(folders):
    model = al.models.load(folders["bert"])
    for only, says in (
        ([], None),
        (["twin"], None),
        (["random"], "Grey: the null, random weights of the trained sizes (dashed). "),
        (["untrained"], "Grey: the null, untrained weights (dotted). "),
        (
            ["random", "untrained"],
            "Grey: the nulls, random weights of the trained sizes (dashed) and untrained ones"
            " (dotted). ",
        ),
    ):
        caption = draw_sentence(al.models.sentence(model, "The cat sat", only=only)).caption
        assert (says in caption) if says else ("Grey" not in caption and "dotted" not in caption)
        assert "One layer tied" not in caption
