"""Join ES modules into one classic script. A page that is opened as a file can run it, and no
bundler is needed.

    join_page()                                       the script of the page and of its worker
    join_script("worker.js")                          the script of one module and of what it imports
    join_script("rng.js", expose_as="rng")            the same, and window.rng holds what rng.js exports (for tests)
    join_module("afm.js")                             an ES module that exports what afm.js exports, for notebooks

Every module becomes a function that is called once and returns the exports of the module. A module
may use only

    import { a, b as c } from './x.js';               names that x.js exports
    import text from './x.css';                       the text of a file, as a string
    import source from './worker.js?script';          the joined script of a module, as a string: a worker is made of it
    export function f, export function* f, export async function f, export class C, export const c

each at the beginning of a line. Anything else is refused with file and line. Comments are left out
of the script, except those that open with `/*!` (licences).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attnlab.explorer.tighten import blank_texts, tighten_script, tighten_style

WEB = Path(__file__).parent / "web"

NAMED_IMPORT = re.compile(
    r"import\s*\{(?P<names>[^{}]*)\}\s*from\s*'\./(?P<file>[\w.-]+\.js)';?[ \t]*$", re.MULTILINE
)
TEXT_IMPORT = re.compile(
    r"import\s+(?P<name>[A-Za-z_$][\w$]*)\s+from\s*'\./(?P<file>[\w.-]+\.(?:css|js\?script))';?["
    r" \t]*$",
    re.MULTILINE,
)
EXPORT = re.compile(
    r"export\s+(?=(?:async\s+function|function\*?|class|const)\s+(?P<name>[A-Za-z_$][\w$]*))"
)
IMPORTED_NAME = re.compile(r"(?P<name>[A-Za-z_$][\w$]*)(?:\s+as\s+(?P<local>[A-Za-z_$][\w$]*))?")
STATEMENT = re.compile(r"^[ \t]*(?:import|export)\b(?![ \t]*[:=(.])", re.MULTILINE)
DYNAMIC = re.compile(r"(?<![.\w$])import\s*[(.]")
FORMS = (
    "Only import { a, b as c } from './x.js'; import text from './x.css'; import source from"
    " './x.js?script'; and export function, function*, async function, class or const are"
    " understood, each at the beginning of a line."
)


class CannotJoin(ValueError):
    """A module that cannot be joined. The message names the file and the line."""


@dataclass(frozen=True)
class Module:
    """One module: its code without imports, exports and comment lines, and its exported names (none
    for a text).
    """

    code: str
    exports: tuple[str, ...] | None


def join_script(entry: str, *, folder: Path = WEB, expose_as: str | None = None) -> str:
    """Return one classic script that runs the module `entry` of `folder` and all its imports, each
    once.

    expose_as: the name of a global variable for the exports of `entry`.
    """
    modules: dict[str, Module] = {}
    _read_module(entry, folder, modules, above=())
    run = f"{_variable(entry)}();"
    return _write_script(modules, run if expose_as is None else f"globalThis.{expose_as}={run}")


def join_page(page: str = "page_main.js", worker: str = "worker.js", *, folder: Path = WEB) -> str:
    """Return one classic script that runs the module `page` in a page, and the module `worker` in a
    worker.

    A page starts its worker from its own text, document.currentScript.textContent, so shared code
    is there only once.
    """
    modules: dict[str, Module] = {}
    for entry in (page, worker):
        _read_module(entry, folder, modules, above=())
    return _write_script(
        modules, f"typeof document==='undefined'?{_variable(worker)}():{_variable(page)}();"
    )


def join_module(entry: str, *, folder: Path = WEB) -> str:
    """Return one ES module whose default export is the table of the exports of `entry`, as
    anywidget needs it.

    A script that it imports as text is made from the text of the whole, so shared code is there
    only once.
    """
    modules: dict[str, Module] = {}
    _read_module(entry, folder, modules, above=())
    started = {name: name.removesuffix("?script") for name in modules if name.endswith("?script")}
    for name, worker in started.items():
        del modules[name]
        _read_module(worker, folder, modules, above=())
    texts = [
        f"const {_variable(name)}=()=>`(${{program}})({json.dumps(worker)})`;"
        for name, worker in started.items()
    ]
    choice = "".join(
        f"start==={json.dumps(worker)}?{_variable(worker)}():" for worker in started.values()
    )
    lines = [
        "const program=start=>{",
        *_write_modules(modules),
        *texts,
        f"return {choice}{_variable(entry)}();",
        "};",
        "export default program();",
        "",
    ]
    return "\n".join(lines)


def _write_script(modules: dict[str, Module], run: str) -> str:
    """Return the script of some modules."""
    return "\n".join(["(()=>{", *_write_modules(modules), run, "})();", ""])


def _write_modules(modules: dict[str, Module]) -> list[str]:
    """Return the statements of some modules. Each is a function that runs when its exports are
    needed for the first time.
    """
    once = "const once=make=>{let made;return()=>made??=make();};"
    return [
        "'use strict';",
        once,
        *(_write_module(name, module) for name, module in modules.items()),
    ]


def _write_module(name: str, module: Module) -> str:
    """Return the statement that makes the variable of a module: a function that returns its
    exports, or the text.
    """
    if module.exports is None:
        return f"const {_variable(name)}=()=>{json.dumps(module.code)};"
    return (
        "const"
        f" {_variable(name)}=once(()=>{{\n{module.code}\nreturn{{{','.join(module.exports)}}};\n}});"
    )


def _read_module(
    name: str, folder: Path, modules: dict[str, Module], above: tuple[str, ...]
) -> Module:
    """Read a module and its imports into `modules`, in an order in which they can run. `above`
    imports the module.
    """
    if name in above:
        raise CannotJoin(
            "Modules must not import each other in a circle:"
            f" {' -> '.join([*above[above.index(name) :], name])}."
        )
    if name in modules:
        return modules[name]
    source = _read_text(folder / name, above)
    blank = blank_texts(source)
    exports: list[str] = []
    parts, end = [], 0
    for start, match in _statements(name, source, blank):
        if match.re is EXPORT:
            exports.append(match["name"])
            text = ""
        elif match.re is TEXT_IMPORT:
            modules[match["file"]] = Module(_load_text(match["file"], folder, (*above, name)), None)
            text = f"const {match['name']} = {_variable(match['file'])}();"
        else:
            other = _read_module(match["file"], folder, modules, (*above, name))
            text = _destructure(
                match["names"], match["file"], other, f"{name}, line {_line(source, start)}"
            )
        parts += [source[end:start], text]
        end = match.end()
    code = "".join([*parts, source[end:]])
    modules[name] = Module(tighten_script(code), tuple(exports))
    return modules[name]


def _statements(name: str, source: str, blank: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the place of each import or export of a module, and its match. Refuse any other
    form.
    """
    found = DYNAMIC.search(blank)
    if found:
        raise CannotJoin(
            f"{name}, line {_line(source, found.start())}: import() and import.meta are not"
            f" understood. {FORMS}"
        )
    for statement in STATEMENT.finditer(blank):
        start = statement.start()
        match = next(
            (m for form in (NAMED_IMPORT, TEXT_IMPORT, EXPORT) if (m := form.match(source, start))),
            None,
        )
        if match is None:
            line = source[start:].split("\n", 1)[0].strip()
            raise CannotJoin(
                f"{name}, line {_line(source, start)}: {line!r} is not understood. {FORMS}"
            )
        yield start, match


def _destructure(names: str, file: str, other: Module, where: str) -> str:
    """Return the line that unpacks the imported names of a module."""
    pairs = []
    for word in (word.strip() for word in names.split(",")):
        if not word:
            continue  # after the last comma
        match = IMPORTED_NAME.fullmatch(word)
        if match is None:
            raise CannotJoin(f"{where}: {word!r} is not a name that can be imported. {FORMS}")
        exports = other.exports or ()
        if match["name"] not in exports:
            known = ", ".join(exports) or "nothing"
            raise CannotJoin(
                f"{where}: {file} does not export {match['name']}. It exports {known}."
            )
        pairs.append(
            match["name"] if match["local"] is None else f"{match['name']}: {match['local']}"
        )
    return f"const {{ {', '.join(pairs)} }} = {_variable(file)}();"


def _load_text(file: str, folder: Path, above: tuple[str, ...]) -> str:
    """Return the value of `import text from`: a style without its comments, or for `x.js?script`
    the joined script.
    """
    if file.endswith("?script"):
        entry = file.removesuffix("?script")
        if entry in above:
            raise CannotJoin(
                f"Modules must not import each other in a circle: {' -> '.join([*above, file])}."
            )
        return join_script(entry, folder=folder)
    return tighten_style(_read_text(folder / file, above))


def _read_text(path: Path, above: tuple[str, ...]) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        by = f", which {above[-1]} imports" if above else ""
        raise CannotJoin(f"There is no file {path.name}{by}, in {path.parent}.") from None


def _variable(name: str) -> str:
    """Return the name of the variable that holds a module: page_main.js -> module_page_main."""
    return "module_" + re.sub(r"\W", "_", name.removesuffix(".js"))


def _line(source: str, position: int) -> int:
    return source.count("\n", 0, position) + 1
