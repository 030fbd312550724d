// Runs sweeps: the quantities for a sweep, the request to the engine, and the run of a dot.

import { realPart } from './eigenvalues.js';
import { createSweep, valuesOf } from './sweep_chart.js';

/** @typedef {import('./types.js').Spec} Spec */

const STARTS = 7,
  MOST_TOKENS = 40;
const TRUSTED = 14; // lambda_1 t up to which double precision decides

export class SweepPanel {
  /**
   * @param {import('./session.js').Session} session
   * @param {{onLoad: (spec: Spec) => void, onSay: (text: string) => void, onDraw: () => void}} events
   */
  constructor(session, events) {
    this.session = session;
    this.events = events;
    this.path = '';
    /** @type {import('./types.js').SweepPoint[]} */ this.points = [];
    /** @type {Spec | null} */ this.asked = null;
    this.number = 0;
    this.isRunning = false;
    this.view = createSweep({
      onRun: () => (this.isRunning ? this.stop() : this.run()),
      onSay: events.onSay,
      onPath: (path) => {
        this.path = path;
        this.forget();
        events.onDraw();
      },
      onLoad: (value, rng) => {
        if (this.asked) events.onLoad(this.specAt(this.asked, value, rng));
      },
    });
    this.node = this.view.node;
  }

  /** The quantities for a sweep: beta, n, and real eigenvalues that can be dragged. */
  paths() {
    const { spec, spectrum } = this.session,
      isSpectrum = spec.weights.family === 'spectrum';
    const values = isSpectrum
      ? spectrum.values.flatMap((value, k) => (Array.isArray(value) ? [] : [`weights.eigenvalues.${k}`]))
      : [];
    const isGiven = spec.start.law === 'given';
    return [
      ...values.reverse(),
      ...(spec.dynamics?.kernel === 'hardmax' ? [] : ['dynamics.beta']),
      ...(isGiven ? [] : ['start.n']),
    ];
  }

  /** The best quantity for this picture: an eigenvalue if there are several, else beta. */
  favourite() {
    const paths = this.paths(),
      { spec, spectrum } = this.session;
    const isPlain = spec.dynamics?.geometry === 'sphere' || spectrum.values.length < 2;
    return (isPlain ? paths.find((path) => path === 'dynamics.beta') : paths[0]) ?? paths[0] ?? '';
  }

  /** Remove points of another V, kernel or geometry: they do not apply to this run. */
  forget() {
    this.stop();
    this.points = [];
    this.asked = null;
  }

  /** Call after the run has changed. */
  refresh() {
    if (!this.paths().includes(this.path)) this.path = this.favourite();
    if (this.asked && !this.isAbout(this.asked)) this.forget();
  }

  /** Whether a sweep is about the present run: all but the quantity, the start and the length are equal. @param {Spec} asked */
  isAbout(asked) {
    /** @param {Spec} spec */
    const core = ({ weights, dynamics = {} }) => {
      const eigenvalues = (weights.eigenvalues ?? []).map((/** @type {any} */ value, /** @type {number} */ k) =>
        this.path.endsWith(`eigenvalues.${k}`) ? null : value,
      );
      return JSON.stringify([
        { ...weights, eigenvalues },
        { ...dynamics, beta: this.path === 'dynamics.beta' ? null : (dynamics.beta ?? 1) },
      ]);
    };
    return core(asked) === core(this.session.spec);
  }

  stop() {
    this.number++;
    if (this.isRunning) this.session.engine?.stopSweep(); // the run that is shown goes on
    this.isRunning = false;
    this.events.onDraw();
  }

  async run() {
    const { engine, spec, weights } = this.session,
      number = ++this.number;
    if (!engine) return;
    const asked = structuredClone(spec),
      fastest = Math.max(0, ...(weights?.growth ?? []));
    delete asked.start.moved;
    if (asked.dynamics?.geometry !== 'sphere' && fastest > 0) asked.solve.t_end = TRUSTED / fastest;
    this.asked = asked;
    this.points = [];
    this.isRunning = true;
    this.events.onDraw();
    try {
      const n = this.path === 'start.n' ? undefined : Math.min(asked.start.n ?? MOST_TOKENS, MOST_TOKENS);
      await engine.sweep({ spec: asked, path: this.path, values: valuesOf(this.path), seeds: STARTS, n }, (point) => {
        if (number !== this.number) return;
        this.points.push(point);
        this.events.onDraw();
      });
      if (number === this.number) this.events.onSay(`The sweep is complete: ${this.points.length} runs.`);
    } catch (problem) {
      if (number === this.number && problem instanceof Error && problem.message !== 'superseded')
        this.events.onSay(problem.message);
    }
    if (number !== this.number) return;
    this.isRunning = false;
    this.events.onDraw();
  }

  /**
   * The run behind a dot.
   * @param {Spec} asked
   * @param {number} value
   * @param {number} rng
   */
  specAt(asked, value, rng) {
    const spec = structuredClone(asked);
    spec.start = { ...spec.start, rng, n: this.path === 'start.n' ? value : Math.min(spec.start.n, MOST_TOKENS) };
    if (this.path === 'dynamics.beta') spec.dynamics = { ...spec.dynamics, beta: value };
    else if (this.path !== 'start.n') spec.weights.eigenvalues[Number(this.path.split('.').pop())] = value;
    return spec;
  }

  /** The value of the swept quantity in the present run. */
  now() {
    const { spec, spectrum } = this.session;
    if (this.path === 'dynamics.beta') return spec.dynamics?.beta ?? 1;
    if (this.path === 'start.n') return spec.start.n ?? null;
    const value = spectrum.values[Number(this.path.split('.').pop())];
    return value === undefined ? null : realPart(value);
  }

  /** @param {import('./theme.js').Theme} theme */
  draw(theme) {
    if (!this.path) return;
    this.view.draw({
      path: this.path,
      paths: this.paths(),
      values: valuesOf(this.path),
      points: this.points,
      now: this.now(),
      theme,
      isRunning: this.isRunning,
      most: this.session.theory?.most ?? null,
      isSphere: this.session.spec.dynamics?.geometry === 'sphere',
    });
  }
}
