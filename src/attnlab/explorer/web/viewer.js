// The viewer: it joins engine, stage, charts and controls. No other module uses both the numbers and the pictures.

import { play, seek, showRecording } from './actions.js';
import { writeAddress } from './address.js';
import { DEFAULT_CAMERA } from './camera.js';
import { readLocks } from './controls.js';
import { element, setText } from './dom.js';
import { drawAll, makeScene } from './drawing.js';
import { Player } from './player.js';
import { findRecording } from './recordings.js';
import { Session } from './session.js';
import css from './style.css';
import { themeOf } from './theme.js';
import { VERSION } from './types.js';
import { createParts, watchReader } from './parts.js';
import { describeOutcome } from './words.js';
import { writeWords } from './run_words.js';

/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Payload} Payload */

const SHOWN = ['trails', 'threads', 'hull', 'limits'];

/**
 * @typedef {object} Options
 * @property {import('./types.js').Engine | null} [engine]     null: only the embedded recording
 * @property {import('./types.js').Recording} [recording]      unpacked
 * @property {boolean} [isPage]           the viewer is the whole page: keys work without focus
 * @property {boolean} [isEmbedded]       no frame around it, as high as its window
 * @property {string[]} [complaints]      sentences about an address that was not understood
 */

export class Viewer {
  /** @param {HTMLElement} host @param {Payload} payload @param {Options} options */
  constructor(host, payload, options) {
    this.payload = payload;
    this.options = options;
    this.hide = [...(payload.hide ?? []), ...(options.engine ? [] : ['controls', 'sweep'])]; // a recording stays as it is
    this.locks = readLocks(payload.lock ?? []);
    this.isReduced = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const view = payload.state.view ?? {};
    /** @type {Pick<import('./types.js').View, 'frame' | 'camera' | 'theme' | 'selected'>} */
    this.view = {
      frame: view.frame ?? 'limit',
      camera: view.camera ?? DEFAULT_CAMERA,
      theme: view.theme ?? 'auto',
      selected: [...(view.selected ?? [])],
    };
    this.show = new Set(view.show ?? SHOWN);
    this.player = new Player(view.t === 'inf' ? Infinity : (view.t ?? 0));
    this.preset = (payload.presets ?? []).find((preset) => preset.id === payload.state.preset) ?? null;
    /** @type {import('./types.js').Preset | null} */ this.shownPreset = null;
    this.theme = themeOf(this.view.theme);
    this.hover = -1;
    /** @type {[number, number]} */ this.tipAt = [0, 0];
    this.isSecret = Boolean(payload.guess);
    /** @type {number | null} */ this.guess = null;
    this.quality = { trail: 0.42, glow: !this.isReduced };
    /** @type {number[]} */ this.costs = [];
    this.verdict = ''; // what was said last
    this.askedAt = 0; // when attention was asked for
    this.cost = 0; // milliseconds of a middle draw
    /** @type {{[name: string]: ((value: any) => void)[]}} */ this.listeners = {};
    /** @type {import('./camera.js').Box | null} */ this.box = null;
    /** @type {import('./scene.js').Drawn} */ this.drawn = { pixels: new Float32Array(0), camera: null };
    this.area = { width: 1, height: 1, top: 0, bottom: 0, left: 0, right: 1 };
    /** @type {{stop: () => void, done: Promise<void>} | null} */ this.film = null;
    this.isDirty = this.isAlive = this.isVisible = true;
    this.wantsPlay = !this.isReduced && this.player.t === 0;
    this.ended = new AbortController();
    this.session = new Session(options.engine ?? null, payload, (what) => this.onSession(what));
    const parts = createParts(this);
    this.layout = parts.layout;
    this.clock = parts.clock;
    this.plane = parts.plane;
    this.heat = parts.heat;
    this.controls = parts.controls;
    this.switches = parts.switches;
    this.sweep = parts.sweep;
    const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
    root.replaceChildren(element('style', {}, css), this.layout.root);
    this.complain(options.complaints ?? []);
    this.hands = watchReader(this);
    this.setTheme(this.view.theme);
    if (options.recording) this.session.embed(options.recording);
    else this.session.change(payload.state.spec, { keepColours: false });
    this.before = performance.now();
    requestAnimationFrame((now) => this.loop(now));
  }

  /** @param {'run' | 'attention' | 'problem'} what */
  onSession(what) {
    const { recording, problem } = this.session;
    if (what === 'problem') this.complain([problem]);
    if (what === 'run' && recording) {
      this.player.t = Math.min(this.player.t, recording.until ?? Infinity);
      this.complain(this.options.complaints ?? []);
      this.view.selected = this.view.selected.filter((token) => token < recording.n);
      if (this.hover >= recording.n) this.hover = -1;
      this.describe();
      if (recording.complete) this.emit('run', recording);
      if (recording.complete && !this.session.isQuick) this.sayVerdict(recording);
      this.startIfWanted();
    }
    this.touch();
  }

  /** @param {string[]} sentences */
  complain(sentences) {
    const { notice } = this.layout;
    notice.hidden = !sentences.length;
    setText(notice, sentences.join(' '));
  }

  /** @param {number} now */
  loop(now) {
    if (!this.isAlive) return;
    requestAnimationFrame((later) => this.loop(later)); // first: a failing picture must not stop the clock forever
    const seconds = Math.min(0.05, (now - this.before) / 1000),
      { player, session, hands } = this;
    this.before = now;
    if (player.isPlaying && session.recording && !hands.isHolding()) {
      if (!player.advance(seconds, session.recording, session.outcome.kind !== 'open' && !this.isSecret)) play(this, false);
      this.touch();
    }
    if (this.isDirty && this.isVisible) drawAll(this);
  }

  /** Draw soon. */
  touch() {
    this.isDirty = true;
  }
  /** Write the words that belong to the run. */
  describe() {
    writeWords(this);
  }
  scene() {
    return makeScene(this);
  }

  /** The present attention matrix; null while it is unknown. */
  matrix() {
    const { session, player } = this;
    if (player.t === Infinity) return this.isSecret ? null : session.matrixOf(session.outcome.leaders);
    return session.attention?.P ?? null;
  }

  /** The attention row of a token. @param {number} token */
  rowOf(token) {
    const P = this.matrix(),
      n = this.session.recording?.n ?? 0;
    return P && P.length === n * n ? P.subarray(token * n, (token + 1) * n) : null;
  }

  /** Say something in the polite live region. @param {string} text */
  say(text) {
    this.layout.live.textContent = text;
    this.layout.root.dataset.said = text;
  }

  /** Tell readers who do not see the panel about the result. @param {import('./types.js').Recording} recording */
  sayVerdict(recording) {
    const name = this.layout.heading.firstChild?.textContent ?? '',
      { mark } = describeOutcome(this.session.outcome, recording);
    const text = this.isSecret ? name : `${name}: ${mark}`;
    if (text !== this.verdict) this.say(text);
    this.verdict = text;
  }

  nextTheme() {
    this.setTheme(this.theme.name === 'dark' ? 'light' : 'dark');
    this.tell();
  }

  /** @param {'auto' | 'light' | 'dark'} word */
  setTheme(word) {
    this.view.theme = word;
    this.theme = themeOf(word);
    this.layout.root.dataset.theme = this.theme.name;
    this.touch();
  }

  /** @param {'limit' | 'z' | 'x'} frame */
  setFrame(frame) {
    this.view.frame = frame;
    this.box = null;
    this.describe();
    this.tell();
  }

  /** @param {[number, number, number]} camera @param {boolean} isDone */
  setCamera(camera, isDone) {
    this.view.camera = camera;
    this.touch();
    if (isDone) this.tell();
  }

  /** @param {number} head */
  setHead(head) {
    this.session.head = head;
    this.session.attention = null;
    this.touch();
  }

  /** An invisible viewer draws nothing. It begins to play when it becomes visible. @param {boolean} isVisible */
  setVisible(isVisible) {
    this.isVisible = isVisible;
    this.startIfWanted();
    this.touch();
  }

  startIfWanted() {
    if (!this.wantsPlay || !this.isVisible || !this.session.recording) return;
    this.wantsPlay = false;
    play(this, true);
  }

  // ---- for others

  /** @returns {State} */
  state() {
    const { t } = this.player,
      view = { ...structuredClone(this.view), t: t === Infinity ? /** @type {const} */ ('inf') : t, show: [...this.show] };
    return {
      version: VERSION,
      spec: structuredClone(this.session.spec),
      view,
      ...(this.preset ? { preset: this.preset.id } : {}),
    };
  }

  /** The fragment of an address with the whole state; for a recording, whose run cannot change, only the view. */
  address() {
    const state = this.state();
    return writeAddress(this.session.engine ? state : { ...state, spec: { weights: {}, start: {}, solve: {} } });
  }

  /** An address with the whole state. */
  link() {
    const base = typeof location === 'undefined' ? '' : location.href.split('#')[0];
    return `${base}#${this.address()}`;
  }

  /** @param {State} state */
  setState({ spec, view, preset }) {
    this.preset = (this.payload.presets ?? []).find((one) => one.id === preset) ?? null;
    this.view = { frame: view.frame, camera: view.camera, theme: view.theme, selected: [...view.selected] };
    this.show = new Set(view.show);
    this.wantsPlay = false;
    seek(this, view.t === 'inf' ? Infinity : view.t, false);
    this.setTheme(view.theme);
    this.box = null;
    const packed = this.session.engine ? undefined : findRecording(this.payload, preset);
    if (!packed) this.session.change(structuredClone(spec), { keepColours: false });
    else if (this.preset) showRecording(this, this.preset, packed);
    else this.describe();
  }

  /**
   * Listen: 'state' after every change that a reader made, 'run' after every complete run.
   * @param {string} name
   * @param {(value: any) => void} f
   */
  on(name, f) {
    (this.listeners[name] ??= []).push(f);
  }
  /** @param {string} name @param {any} value */
  emit(name, value) {
    for (const f of this.listeners[name] ?? []) f(value);
  }
  /** Tell others that the state has changed. */
  tell() {
    this.emit('state', this.state());
  }

  destroy() {
    this.isAlive = false;
    this.ended.abort();
    this.film?.stop();
    this.session.engine?.destroy();
    this.layout.root.remove();
  }
}

/**
 * Put a viewer into an element.
 * @param {HTMLElement} host
 * @param {Payload} payload
 * @param {Options} [options]
 */
export function mount(host, payload, options = {}) {
  return new Viewer(host, payload, options);
}
