// A run as the viewer plays it: frames, leaders and a few series, recorded during the integration.
import { Refusal } from './refusal.js';
import { fieldOf, readProblem, tolerancesOf, wallOf } from './problem.js';
import { integrate } from './stepper.js';
import { FrozenTest, whyNotTested } from './frozen.js';
import { findTie } from './symmetric_start.js';
import { countedOf, countedPart, frameMatrix, writeFrame } from './frames.js';
import { diameter, findGroups, rankLabels } from './groups.js';
import { sentenceOf } from './statuses.js';
import { apply } from './linear.js';
import { wholeNumber } from './checks.js';

/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').Estimate} Estimate */
/** @typedef {import('./types.js').Recording} Recording */
/** @typedef {import('./types.js').Status} Status */

/** Double precision without extra digits is trusted up to lambda_1 t = 14. */
export const TRUSTED_GROWTH = 14;

const FRAMES = 480, SAMPLES = 120, GROUP_SCALE = 0.01;
const TOLERANCES = [[60, 1e-8], [200, 1e-7]];     // [n, rtol]: few tokens are cheap, and frequent changes of leader need it
const COARSEST = 1e-6;                // a looser tolerance could name a wrong leader
const MOST_PAIRS = 6e8;               // (row, column, head) that a recording may compute, within the two bounds below
const FEWEST_EVALUATIONS = 600, MOST_EVALUATIONS = 50_000;      // evaluations: few tokens have other costs
const FIRST_TEST = 3, NEXT_TEST = 0.5;    // of the leaders, in units of lambda_1 t

/** A recording that is being made. `run()` is a generator that pauses after every evaluation. */
export class Recorder {
  /**
   * @param {Spec} spec
   * @param {import('./types.js').RecordOptions} [options]
   * @param {import('./types.js').ResolvedWeights | null} [resolved]
   */
  constructor(spec, options = {}, resolved = null) {
    const problem = readProblem(spec, resolved), { n, d, dynamics, solve, weights, leading } = problem;
    if (solve.stepper !== 'adaptive' || dynamics.feedforward) {
      throw new Refusal('The page plays the flow itself. A run with layers, fixed steps or a feed-forward layer: save it with '
        + 'attnlab run, and show the file with attnlab explore.');
    }
    this.problem = problem;
    this.field = fieldOf(problem);
    this.rtol = Math.min(options.rtol ?? TOLERANCES.find(([most]) => n <= most)?.[1] ?? COARSEST, COARSEST);
    const isSphere = dynamics.geometry === 'sphere', grows = !isSphere && leading > 0;
    const total = wholeNumber('frames', options.frames ?? FRAMES, 2, 5000);
    this.tau = grows ? 1 / leading : solve.tEnd / 8;
    this.trusted = grows ? TRUSTED_GROWTH / leading : Infinity;
    this.every = Math.ceil(total / SAMPLES);
    this.T = 0;
    this.times = clockTimes(solve.tEnd, this.tau, total);
    const room = total * n * 3, samples = Math.ceil(total / this.every);
    /** @type {{limit: Float32Array, x?: Float32Array, z?: Float32Array}} */
    this.frames = { limit: new Float32Array(room) };
    if (!isSphere) Object.assign(this.frames, { x: new Float32Array(room), z: new Float32Array(room) });
    this.leaders = new Int16Array(total * n);
    this.groups = new Float32Array(samples);
    this.listened = new Float32Array(samples);
    /** @type {number[]} */
    this.changes = [];
    // what attention is computed from: the tokens of every frame in double precision
    this.states = new Float64Array(total * n * d);
    this.exponents = new Int32Array(total);
    this.counted = countedOf(problem);
    this.scale = 0;
    // at both ends of the step in hand: time, best token of each row and head, and how many tokens a row attends to
    this.before = { t: 0, best: new Int32Array(this.field.best.length), listened: 0 };
    this.after = { t: 0, best: new Int32Array(this.field.best.length), listened: 0 };
    this.why = whyNotTested(weights, dynamics);
    this.test = this.why ? null : new FrozenTest(weights, dynamics, n);
    /** @type {Estimate | null} */
    this.estimate = null;
    this.isShort = options.untilSettled === true;
    this.nextTest = FIRST_TEST / Math.max(leading, 1e-300);
    this.evaluations = this.steps = 0;
    /** @type {number | undefined} */
    this.atEnd = undefined;
    /** @type {Status} */
    this.status = 'INTERRUPTED';
    this.isDone = false;
  }

  /**
   * Integrate to the end of the clock. If the leaders are not settled then, continue as long as double precision is trusted.
   * @returns {Generator<void, void, void>}
   */
  *run() {
    const { problem, field } = this, { n, d, solve, dynamics, weights } = problem, isSphere = dynamics.geometry === 'sphere';
    /** @type {import('./stepper.js').System} */
    const system = { n, d, isSphere, mayRescale: !isSphere, evaluate: (_, y, exponent, out) => field.evaluate(y, exponent, out) };
    const outcome = yield* integrate(system, {
      ...tolerancesOf(problem),
      tEnd: this.test ? Math.max(solve.tEnd, this.trusted) : solve.tEnd,
      times: this.times,
      rtol: this.rtol,
      maxSteps: Infinity,
      maxEvaluations: Math.min(Math.max(MOST_PAIRS / (weights.heads.length * n * n), FEWEST_EVALUATIONS), MOST_EVALUATIONS),
      isPastWall: wallOf(problem, field),
      frame: (_, t, y, exponent) => this.#takeFrame(t, y, exponent),
      step: (t, y, exponent) => this.#takeStep(t, y, exponent),
    }, problem.start.slice());
    this.status = this.T === this.times.length ? 'OK' : outcome.status;
    this.evaluations = outcome.evaluations;
    this.steps = outcome.steps;
    this.isDone = true;
    if (weights.heads.every(({ V }) => V.every(row => row.every(value => value === 0)))) this.estimate = this.#stay();
    if (!this.test || this.estimate) return;
    const why = this.why || 'The run is too short to decide.';
    this.estimate = { holds: false, why, leaders: [], labels: [], count: 0, points: [] };
  }

  /**
   * @param {number} t
   * @param {Float64Array} y
   * @param {number} exponent
   * @returns {boolean}     whether all is known
   */
  #takeStep(t, y, exponent) {
    const { field, problem } = this, { leading, solve, weights, start } = problem;
    [this.before, this.after] = [this.after, this.before];
    this.after.t = t;
    this.after.best.set(field.best);
    this.after.listened = field.listened;
    if (weights.heads.length > 1 && this.trusted > t) this.#watchGrowth(t, y, exponent, start);
    if (this.test && !this.estimate && t >= this.nextTest && t <= this.trusted) {
      this.nextTest = t + NEXT_TEST / leading;
      this.why = this.test.check(y, exponent, field.best) || this.#findTie(field.best);
      if (!this.why) this.estimate = this.#settle(t, y, exponent, field.best);
    }
    if (this.estimate && this.isShort) return true;
    if (t < solve.tEnd) return false;
    // after the clock only the leaders matter: spend at most twice the work so far on them
    this.atEnd ??= field.evaluations;
    return !this.test || this.estimate !== null || t >= this.trusted || field.evaluations > 3 * this.atEnd + 1000;
  }

  /**
   * With several heads tokens may grow faster than the sum of the heads says: trust ends where they have grown by e^14.
   * @param {number} t
   * @param {Float64Array} y
   * @param {number} exponent
   * @param {Float64Array} start
   */
  #watchGrowth(t, y, exponent, start) {
    let now = 0, first = 0;
    for (let i = 0; i < y.length; i++) {
      now = Math.max(now, Math.abs(y[i]));
      first = Math.max(first, Math.abs(start[i]));
    }
    if (Math.log(now) + exponent * Math.LN2 - Math.log(first) >= TRUSTED_GROWTH) this.trusted = t;
  }

  /**
   * @param {number} t
   * @param {Float64Array} y
   * @param {number} exponent
   */
  #takeFrame(t, y, exponent) {
    const { problem, T } = this, { n, d } = problem, limit = frameMatrix(problem, 'limit', t, exponent);
    writeFrame(limit, y, n, this.frames.limit, 3 * n * T);
    if (this.frames.x) writeFrame(frameMatrix(problem, 'x', t, exponent), y, n, this.frames.x, 3 * n * T);
    if (this.frames.z) writeFrame(frameMatrix(problem, 'z', t, exponent), y, n, this.frames.z, 3 * n * T);
    this.states.set(y, T * n * d);
    this.exponents[T] = exponent;
    this.#takeLeaders(T, t, y);
    if (T % this.every === 0) {
      const points = countedPart(limit, this.counted, y, n), sample = T / this.every;
      if (T === 0) this.scale = GROUP_SCALE * diameter(points, n, d);
      this.groups[sample] = findGroups(points, n, d, this.scale).count;
      const { before, after } = this, part = after.t > before.t ? (t - before.t) / (after.t - before.t) : 1;
      this.listened[sample] = before.listened + Math.min(1, part) * (after.listened - before.listened);
    }
    this.T += 1;
  }

  /**
   * The leaders of a frame: those of the step's two ends where they agree, else asked of the tokens. -1 where heads disagree.
   * @param {number} T
   * @param {number} t
   * @param {Float64Array} y
   */
  #takeLeaders(T, t, y) {
    const { field, leaders, before, after } = this, { n } = field, heads = field.heads.length;
    const isEnd = t >= after.t;
    let isChanged = false;
    for (let i = 0; i < n; i++) {
      let leader = -1;
      for (let h = 0; h < heads; h++) {
        const at = h * n + i, isSame = isEnd || before.best[at] === after.best[at];
        const best = isSame ? after.best[at] : field.bestOf(h, y, i);
        leader = h === 0 || best === leader ? best : -1;
        if (leader < 0) break;
      }
      leaders[T * n + i] = leader;
      if (T > 0 && leader !== leaders[(T - 1) * n + i]) isChanged = true;
    }
    if (isChanged) this.changes.push(t);
  }

  /**
   * Why a symmetric start is undecided; empty if rounding has decided nothing.
   * @param {Int32Array} best
   * @returns {string}
   */
  #findTie(best) {
    const { problem: { weights, start, dynamics } } = this;
    const turns = weights.turn.map((b, c) => b !== 0 || (c > 0 && weights.turn[c - 1] !== 0));
    const token = dynamics.mask === 'causal' ? -1 : findTie(start, weights.eigenHeads[0].M, turns, best);
    return token < 0 ? '' : `The start is symmetric, and token ${token} is on the mirror: here rounding decides its leader.`;
  }

  /**
   * The limits of the present leaders: their z in the growing directions, in the Spec's coordinates.
   * @param {number} t
   * @param {Float64Array} y
   * @param {number} exponent
   * @param {Int32Array} best
   * @returns {Estimate}
   */
  #settle(t, y, exponent, best) {
    const { problem, counted } = this, { n, d } = problem, leaders = Array.from(best), labels = [...rankLabels(leaders)];
    const matrix = frameMatrix(problem, 'limit', t, exponent), count = Math.max(...labels) + 1;
    const points = Array.from({ length: count }, (_, label) => {
      const leader = leaders[labels.indexOf(label)];
      return apply(matrix, Array.from({ length: d }, (_, c) => counted[c] ? y[c * n + leader] : 0));
    });
    const why = `No leader can change after t = ${+t.toPrecision(3)}, by a test in this page without error bounds.`;
    return { holds: true, why, leaders, labels, count, points };
  }

  /**
   * V = 0: every token stays where it starts.
   * @returns {Estimate}
   */
  #stay() {
    const { x0 } = this.problem, places = new Map(x0.map(place => [place.join(), place])), names = [...places.keys()];
    const labels = [...rankLabels(x0.map(place => names.indexOf(place.join())))], count = places.size;
    const points = Array.from({ length: count }, (_, label) => x0[labels.indexOf(label)]);
    return { holds: true, isStill: true, why: 'V = 0: every token stays where it starts.', leaders: [], labels, count, points };
  }

  /** Groups at the last frame. */
  finalGroups() {
    const { problem, T } = this, { n, d } = problem, at = Math.max(T - 1, 0);
    const y = this.states.subarray(at * n * d, (at + 1) * n * d);
    const matrix = frameMatrix(problem, 'limit', this.times[at], this.exponents[at]);
    const { names, count } = findGroups(countedPart(matrix, this.counted, y, n), n, d, this.scale);
    return { labels: rankLabels(names), count };
  }
}

/**
 * Times equally spaced in u = t / (t + tau).
 * @param {number} tEnd
 * @param {number} tau
 * @param {number} count
 * @returns {Float64Array}
 */
export function clockTimes(tEnd, tau, count) {
  const end = tEnd / (tEnd + tau), times = new Float64Array(count);
  for (let k = 0; k < count; k++) {
    const u = end * k / (count - 1);
    times[k] = tau * u / (1 - u);
  }
  times[count - 1] = tEnd;
  return times;
}
