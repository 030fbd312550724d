// One run at a time: the Spec, its recording, attention, the theory and the limit. It uses the engine but no picture.

import { isSameSpec } from './equal.js';
import { readEigenvalues } from './eigenvalues.js';
import { deriveFrames } from './derived_frames.js';
import { inverse } from './linear.js';
import { findOutcome, keepColours, orderTokens, placeAtInfinity, rankGroups } from './outcome.js';
import { drawStart } from './starts.js';
import { predict } from './theory.js';
import { resolveWeights } from './weights.js';

/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').Recording} Recording */
/** @typedef {import('./types.js').Payload} Payload */
/** @typedef {import('./types.js').Engine} Engine */

const FULL_FRAMES = 480,
  QUICK_FRAMES = 160; // quick: while something is dragged

/** @type {import('./outcome.js').Outcome} */
const NOTHING = { kind: 'open', count: 0, labels: [], leaders: [], points: [], isPlaces: false, why: '' };

export class Session {
  /**
   * @param {Engine | null} engine        null: only an embedded recording is shown
   * @param {Payload} payload
   * @param {(what: 'run' | 'attention' | 'problem') => void} onChange
   */
  constructor(engine, payload, onChange) {
    this.engine = engine;
    this.payload = payload;
    this.onChange = onChange;
    /** @type {Spec} */ this.spec = payload.state.spec;
    /** @type {Recording | null} */ this.recording = null;
    /** @type {import('./types.js').ResolvedMatrices | null} */ this.weights = null;
    /** @type {import('./theory.js').Theory | null} */ this.theory = null;
    /** @type {{values: import('./eigenvalues.js').Eigenvalue[], lock: string}} */ this.spectrum = { values: [], lock: '' };
    /** @type {import('./outcome.js').Outcome} */
    this.outcome = NOTHING;
    /** @type {Int32Array} */ this.colours = new Int32Array(0);
    /** @type {number[]} */ this.order = [];
    /** @type {number[][]} */ this.homes = []; // starts without what was moved by hand
    /** @type {Float32Array | null} */ this.places = null; // tokens at infinity
    this.problem = '';
    this.isBusy = false;
    this.isQuick = false; // something is being dragged
    this.isFresh = true; // the next run has nothing to do with this one
    this.head = 0;
    /** @type {Spec} */ this.shown = this.spec; // the run that is drawn: while something is dragged, not the newest
    /** @type {{spec: Spec, isQuick: boolean} | null} */ this.inFlight = null;
    /** @type {{spec: Spec, isQuick: boolean} | null} */ this.waiting = null;
    /** @type {{P: Float32Array, t: number | 'end', T: number, spec: Spec} | null} */ this.attention = null; // T: frames then
    this.isAsking = false;
    /** @type {number | 'end' | null} */ this.wanted = null;
    /** @type {Map<string, Float32Array>} */ this.derived = new Map();
  }

  /** Certified limits that came with the page. */
  get limits() {
    return [
      ...(this.payload.limits ?? []),
      ...(this.payload.presets ?? []).flatMap((preset) => (preset.limit ? [preset.limit] : [])),
    ];
  }

  /**
   * Compute another Spec. Only the colours of the old run stay.
   * @param {Spec} spec
   * @param {{isQuick?: boolean, keepColours?: boolean}} [options]
   */
  async change(spec, { isQuick = false, keepColours: keep = true } = {}) {
    this.spec = spec;
    this.isQuick = isQuick;
    if (!isQuick) this.attention = null;
    this.problem = '';
    if (!keep) this.isFresh = true;
    if (this.outcome.limit && !isSameSpec(this.outcome.limit.spec, spec)) {
      this.outcome = NOTHING; // a certified mark is never shown for another run, not even briefly
      this.places = null;
    }
    try {
      this.weights = resolveWeights(spec, this.payload.resolved);
      this.spectrum = readEigenvalues(spec, this.weights);
      this.theory = this.findTheory(this.weights);
      const { moved, ...start } = spec.start;
      this.homes = drawStart(start, this.weights.d);
    } catch (problem) {
      this.fail(problem);
      return;
    }
    if (!this.engine) return;
    this.isBusy = true;
    this.waiting = { spec, isQuick };
    // During a drag one run is computed, the newest request waits, and every complete run is drawn.
    if (!(isQuick && this.inFlight?.isQuick)) await this.computeWaiting(this.engine);
  }

  /** Compute waiting requests until none waits. @param {Engine} engine */
  async computeWaiting(engine) {
    while (this.waiting) {
      const request = this.waiting,
        { spec, isQuick } = request;
      this.inFlight = request;
      this.waiting = null;
      try {
        const options = isQuick ? { frames: QUICK_FRAMES, rtol: 1e-5 } : { frames: FULL_FRAMES };
        const recording = await engine.record(spec, options, isQuick ? undefined : (piece) => this.accept(request, piece));
        if (this.inFlight !== request) return; // another call goes on
        this.isBusy = this.waiting !== null;
        this.accept(request, recording);
      } catch (problem) {
        if (this.inFlight !== request) return;
        this.isBusy = this.waiting !== null;
        const isStopped = problem instanceof Error && problem.message === 'superseded';
        if (!this.isBusy && !isStopped) this.fail(problem);
      }
    }
    this.inFlight = null;
  }

  /**
   * Show a recording that Python made. V and the theory are shown if the page can make the weights.
   * @param {Recording} recording
   */
  embed(recording) {
    try {
      this.weights = resolveWeights(this.spec, this.payload.resolved);
      this.spectrum = readEigenvalues(this.spec, this.weights);
      this.theory = this.findTheory(this.weights);
    } catch {
      this.theory = this.findTheory(null); // weights of a trained head have hundreds of dimensions: no spectrum to draw
    }
    this.accept({ spec: this.spec, isQuick: false }, recording);
  }

  /** @param {unknown} problem */
  fail(problem) {
    this.problem = problem instanceof Error ? problem.message : String(problem);
    this.onChange('problem');
  }

  /**
   * Take a recording, complete or not. A quick one may belong to a Spec that has changed since.
   * @param {{spec: Spec, isQuick: boolean}} request
   * @param {Recording} recording
   */
  accept({ spec, isQuick }, recording) {
    if ((spec !== this.spec && !(isQuick && this.isQuick)) || recording.T < 1) return;
    const { attention } = this;
    if (attention && attention.spec !== spec && !(isQuick && attention.P.length === recording.n ** 2)) this.attention = null;
    this.recording = recording;
    this.shown = spec;
    this.derived.clear();
    this.outcome = findOutcome(isSameSpec(spec, this.spec) ? this.limits : [], spec, recording, isSameSpec);
    const isOnePoint = recording.geometry === 'sphere' && this.outcome.count === 1; // then groups at the end of the run say more
    const labels = this.outcome.labels.length && !isOnePoint ? this.outcome.labels : recording.complete ? recording.labels : null;
    const before = this.isFresh ? null : this.colours;
    if (this.isFresh) this.colours = new Int32Array(recording.n).fill(-1);
    this.isFresh = false;
    if (labels) this.colours = keepColours(rankGroups(labels), before);
    else if (this.colours.length !== recording.n) this.colours = new Int32Array(recording.n).fill(-1);
    this.order = orderTokens(this.colours);
    this.places =
      this.outcome.kind === 'open' || !recording.complete ? null : placeAtInfinity(this.outcome, recording, this.inverse());
    this.onChange('run');
  }

  /** The inverse of the basis of the run. */
  inverse() {
    const basis = this.recording?.basis ?? [];
    return inverse(basis) ?? basis;
  }

  /**
   * Frames for drawing.
   * @param {'limit' | 'z' | 'x'} frame
   * @returns {Float32Array}
   */
  framesOf(frame) {
    const recording = /** @type {Recording} */ (this.recording);
    if (frame === 'limit') return recording.frames.limit;
    const known = this.derived.get(frame);
    if (known) return known;
    const frames = deriveFrames(recording, frame, this.inverse());
    this.derived.set(frame, frames);
    return frames;
  }

  /**
   * What the theory says: Python's sentence if the page has one, else the table of this page.
   * @param {import('./types.js').ResolvedMatrices | null} weights
   * @returns {import('./theory.js').Theory | null}
   */
  findTheory(weights) {
    const theory = weights ? predict(this.spec, weights) : null,
      said = (this.payload.says ?? []).find((one) => isSameSpec(one.spec, this.spec));
    if (!said) return theory;
    const nothing = {
      theorem: '',
      paper: '',
      most: null,
      isConjecture: false,
      isOpen: true,
      shape: /** @type {const} */ ('none'),
    };
    return { ...nothing, ...theory, cite: said.cite, says: said.says };
  }

  /**
   * Request the attention matrix at a time; `onChange('attention')` reports when it is ready. There is one request at a time: the
   * newest waits.
   * @param {number | 'end'} t
   */
  ask(t) {
    const { attention, recording, shown } = this;
    if (!this.engine || (attention?.t === t && attention.T === recording?.T && attention.spec === shown)) return;
    this.wanted = t;
    if (!this.isAsking) this.askNow();
  }

  async askNow() {
    const { shown: spec, head } = this,
      t = this.wanted,
      T = this.recording?.T ?? 0;
    if (t === null || !this.engine) return;
    this.wanted = null;
    this.isAsking = true;
    try {
      const { P } = await this.engine.attention(spec, t, head);
      if (spec === this.shown && head === this.head) this.attention = { P, t, T, spec };
      this.onChange('attention');
    } catch {
      // The run was replaced meanwhile, or has no such frame: the next question follows the next run.
    }
    this.isAsking = false;
    if (this.wanted !== null) this.askNow();
  }

  /**
   * The attention matrix in which every row attends only to its leader: that of the limit, and the only one in a recording.
   * @param {ArrayLike<number>} leaders
   * @param {ArrayLike<number> | null} [shares]   of attention that the leaders get; none: all of it
   * @returns {Float32Array | null}
   */
  matrixOf(leaders, shares = null) {
    const n = this.recording?.n ?? 0,
      P = new Float32Array(n * n);
    if (leaders.length !== n) return null;
    for (let i = 0; i < n; i++) if (leaders[i] >= 0) P[i * n + leaders[i]] = shares ? shares[i] : 1;
    return P.some(Boolean) ? P : null;
  }
}
