"""Pages of results: plain HTML that opens from a folder, without a server or a network, and is
complete without its script.

A page may hold viewers of the explorer, each with a still picture. The caller passes their script
as `pieces`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape as escape_html
from typing import Any, Protocol

from attnlab.controls import escape_controls
from attnlab.render import glossary
from attnlab.render.style import HULL, INK, NOTE, PALETTE, RULE

GOOD, BAD = PALETTE[2], PALETTE[1]

CSS = f"""
:root {{ color-scheme: light; }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 70rem; padding: 1.5rem 1.25rem 4rem; color: {INK}; background: #fff;
  font: 1rem/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }}
h1 {{ font-size: 1.7rem; line-height: 1.25; margin: .4rem 0 .3rem; font-weight: 600; }}
h2 {{ font-size: 1.15rem; margin: 2.2rem 0 .6rem; font-weight: 600; }}
p {{ max-width: 46rem; margin: .5rem 0; }}
a {{ color: {PALETTE[0]}; }}
.cite, .small, figcaption {{ color: {NOTE}; font-size: .88rem; }}
figure {{ margin: 1.2rem 0; }}
figure img, video {{ max-width: 100%; height: auto; display: block; border: 1px solid {RULE}; border-radius: 4px; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .9rem; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: .45rem .7rem .45rem 0; border-bottom: 1px solid {RULE}; }}
th {{ font-weight: 600; color: {NOTE}; }}
td.number {{ font-variant-numeric: tabular-nums; white-space: nowrap; }}
.holds, .fails {{ font-weight: 600; white-space: nowrap; }}
.holds {{ color: {GOOD}; }} .fails {{ color: {BAD}; }} .open {{ color: {HULL}; font-weight: 600; white-space: nowrap; }}
.cards {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); gap: 1.25rem; margin-top: 1.2rem; }}
.card {{ border: 1px solid {RULE}; border-radius: 6px; overflow: hidden; text-decoration: none; color: inherit; display: block; }}
.card:hover, .card:focus {{ border-color: {PALETTE[0]}; }}
.card img {{ width: 100%; height: 12rem; object-fit: contain; background: #fff; padding: .5rem; display: block; }}
.card div {{ padding: .6rem .9rem .9rem; border-top: 1px solid {RULE}; }}
.card strong {{ display: block; line-height: 1.3; margin-bottom: .25rem; font-weight: 600; }}
ul.files {{ padding-left: 1.1rem; }} ul.files li {{ margin: .15rem 0; overflow-wrap: anywhere; }}
@media (max-width: 48rem) {{
  figure.scrolls::before {{ content: "Swipe the figure sideways: it is wider than this screen."; color: {NOTE};
    font-size: .88rem; display: block; margin-bottom: .3rem; }}
  figure.scrolls .wide {{ background:
    linear-gradient(to right, #fff 40%, #fff0) left / 3rem 100% no-repeat local,
    linear-gradient(to left, #fff 40%, #fff0) right / 3rem 100% no-repeat local,
    linear-gradient(to right, #0005, #0000) left / 1rem 100% no-repeat scroll,
    linear-gradient(to left, #0005, #0000) right / 1rem 100% no-repeat scroll; }}
  figure.scrolls img {{ max-width: none; width: 44rem; mix-blend-mode: multiply; }}
}}
@media (max-width: 40rem) {{
  .claims tr {{ display: block; padding: .7rem 0; border-bottom: 1px solid {RULE}; }}
  .claims thead {{ display: none; }}
  .claims td {{ display: block; border: 0; padding: .1rem 0; white-space: normal; }}
  .claims td[data-name]::before {{ content: attr(data-name) ": "; color: {NOTE}; }}
}}
@media print {{ video {{ display: none; }} body {{ max-width: none; }} }}
"""
"""On a phone wide figures scroll in their own box. A sentence says so, and a shadow marks each edge
with hidden parts.
"""


def escape(words: str) -> str:
    """Return the words so that HTML shows them literally, also in an attribute. Control characters
    become escapes.
    """
    return escape_html(escape_controls(words))


class Pieces(Protocol):
    """The HTML of viewers for the head and the end of the body of their page, from
    explorer/embed.py.
    """

    @property
    def head(self) -> str:
        """Policy and style."""

    @property
    def foot(self) -> str:
        """Records and script."""


def page(title: str, body: str, css: str = "", pieces: Pieces | None = None) -> str:
    """Return a whole document with its terms explained at the end; css is added to that of every
    page.
    """
    style, head, foot = (
        CSS + glossary.CSS + css,
        pieces.head if pieces else "",
        pieces.foot if pieces else "",
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta'
        f' charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,'
        f' initial-scale=1"><style>{style}</style>{head}</head>\n'
        f"<body>\n{glossary.add_glossary(body)}\n{foot}</body></html>\n"
    )


def put_behind(name: str | None, still: str) -> str:
    """Return a still picture (HTML) with a place for the viewer `name`. Without JavaScript only the
    picture shows.
    """
    return (
        f'<div class="attnlab-place" data-attnlab="{escape(name)}">{still}</div>' if name else still
    )


def experiment_page(record: Mapping[str, Any], live: str = "", pieces: Pieces | None = None) -> str:
    """Return the page of one experiment, for the folder of its files. live: the name of the viewer
    of its film.
    """
    parts = [
        '<p class="small"><a href="../index.html">All experiments</a></p>',
        f"<h1>{escape(record['title'])}</h1>",
        f'<p class="cite">{escape(record["cite"])}</p>',
        *(f"<p>{escape(text.strip())}</p>" for text in record["about"].split("\n\n")),
        *([] if record["size"] == "full" else ['<p class="fails">Made at reduced size.</p>']),
        *(
            [
                '<p class="fails">Left out, the half with trained weights:'
                f" {escape(record['without'])}</p>"
            ]
            if record.get("without")
            else []
        ),
        *(figure(name) for name in record["figures"]),
        *(put_behind(live, text) for text in film(record["movies"])),
        f"<h2>Claims: {count_claims(record['claims'])}</h2>",
        claim_table(record["claims"]),
    ]
    if record["verdicts"]:
        parts += ["<h2>What the theory says about the runs</h2>", verdict_table(record["verdicts"])]
    parts += ["<h2>Files</h2>", files(record)]
    return page(record["title"], "\n".join(parts), pieces=pieces)


def figure(name: str) -> str:
    """Return a figure, which opens alone when it is clicked, with a link to its vector form."""
    return (
        f'<figure class="scrolls"><div class="wide" tabindex="0"><a href="{escape(name)}.png"><img'
        f' src="{escape(name)}.png" alt="{escape(name.replace("_", " "))}"></a></div><figcaption><a'
        f' href="{escape(name)}.pdf">PDF</a></figcaption></figure>'
    )


def film(names: Sequence[str]) -> list[str]:
    """Return the movie, if there is one."""
    playable = [name for name in names if name.endswith(".mp4")]
    return [
        f'<figure><video src="{escape(name)}" controls loop muted playsinline'
        ' preload="metadata"></video>'
        f"<figcaption>{' · '.join(f'<a href={escape(each)!r}>{escape(each)}</a>' for each in names)}</figcaption></figure>"
        for name in playable
    ]


def claim_table(claims: Iterable[Mapping[str, Any]]) -> str:
    """Return the table of claims: the measured value, the allowed interval with its reason, the
    published value.
    """
    rows = []
    for claim in claims:
        mark = (
            '<span class="holds">✓ holds</span>'
            if claim["holds"]
            else '<span class="fails">✗ fails</span>'
        )
        sentence = escape(claim["text"])
        if claim["differs"]:
            sentence += f'<br><span class="small">{escape(claim["differs"])}</span>'
        because = (
            f'<br><span class="small">{escape(claim["because"])}</span>' if claim["because"] else ""
        )
        allowed = escape(claim["allowed"]) + because
        rows.append(
            f"<tr><td>{mark}</td><td>{sentence}</td><td class=number"
            f" data-name=measured>{number(claim['measured'])}</td><td"
            f" data-name=allowed>{allowed}</td><td"
            f" data-name=published>{escape(claim['published'] or '–')}</td></tr>"
        )
    head = (
        "<thead><tr><th></th><th>claim</th><th>measured</th><th>allowed, and"
        " why</th><th>published</th></tr></thead>"
    )
    return (
        '<div class="wide"><table'
        f' class="claims">{head}<tbody>{"".join(rows)}</tbody></table></div>'
    )


def verdict_table(verdicts: Iterable[Mapping[str, Any]]) -> str:
    """Return the table of verdicts. Those that do not apply are last and short."""
    marks = {"SUPPORTED": "holds", "CONTRADICTED": "fails"}
    verdicts = list(verdicts)
    applying = [one for one in verdicts if one["outcome"] != "OUT_OF_SCOPE"]
    rows = [
        "<tr><td"
        f' class="{marks.get(one["outcome"], "open")}">{escape(one["outcome"].lower().replace("_", " "))}</td>'
        f"<td>{_words(one['theorem'])} <span class=small>({escape(one['kind'])},"
        f" {_words(one['run'])})</span></td>"
        f"<td class=small>{escape(one['unmet'] or one['evidence'])}</td></tr>"
        for one in applying
    ]
    others = sorted(
        {_words(one["theorem"]) for one in verdicts} - {_words(one["theorem"]) for one in applying}
    )
    rest = f'<p class="small">Out of scope: {", ".join(others)}.</p>' if others else ""
    return f'<div class="wide"><table><tbody>{"".join(rows)}</tbody></table></div>{rest}'


def files(record: Mapping[str, Any]) -> str:
    """Return links to all files in the folder."""
    entries = [link("claims.csv", "the claims")]
    entries += [link("verdicts.csv", "the verdicts")] if record["verdicts"] else []
    entries += [link(f"specs/{name}.toml", "a Spec, for attnlab run") for name in record["specs"]]
    entries += [link(f"data/{name}.nc", "") for name in record["data"]]
    entries += [
        '<li><a href="data/">data/</a>, the same as CSV'
        + (
            f" (too long for it: {escape(', '.join(record['not_as_csv']))})"
            if record["not_as_csv"]
            else ""
        )
        + "</li>"
    ]
    return f'<ul class="files small">{"".join(entries)}</ul>'


def link(path: str, what: str) -> str:
    """A list entry."""
    return (
        f'<li><a href="{escape(path)}">{escape(path)}</a>{f", {escape(what)}" if what else ""}</li>'
    )


def gallery_page(records: Sequence[Mapping[str, Any]], left_out: Mapping[str, str]) -> str:
    """Return the page of all experiments, one card each. left_out: why others are missing."""
    cards = []
    for record in records:
        mark = "holds" if record["holds"] else "fails"
        name, picture = escape(record["name"]), escape(record["figures"][0])
        words = (
            f'<strong>{escape(record["title"])}</strong><span class="{mark}'
            f' small">{count_claims(record["claims"])}</span>'
        )
        cards.append(
            f'<a class="card" href="{name}/index.html"><img src="{name}/{picture}.png" alt=""'
            f' loading="lazy"><div>{words}</div></a>'
        )
    claims = [claim for record in records for claim in record["claims"]]
    many = "experiment" if len(records) == 1 else "experiments"
    missing = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in left_out.items())
    body = (
        "<h1>The dynamics of self-attention: every experiment</h1>"
        "<p>Tokens are particles, a layer is a time step, attention is the force. Each card is one"
        " experiment of <em>The "
        "emergence of clusters in self-attention dynamics</em> (arXiv:2305.05465) or a related one,"
        " computed here with a "
        f"known error and checked claims: {count_claims(claims)}, in {len(records)} {many}.</p>"
        f'<div class="cards">{"".join(cards)}</div>'
        + (f"<h2>Left out</h2><ul>{missing}</ul>" if missing else "")
        + '<p class="small">Made by attnlab reproduce. Everything on these pages lies in this'
        " folder.</p>"
    )
    return page("attnlab: every experiment", body)


def count_claims(claims: Sequence[Mapping[str, Any]]) -> str:
    """Return 'all 7 claims hold', or how many hold."""
    held = sum(bool(claim["holds"]) for claim in claims)
    if held == len(claims):
        return f"all {held} claims hold" if held > 1 else "the claim holds"
    return f"{held} of {len(claims)} claims hold"


def _words(name: str) -> str:
    return escape(name.replace("_", " "))


def number(value: float | None) -> str:
    """Format a number with four digits; – if it is not a number."""
    return "–" if value is None else f"{value:.4g}"
