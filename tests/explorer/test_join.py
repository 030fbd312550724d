"""The joiner of ES modules: what it makes runs, and what it does not understand is refused with
file and line.
"""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from attnlab.explorer.join import CannotJoin, join_module, join_page, join_script
from attnlab.explorer.tighten import tighten_script, tighten_style

NODE = shutil.which("node")

MODULES = {
    "main.js": (
        """
import { double, Counter as Count, later } from './numbers.js';
import {
  shout, count,
} from './words.js';
import style from './style.css';
import worker from './worker.js?script';

/** A comment with a word at the beginning of a line:
import { nothing } from './nowhere.js';
*/
export const name = 'main';   // stays
const text = `a line

export const inside = 'a template';
// no comment`;
export function result() {
  const made = new Count();
  const options = { export: 1,
    import: 2 };
  return [double(4), made.next(), made.next(), shout('hm'), style, typeof later, text, options.import,
    (function () { return this === undefined; })(),
    worker.includes('onmessage'), ...count()];
}
"""
    ),
    "numbers.js": (
        "import { shout } from './words.js';\n/*! licence */\nexport function double(x) { return 2"
        " * x; }\nexport class Counter { constructor() { this.k = 0; } next() { return"
        " shout(String(++this.k)); } }\nexport async function later() { return 1; }\n"
    ),
    "words.js": (
        "import style from './style.css';\nlet calls = 0;\n"
        "export function shout(word) { calls += 1; return `${word}! /* ${calls} */`; }\n"
        "export const length = style.length;\nexport function* count() { yield 7; }\n"
    ),
    "style.css": "a { content: '</script>'; }\n",
    "worker.js": (
        "import { double } from './numbers.js';\nonmessage = event =>"
        " postMessage(double(event.data));\n"
    ),
}


@pytest.fixture
def folder(tmp_path):
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_joined_script_does_what_the_modules_say(folder):
    script = (
        join_script("main.js", folder=folder, expose_as="main")
        + "console.log(JSON.stringify(main.result()))"
    )
    out = subprocess.run([NODE, "-e", script], check=True, capture_output=True, text=True).stdout
    template = MODULES["main.js"].split("`")[1]
    # words.js ran once: its calls are counted across the modules that import it
    assert json.loads(out) == [
        8,
        "1! /* 1 */",
        "2! /* 2 */",
        "hm! /* 3 */",
        tighten_style(MODULES["style.css"]),
        "function",
        template,
        2,
        True,
        True,
        7,
    ]


def test_comments_are_left_out_but_licences_and_strings_stay(folder):
    script = join_script("main.js", folder=folder)
    assert (
        "A comment" not in script
        and "/*! licence */" in script
        and "// no comment`" in script
        and "// stays" not in script
    )
    assert (
        script.count("content:") == 2
    )  # once here, and once in the worker, which imports words.js too
    assert "nowhere" not in script and "globalThis" not in script
    assert script.count("\nconst module_words=") == 1 and script.index(
        "module_words="
    ) < script.index("module_numbers=")


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_a_module_and_its_worker_share_one_script(folder):
    """A worker made of the text of the module runs the worker's module, and what both need is there
    once.
    """
    module = join_module("main.js", folder=folder)
    assert module.count("function double(") == 1 and "onmessage" in module
    (folder / "joined.mjs").write_text(
        module
        + """
import vm from 'node:vm';
const said = [], global = { postMessage: (answer) => said.push(answer) };

vm.runInNewContext(`(${program})("worker.js")`, vm.createContext(global));
global.onmessage({ data: 21 });
console.log(JSON.stringify([said, program().name, program().result().slice(0, 2)]));
""",
        encoding="utf-8",
    )
    out = subprocess.run(
        [NODE, str(folder / "joined.mjs")], check=True, capture_output=True, text=True
    ).stdout
    assert json.loads(out) == [[42], "main", [8, "1! /* 1 */"]]


def test_the_module_of_a_notebook_holds_the_worker_once():
    module = join_module("afm.js")
    assert module.count("class RequestHandler") == 1 and len(module) < 1.05 * len(join_page())


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_a_page_and_its_worker_share_one_script(folder):
    (folder / "page.js").write_text(
        "import { double } from './numbers.js';\nconsole.log('page', document.title, double(2));\n"
    )
    (folder / "work.js").write_text(
        "import { double } from './numbers.js';\nconsole.log('worker', double(3));\n"
    )
    script = join_page("page.js", "work.js", folder=folder)
    assert script.count("function double(") == 1
    for before, says in (("", "worker 6"), ("globalThis.document={title:'here'};", "page here 4")):
        assert (
            subprocess.run(
                [NODE, "-e", before + script], check=True, capture_output=True, text=True
            ).stdout.strip()
            == says
        )


HARD = r"""
let a = 1 /* one */ + /** @type {any} */ (2), b = a ? .5 : a / 2 / 4;   // "quote
const regex = /[^\p{L} ;] ,'/u, other = /\/\* no comment *\//.source, url = 'http://x  //y', re = (x) => /"/.test(x);
const words = [`line ( a )
   // kept   ${ a + [`in , ( ner ) ${ {x: `}  ;`}.x }  , `][0] } ; `, "a , b", 'it\'s ; ( )', "/* no */"];
const sums = [1 + +a, 2 - -a, a++ + 1 , 3 - 1 / 2 % 5, a !== 2, -a - + - a, [ - 1 ][0], a / + 2];
function f(n) { return /a b ( c )/.test('a b c') ? n - -1 : + +n; }
if (a) { /* empty */ }
for (const [k, v] of Object.entries({ in: 1, of: 2 })) words.push(k + v);
console.log(JSON.stringify([a, b, regex.source,
 regex.test("z ,'"), sums, other, url, re('"'), words, f(1), typeof a === 'number', a < !b, a << 2]));
"""


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_tightening_does_not_change_what_a_script_does():
    both = [
        subprocess.run([NODE, "-e", text], check=True, capture_output=True, text=True).stdout
        for text in (HARD, tighten_script(HARD))
    ]
    assert both[0] == both[1] and "http://x  //y" in both[0]
    assert len(tighten_script(HARD)) < 0.95 * len(HARD) and "/* one */" not in tighten_script(HARD)


def test_styles_are_tightened():
    style = (
        "/* a */\na > b:hover ,\n.c :focus { content: '/* } */ ;';  margin: calc(1px + 2px) ;\n}\n"
        "\n@media (x) { d { e: f } }\n"
    )
    assert (
        tighten_style(style)
        == "a > b:hover ,\n.c :focus { content: '/* } */ ;';  margin: calc(1px + 2px) ;\n}\n@media"
        " (x) { d { e: f } }"
    )


@pytest.mark.parametrize("line, says", [
    ("import './words.js';", "line 3"), ("import * as W from './words.js';", "line 3"), ("import W from './words.js';", "line 3"),
    ('import { shout } from "./words.js";', "line 3"), ("import { shout } from '../words.js';", "line 3"),
    ("import { shout } from 'three';", "line 3"), ("import { shout } from './missing.js';", "no file missing.js"),
    ("import { whisper } from './words.js';", "does not export whisper. It exports shout"),
    ("import { shout and } from './words.js';", "'shout and'"),
    ("export default 3;", "line 3"), ("export let x = 3;", "line 3"), ("export { a };", "line 3"),
    ("export * from './words.js';", "line 3"),
    ("export const { a } = {};", "line 3"), ("  export const b = 1;", "line 3"), ("const m = import('./words.js');", "line 3"),
    ("const u = import.meta.url;", "line 3"), ("import { a } from './bad.js';", "circle: bad.js -> bad.js"),
    ("import source from './bad.js?script';", "circle"),
])  # fmt: skip
def test_other_forms_are_refused(folder, line, says):
    (folder / "bad.js").write_text(f"// first\n\n{line}\n")
    with pytest.raises(CannotJoin, match="bad.js") as problem:
        join_script("bad.js", folder=folder)
    assert says in str(problem.value)


def test_a_circle_is_refused(folder):
    (folder / "a.js").write_text("import { b } from './b.js';\nexport const a = 1;\n")
    (folder / "b.js").write_text("import { a } from './a.js';\nexport const b = 1;\n")
    with pytest.raises(CannotJoin, match="a.js -> b.js -> a.js"):
        join_script("a.js", folder=folder)
