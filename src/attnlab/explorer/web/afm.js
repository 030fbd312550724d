// The explorer in a notebook: anywidget calls `render` for every view of a model. The only module that knows anywidget.
//
// A reader's changes go to Python as the traits spec, t and selected; Python checks them. Changes by Python are shown here.

import { seek } from './actions.js';
import css from './afm.css';
import { createCertify } from './certify.js';
import { element } from './dom.js';
import { unpackRecording } from './embedded.js';
import { createEngine } from './engine.js';
import { isEqual, isSameSpec } from './equal.js';
import { VERSION } from './types.js';
import { mount } from './viewer.js';
import workerSource from './worker.js?script';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/**
 * The model from anywidget: the traits of the Python object.
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {() => void} save_changes
 * @property {(name: string, f: (...values: any[]) => void) => void} on
 * @property {(name: string, f: (...values: any[]) => void) => void} off
 * @property {(content: any) => void} send
 */

const MOST_LIMITS = 40;

/**
 * Show a model in an element. The returned function ends this view.
 * @param {{model: Model, el: HTMLElement}} view
 * @returns {() => void}
 */
export function render({ model, el }) {
  const shell = element('div', { 'data-lm-suppress-shortcuts': 'true' }), // JupyterLab would take 1 to 6 and space for its own
    host = element('div');
  shell.attachShadow({ mode: 'open' }).append(host); // styles of the notebook do not reach inside
  el.append(shell);
  /** @type {NotebookView | null} */
  let view = null;
  const show = () => {
    view?.end();
    view = new NotebookView(model, host);
  };
  model.on('change:recording', show);
  model.on('change:_page', show);
  show();
  return () => {
    model.off('change:recording', show);
    model.off('change:_page', show);
    view?.end();
    shell.remove();
  };
}

class NotebookView {
  /** @param {Model} model @param {HTMLElement} host */
  constructor(model, host) {
    this.model = model;
    this.host = host;
    this.isAlive = true;
    this.isFollowing = false; // the view changes because the model did: do not send it back
    /** @type {Viewer | null} */ this.viewer = null;
    /** @type {import('./certify.js').Certify | null} */ this.certify = null;
    /** @type {[string, (...values: any[]) => void][]} */ this.heard = [
      ['change:spec', () => this.followSpec()],
      ['change:t', () => this.followTime()],
      ['change:selected', () => this.followSelected()],
      ['change:limit', () => this.followLimit()],
      ['change:height', () => this.followHeight()],
      ['msg:custom', (message) => this.hear(message)],
    ];
    for (const [name, f] of this.heard) model.on(name, f);
    this.themes = new MutationObserver(() => this.followTheme());
    this.followHeight();
    this.open().catch((problem) => {
      const words = problem instanceof Error ? problem.message : String(problem);
      if (this.isAlive) host.replaceChildren(element('p', { role: 'alert' }, `attnlab: this run cannot be shown. ${words}`));
    });
  }

  /** Make the viewer; a recording is unpacked first. */
  async open() {
    const { model, host } = this,
      page = model.get('_page'),
      packed = model.get('recording'),
      recording = packed ? await unpackRecording(packed) : undefined;
    if (!this.isAlive) return;
    const { view, preset, ...others } = page,
      limit = model.get('limit'),
      state = {
        version: VERSION,
        spec: structuredClone(model.get('spec')),
        view: { ...view, t: model.get('t'), selected: model.get('selected'), theme: this.themeOf(view.theme) },
        ...(preset ? { preset } : {}),
      };
    const engine = packed ? null : createEngine({ workerSource, resolved: others.resolved });
    const viewer = mount(host, { ...others, version: VERSION, state, limits: limit ? [limit] : [] }, { engine, recording });
    this.viewer = viewer;
    host.shadowRoot?.append(element('style', {}, css));
    viewer.layout.copies.querySelector('[data-copy="link"]')?.remove(); // a notebook's address holds no state
    if (engine) {
      this.certify = createCertify(model, viewer);
      viewer.layout.watchCard.append(this.certify.node);
    }
    viewer.on('state', (now) => this.tell(now));
    viewer.on('run', () => this.certify?.draw());
    this.themes.observe(document.body, { attributes: true, attributeFilter: ['data-jp-theme-light', 'class'] });
  }

  /** Tell the model what a reader changed. @param {import('./types.js').State} state */
  tell({ spec, view }) {
    if (this.isFollowing || !this.viewer) return;
    this.complain([]);
    const now = { t: view.t, selected: view.selected, ...(this.viewer.session.engine ? { spec } : {}) },
      changed = Object.entries(now).filter(([name, value]) => !isEqual(this.model.get(name), value));
    for (const [name, value] of changed) this.model.set(name, value);
    if (changed.length) this.model.save_changes();
  }

  /** @param {(viewer: Viewer) => void} change */
  follow(change) {
    if (!this.viewer) return;
    this.isFollowing = true;
    try {
      change(this.viewer);
    } finally {
      this.isFollowing = false;
    }
  }

  followSpec() {
    this.follow((viewer) => {
      const spec = this.model.get('spec');
      if (isEqual(spec, viewer.session.spec)) return;
      const own = viewer.payload.presets?.find((preset) => isSameSpec(preset.spec, spec)),
        state = viewer.state();
      viewer.setState({ ...state, spec, ...(own ? { preset: own.id } : {}) });
      this.certify?.forget();
    });
  }

  followTime() {
    this.follow((viewer) => {
      const t = this.model.get('t') === 'inf' ? Infinity : this.model.get('t');
      if (t !== viewer.player.t) seek(viewer, t, false);
    });
  }

  followSelected() {
    this.follow((viewer) => {
      viewer.view.selected = [...this.model.get('selected')];
      viewer.touch();
    });
  }

  /** A certified limit holds for the Spec inside it. The viewer looks for one after each change of the run. */
  followLimit() {
    const limit = this.model.get('limit');
    if (!limit || !this.viewer) return;
    const { payload, session } = this.viewer;
    payload.limits = [limit, ...payload.limits.filter((one) => !isSameSpec(one.spec, limit.spec))].slice(0, MOST_LIMITS);
    const { recording, spec } = session;
    if (recording && session.shown === spec) this.follow(() => session.accept({ spec, isQuick: false }, recording));
  }

  followHeight() {
    this.host.style.setProperty('--attnlab-height', `${Number(this.model.get('height')) || 600}px`);
  }

  /**
   * A notebook has its own theme, which may differ from that of the system.
   * @param {'auto' | 'light' | 'dark'} theme
   */
  themeOf(theme) {
    if (theme !== 'auto') return theme;
    const { classList, dataset } = document.body;
    if (dataset.jpThemeLight) return dataset.jpThemeLight === 'false' ? 'dark' : 'light';
    if (classList.contains('vscode-dark') || classList.contains('vscode-high-contrast')) return 'dark';
    return classList.contains('vscode-light') ? 'light' : 'auto';
  }

  followTheme() {
    const { theme } = this.model.get('_page').view;
    if (theme === 'auto') this.follow((viewer) => viewer.setTheme(this.themeOf(theme)));
  }

  /** @param {any} message   {kind, ...} from widget.py or certifying.py */
  hear(message) {
    if (message?.kind === 'refused') this.complain([`Python refused this change. ${message.sentence}`]);
    else this.certify?.hear(message);
  }

  /** Show sentences until the reader changes something. @param {string[]} sentences */
  complain(sentences) {
    if (!this.viewer) return;
    this.viewer.options.complaints = sentences; // every run shows them again
    this.viewer.complain(sentences);
  }

  end() {
    this.isAlive = false;
    for (const [name, f] of this.heard) this.model.off(name, f);
    this.themes.disconnect();
    this.viewer?.destroy();
    this.viewer = null;
    this.host.shadowRoot?.replaceChildren();
  }
}
