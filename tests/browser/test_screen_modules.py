"""What the screen computes without drawing: hulls, cuts, eigenvalues under a hand, colours of
groups, limits, frames.
"""

from __future__ import annotations

import xml.etree.ElementTree as xml

import numpy as np
import pytest
from modules import module_page
from scipy.spatial import ConvexHull

import attnlab as al
from attnlab.starts import normal
from attnlab.weights import weights_families

page = module_page(
    "hull",
    "limits",
    "eigenvalues",
    "outcome",
    "derived_frames",
    "clock",
    "sweep_chart",
    "theme",
    "svg",
    "words",
    "heat",
    "axes",
)


# ---- hulls and cuts
@pytest.mark.parametrize("seed", range(5))
def test_hulls_are_those_of_scipy(page, seed):
    rng = np.random.default_rng(seed)
    flat, deep = rng.standard_normal((60, 2)), rng.uniform(-1, 1, (80, 3))
    assert sorted(page.call("hull.hullOfPlane", flat.tolist())) == sorted(
        ConvexHull(flat).vertices.tolist()
    )
    faces = page.call("hull.hullOfSpace", deep.tolist())
    expected = ConvexHull(deep)
    assert {tuple(sorted(face["corners"])) for face in faces} == {
        tuple(sorted(face)) for face in expected.simplices.tolist()
    }
    centre = deep.mean(axis=0)
    assert all(
        np.dot(face["normal"], centre) < face["offset"] for face in faces
    )  # normals look outward


def test_flat_and_tiny_sets_have_no_hull_in_space(page):
    square = [[x, y, 0.3 * x] for x in (0.0, 1.0) for y in (0.0, 1.0)]
    assert page.call("hull.hullOfSpace", square) == []
    assert page.call("hull.hullOfSpace", [[1.0, 2.0, 3.0]] * 6) == []


def test_tokens_of_one_group_count_once_in_the_hull(page):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    crowd = np.concatenate([corners + 1e-4 * k for k in range(5)])
    kept = page.call("hull.thinOut", crowd.tolist(), 0.006)
    assert kept == [0, 1, 2, 3]
    assert page.call("hull.thinOut", crowd.tolist(), 1e-9) == list(range(20))


def test_a_plane_cut_by_the_box_is_a_polygon_in_order(page):
    box = {"centre": [0, 0, 0], "half": [1, 1, 1]}
    edge = page.evaluate("1.05")
    upright = page.call("limits.cutPlane", [0.5, 0, 0], [[0, 1, 0], [0, 0, 1]], box)
    assert sorted(np.round(upright, 9).tolist()) == sorted(
        [0.5, a * edge, b * edge] for a in (-1, 1) for b in (-1, 1)
    )
    oblique = np.array(
        page.call("limits.cutPlane", [0, 0, 0], [[1, -1, 0], [1, 1, -2]], box)
    )  # a hexagon
    assert len(oblique) == 6 and np.allclose(oblique.sum(axis=1), 0)
    steps = np.diff(np.vstack([oblique, oblique[:1]]), axis=0)
    turns = np.cross(steps, np.roll(steps, -1, axis=0)) @ [1, 1, 1]
    assert (turns > 0).all() or (turns < 0).all()  # convex, in order
    assert page.call("limits.cutPlane", [5, 0, 0], [[0, 1, 0], [0, 0, 1]], box) == []


# ---- eigenvalues under a hand
def move(page, values, held, re, im=0.0):
    return page.call("eigenvalues.moveEigenvalue", values, held, re, im)


def test_eigenvalues_snap_to_the_grid_to_each_other_and_to_zero(page):
    assert move(page, [1, 0.9, -0.5], 2, -0.233) == [1, 0.9, -0.25]
    assert move(page, [1, 0.87, -0.5], 2, 0.88) == [
        1,
        0.87,
        0.87,
    ]  # onto another one, which is not on the grid
    assert move(page, [1, 0.9, -0.5], 2, 0.03) == [1, 0.9, 0]
    assert move(page, [1, 0.9, -0.5], 0, 9.0) == [1.6, 0.9, -0.5]  # not further than the picture
    assert (
        str(move(page, [1, 0.5], 1, -0.02)[1]) == "0"
    )  # and no -0, which is another word in a file


def test_two_equal_reals_become_a_pair_and_back(page):
    assert move(page, [1, 1, -0.5], 1, 0.8, 0.6) == [[0.8, 0.6], -0.5]
    assert move(page, [1, 0.9, -0.5], 1, 0.8, 0.6) == [1, 0.8, -0.5]  # one alone stays on the line
    assert move(page, [1, 1, 1], 2, 0.4, -0.7) == [[0.4, 0.7], 1]
    assert move(page, [[0.8, 0.6], -0.5], 0, 0.81, 0.1) == [0.8, 0.8, -0.5]
    assert move(page, [[0.8, 0.6], -0.5], 0, 0.3, -0.44) == [[0.3, 0.45], -0.5]


def test_families_become_a_spectrum_or_are_locked(page):
    def read(weights, V, Q=None):
        heads = [{"M": np.eye(len(v)).tolist(), "V": v} for v in V]
        matrices = {"d": len(V[0]), "heads": heads, "growth": [1.0, -0.5], "turn": [0, 0]}
        return page.call(
            "eigenvalues.readEigenvalues", {"weights": weights, "start": {}, "solve": {}}, matrices
        )

    diagonal, full = [[1.0, 0.0], [0.0, -0.5]], [[1.0, 0.3], [0.0, -0.5]]
    assert read({"family": "given", "V": diagonal}, [diagonal]) == {
        "values": [1.0, -0.5],
        "lock": "",
    }
    assert read({"family": "identity", "d": 2}, [diagonal])["lock"] == ""
    assert "cannot be dragged" in read({"family": "given", "V": full}, [full])["lock"]
    assert (
        "cannot be dragged"
        in read({"family": "given", "V": diagonal, "Q": full}, [diagonal])["lock"]
    )
    assert (
        "2 heads"
        in read({"family": "given", "V": [diagonal, diagonal]}, [diagonal, diagonal])["lock"]
    )
    spec = {"weights": {"family": "identity", "d": 2}, "start": {"n": 3}, "solve": {}}
    changed = page.call("eigenvalues.writeEigenvalues", spec, [1, 0.5])
    assert changed["weights"] == {
        "family": "spectrum",
        "eigenvalues": [1, 0.5],
        "basis": "identity",
    }
    assert changed["start"] == {"n": 3}


# ---- groups and limits
def test_groups_keep_their_colours_when_labels_are_renumbered(page):
    keep = (
        "(ranks, colours) => Array.from(outcome.keepColours(Int32Array.from(ranks), colours &&"
        " Int32Array.from(colours)))"
    )
    old = [0, 0, 0, 1, 1, 2]
    assert page.call(keep, [1, 1, 1, 0, 0, 2], old) == old  # only the numbers changed
    assert page.call(keep, [0, 0, 0, 1, 1, 1], old) == [0, 0, 0, 1, 1, 1]  # group 2 joined group 1
    assert page.call(keep, [0, 0, 1, 2, 2, 3], old) == [
        0,
        0,
        3,
        1,
        1,
        2,
    ]  # a new group gets a new colour
    assert (
        page.call(keep, [2, 0, 1], None) == page.call(keep, [2, 0, 1], [-1, -1, -1]) == [2, 0, 1]
    )  # -1: not known before
    assert page.call("labels => Array.from(outcome.rankGroups(labels))", [7, 3, 3, 9, 3, 9]) == [
        2,
        0,
        0,
        1,
        0,
        1,
    ]


def recording_of(n, d, growth, **more):
    base = {
        "n": n,
        "d": d,
        "T": 1,
        "growth": growth,
        "geometry": "euclidean",
        "basis": np.eye(d).tolist(),
        "estimate": None,
    }
    return base | more


START = {"law": "uniform_cube", "n": 3, "d": 2, "rng": 0}
SPEC = {"weights": {"family": "identity", "d": 2}, "start": START, "solve": {"t_end": 1}}
ANSWER = {"labels": [0, 1, 0], "leaders": [0, 1, 0], "count": 2, "points": [[1, 2], [3, 4]]}
LIMIT = ANSWER | {
    "spec": SPEC,
    "grade": "exact",
    "t": 4,
    "lastEvent": None,
    "events": 0,
    "error": 1e-9,
    "certificate": "",
    "reason": "proved",
}


def find(page, limits, spec=SPEC, **more):
    same = "(a, b) => JSON.stringify(a) === JSON.stringify(b)"
    return page.call(
        f"(limits, spec, recording) => outcome.findOutcome(limits, spec, recording, {same})",
        limits,
        spec,
        recording_of(3, 2, [1, 1], **more),
    )


def test_a_certified_limit_holds_for_its_own_spec_only(page):
    assert find(page, [LIMIT])["kind"] == "certified"
    other = {**SPEC, "start": {**SPEC["start"], "moved": {"1": [0.5, 0.5]}}}
    assert find(page, [LIMIT], other)["kind"] == "open"
    estimate = ANSWER | {"holds": True, "why": "settled"}
    assert find(page, [LIMIT], other, estimate=estimate)["kind"] == "estimated"
    unsettled = estimate | {"holds": False, "why": "token 2 may still change"}
    assert find(page, [], other, estimate=unsettled)["why"].startswith("token 2")


@pytest.mark.parametrize("spoil", [
    {"labels": [0, 1]}, {"labels": [0, 2, 0]}, {"labels": [0, 1, 0.5]}, {"points": [[1, 2], [3, None]]}, {"points": [[1], [3]]},
    {"grade": "undecided"}, {"leaders": [0, 1, 7]}, {"points": None},
])  # fmt: skip
def test_a_spoiled_limit_is_not_shown(page, spoil):
    assert find(page, [{**LIMIT, **spoil}])["kind"] == "open"


def test_tokens_at_infinity_stand_on_their_limit_and_stay_where_they_are_along_it(page):
    basis = np.array([[1.0, 1.0], [0.0, 1.0]])  # the second direction decays, obliquely
    last = np.array([[2.0, 1.0], [-1.0, 0.5]])
    call = """(recording, inverse) => { recording.frames = { limit: Float32Array.from(recording.last) };
        return Array.from(outcome.placeAtInfinity({ points: [[3, 0], [-2, 0]], labels: [0, 1], isPlaces: false }, recording,
        inverse)); }"""
    padded = np.concatenate([last, np.zeros((2, 1))], axis=1)
    recording = recording_of(2, 2, [1.0, -0.5], basis=basis.tolist(), last=padded.ravel().tolist())
    found = np.array(page.call(call, recording, np.linalg.inv(basis).tolist())).reshape(2, 3)[:, :2]
    along = last @ np.linalg.inv(basis).T  # coordinates in the basis
    assert np.allclose(found, [[3, 0], [-2, 0]] + along[:, 1:] * basis[:, 1], atol=1e-6)


# ---- frames
def test_x_and_z_come_back_from_the_limit_frame(page):
    run = al.simulate(
        weights_families["spectrum"](eigenvalues=[[0.4, 0.9], -0.3], basis="random", rng=2),
        normal(5, 3, rng=1),
        t_end=2.0,
        times=[0.0, 0.7, 2.0],
        rtol=1e-10,
    )
    basis, growth, turn = run.basis, run.growth, run.turn
    own = run.x @ np.linalg.inv(basis).T
    own = np.where(growth > 0, own * np.exp(-np.maximum(growth, 0) * run.times[:, None, None]), own)
    for k, b in enumerate(turn):
        if b and growth[k] > 0:  # turn a growing pair back
            cos, sin = np.cos(b * run.times)[:, None], np.sin(b * run.times)[:, None]
            u, v = own[..., k].copy(), own[..., k + 1].copy()
            own[..., k], own[..., k + 1] = cos * u - sin * v, sin * u + cos * v
    limit = own @ basis.T
    call = """(frame, limit, more, inverse) => Array.from(derived_frames.deriveFrames(
        { ...more, times: Float64Array.from(more.times), frames: { limit: Float32Array.from(limit) } }, frame, inverse))"""
    more = {
        "n": 5,
        "d": 3,
        "T": 3,
        "geometry": "euclidean",
        "times": run.times.tolist(),
        "basis": basis.tolist(),
        "growth": growth.tolist(),
        "turn": turn.tolist(),
    }
    for frame, expected in (("x", run.x), ("z", run.z)):
        found = np.array(
            page.call(call, frame, limit.ravel().tolist(), more, np.linalg.inv(basis).tolist())
        ).reshape(3, 5, 3)
        assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
        assert np.abs(limit - expected).max() > 0.01 * np.abs(expected).max()  # the frames differ


# ---- charts
def test_the_clock_ends_at_infinity(page):
    assert (
        page.evaluate("clock.shareOf(Infinity, 2)") == 1
        and page.evaluate("clock.shareOf(2, 2)") == 0.5
    )
    assert (
        page.evaluate("clock.timeOf(1, 2) === Infinity")
        and page.evaluate("clock.timeOf(0.75, 2)") == 6
    )
    assert page.evaluate("clock.timeOf(-0.2, 2)") == 0


def test_runs_of_a_sweep_that_agree_are_one_dot_with_all_seeds(page):
    runs = [(2, True), (3, False), (2, True), (2, False)]
    points = [
        {"value": 1, "rng": rng, "count": count, "settled": settled}
        for rng, (count, settled) in enumerate(runs)
    ]
    assert page.call("sweep_chart.gatherDots", points) == [
        {"value": 1, "count": 2, "settled": True, "rngs": [0, 2]},
        {"value": 1, "count": 2, "settled": False, "rngs": [3]},
        {"value": 1, "count": 3, "settled": False, "rngs": [1]},
    ]
    assert {0, 1} <= set(
        page.call("sweep_chart.valuesOf", "weights.eigenvalues.1")
    )  # where theorems begin and end


def test_many_tokens_become_blocks_of_groups(page):
    n, rng = 260, np.random.default_rng(0)
    P = rng.random((n, n))
    P /= P.sum(axis=1, keepdims=True)
    colours = rng.integers(0, 3, n)
    order = np.argsort(colours, kind="stable")
    call = """(P, n, order, colours) => { const c = heat.makeCells({ P: Float32Array.from(P), n, order,
        colours: Int32Array.from(colours) });
        return { size: c.size, values: Array.from(c.values), starts: c.starts }; }"""
    cells = page.call(call, P.ravel().tolist(), n, order.tolist(), colours.tolist())
    expected = [
        [P[colours == a][:, colours == b].sum(axis=1).mean() for b in range(3)] for a in range(3)
    ]
    assert cells["size"] == 3 and np.allclose(
        np.reshape(cells["values"], (3, 3)), expected, atol=1e-5
    )
    assert cells["starts"] == [0, *np.cumsum(np.bincount(colours)).tolist()]


def test_marks_of_groups_differ_in_colour_or_shape(page):
    mark = "(g) => [theme.colourOf(theme.THEMES.light, g), theme.shapeOf(g, false)].join()"
    marks = page.evaluate(f"[...Array(36).keys()].map({mark})")
    assert len(set(marks)) == 36
    alone = page.evaluate("[...Array(6).keys()].map((g) => theme.shapeOf(g, true))")
    assert sorted(alone) == list(range(6))  # without colours: a shape for each of the first six
    both = page.evaluate("[...Array(36).keys()].map((g) => [g % 6, theme.shapeOf(g, true)].join())")
    assert len(set(both)) == 36


def test_the_pen_of_svg_writes_what_it_is_told(page):
    text = page.evaluate(
        """(() => { const g = new svg.SvgPen(40, 30); g.fillStyle = '#ff0000'; g.beginPath(); g.arc(10, 10,
        5, 0, 7); g.fill();
        g.save(); g.beginPath(); g.rect(0, 0, 20, 20); g.clip(); g.globalAlpha = 0.5; g.setLineDash([3, 2]); g.beginPath();
        g.moveTo(1, 2);
        g.lineTo(3, 4); g.stroke(); g.restore(); g.font = '600 11px Inter, sans-serif'; g.fillText('a < b & "c"', 5, 6);
        return g.toString(); })()"""
    )
    root = xml.fromstring(text)
    tags = [element.tag.rpartition("}")[2] for element in root]
    assert tags == ["defs", "path", "path", "text"] and root.get("viewBox") == "0 0 40 30"
    fill, stroke, words = list(root)[1:]
    assert fill.get("fill") == "#ff0000" and fill.get("clip-path") is None
    assert stroke.get("stroke-dasharray") == "3 2" and stroke.get("stroke-opacity") == "0.5"
    assert stroke.get("clip-path") == "url(#clip0)"
    assert (
        words.text == 'a < b & "c"'
        and words.get("font-weight") == "600"
        and words.get("clip-path") is None
    )


@pytest.mark.parametrize(
    "share, text", [(0.98, "98 %"), (0.999, "> 99 %"), (1.0, "100 %"), (0.004, "< 1 %")]
)
def test_a_row_of_attention_in_words(page, share, text):
    row = [0.0] * 6
    row[4] = share
    assert page.call("words.describeRow", {}, 2, row) == f"token 2 attends to token 4 ({text})"
    row[2], row[4] = share, 0.0
    words = ["a", "b", " bank", "d", "e", "f"]
    assert (
        page.call("words.describeRow", {"words": words}, 2, row)
        == f"“bank” attends to itself ({text})"
    )


@pytest.mark.parametrize(
    ("centre", "half"),
    [
        (0.0, 5.2),
        (0.0, 5.0),
        (0.0, 2.6),
        (0.0, 12.6),
        (0.0, 9.26e4),
        (-6.2, 1.3),
        (3e-4, 1e-4),
        (1e6, 3.0),
    ],
)
def test_ticks_are_round_numbers(page, centre, half):
    ticks = page.call("axes.findTicks", centre, half)
    assert 3 <= len(ticks) <= 6 and all(abs(tick - centre) <= half * (1 + 1e-9) for tick in ticks)
    step = (ticks[-1] - ticks[0]) / (len(ticks) - 1)
    assert f"{step:.3e}"[:5] in ("1.000", "2.000", "2.500", "5.000")
    assert any(
        0 < abs(tick - centre) < 0.9 * half / 1.04 for tick in ticks if tick
    )  # some have room for a label


def test_many_tokens_whose_groups_are_not_known_are_no_black_square(page):
    """Blocks of some tokens each: the share of a block is what its rows give to its columns, and
    rows still sum to 1.
    """
    n = 300
    cells = page.call(
        """(n) => { const { size, values, starts } = heat.makeCells({ P: new Float32Array(n * n).fill(1 / n), n,
        order: Array.from({ length: n }, (_, i) => i), colours: new Int32Array(n).fill(-1) });
        return { size, starts, values: Array.from(values) }; }""",
        n,
    )
    values = np.array(cells["values"]).reshape(cells["size"], -1)
    assert cells["size"] == 60 and cells["starts"][-1] == n
    np.testing.assert_allclose(values.sum(axis=1), 1.0, atol=1e-5)
    assert values.max() < 0.02
