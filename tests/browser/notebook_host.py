"""A host for al.Explorer without Jupyter: a page with a model as anywidget gives it, and the wire
between it and Python.

The page keeps what it says to Python, and Python keeps what it says to the page; `Notebook.carry`
hands both over. So a test sees what goes over the wire, and nothing goes over it unseen.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import comm
from screen import Screen
from tab import Tab

from attnlab.explorer.widget import Explorer

HOST = """<!DOCTYPE html><meta charset="utf-8"><title>notebook</title>
<style>button { background: red !important; font-size: 40px; } * { letter-spacing: 3px; }</style>
<body data-jp-theme-light="true"><div class="cell" id="a"></div><div class="cell" id="b"></div>
<script>
window.attnlab = { viewers: [] };                       // in the order in which they begin to play
document.addEventListener('attnlab-play', (event) => {
  if (!attnlab.viewers.includes(event.detail)) attnlab.viewers.push(event.detail);
});
window.workers = 0;
const BrowserWorker = Worker;
window.Worker = class extends BrowserWorker {
  constructor(...given) { super(...given); workers++; }
  terminate() { super.terminate(); workers--; }
};
class Model {                                           // as a Backbone model: `set` tells every view at once
  constructor(state) { this.state = state; this.listeners = []; this.changed = {}; this.said = []; }
  get(name) { return this.state[name]; }
  set(name, value) {
    if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
    this.state[name] = this.changed[name] = value;
    this.emit(`change:${name}`);
  }
  save_changes() { this.said.push({ method: 'update', state: this.changed }); this.changed = {}; }
  send(content) { this.said.push({ method: 'custom', content }); }
  on(name, f) { this.listeners.push([name, f]); }
  off(name, f) { this.listeners = this.listeners.filter(([n, g]) => n !== name || g !== f); }
  emit(name, ...values) { for (const [n, f] of [...this.listeners]) if (n === name) f(...values); }
  receive(message) {
    if (message.method === 'custom') this.emit('msg:custom', message.content, []);
    else for (const [name, value] of Object.entries(message.state)) { this.set(name, value); delete this.changed[name]; }
  }
}
window.begin = async (state) => {
  window.model = new Model(state);
  const address = URL.createObjectURL(new Blob([state._esm], { type: 'text/javascript' }));
  window.widget = (await import(address)).default;
  window.ends = {};
};
window.show = async (id) => { ends[id] = await widget.render({ model, el: document.getElementById(id) }); };
window.end = (id) => ends[id]();
</script>"""


class Wire(comm.base_comm.BaseComm):
    """The comm of a widget without a kernel: it keeps what Python says."""

    def publish_msg(
        self,
        msg_type: str,
        data: Any = None,
        metadata: Any = None,
        buffers: Any = None,
        **keys: Any,
    ) -> None:
        """Keep a message, as the text that would be sent."""
        self.said = [
            *getattr(self, "said", []),
            json.loads(json.dumps({"type": msg_type, "data": data}, allow_nan=False)),
        ]


class Notebook(Screen):
    """A page that shows a widget, in cells a and b. It is a Screen of the first viewer."""

    def __init__(self, tab: Tab, folder: Path, explorer: Explorer, width: int = 1280):
        page = folder / "notebook.html"
        page.write_text(HOST, encoding="utf-8")
        super().__init__(tab, page)
        self.explorer = explorer
        explorer.comm = Wire(target_name="jupyter.widget", data={})
        explorer.comm.said = []
        tab.open(page.as_uri(), width, 900)
        tab.call("begin", explorer.get_state())

    def show(self, *cells: str) -> Notebook:
        """Render the model in these cells, and wait until every run is complete."""
        for cell in cells:
            count = self.tab.evaluate("attnlab.viewers.length")
            self.tab.call("show", cell)
            self.tab.wait_until(f"attnlab.viewers.length > {count}")
        self.wait()
        return self

    def carry(self) -> list[dict[str, Any]]:
        """Hand over what each side has said, until both are silent; return what the page said."""
        heard: list[dict[str, Any]] = []
        while True:
            from_page = self.tab.evaluate("model.said.splice(0)")
            from_python, self.explorer.comm.said = self.explorer.comm.said, []
            if not from_page and not from_python:
                return heard
            for message in from_python:
                if message["data"].get("method") in ("update", "custom"):
                    self.tab.call("(message) => model.receive(message)", message["data"])
            for message in from_page:
                heard.append(message)
                data = {"buffer_paths": [], **message}
                self.explorer._handle_msg({"content": {"data": data}, "buffers": []})
