// The integrator: Dormand and Prince's method of order 5 with error control, in the coordinates of attnlab's engine.
//
// Tokens are x = 2^exponent y in eigen-coordinates of V. Each group of equal growth has its own tolerance. In x, not in z,
// followers of one leader receive equal increments, so their order is kept. Slow coordinates are separate from fast ones.
// `integrate` is a generator that pauses after every evaluation of the velocity, so that its driver can let other tasks run.
import { addStages, binaryExponent, largest, multiplyAll, renormalise } from './arithmetic.js';

/** @typedef {import('./types.js').Status} Status */

/**
 * The system to integrate: evaluate writes y' / 2^exponent into out.
 * @typedef {object} System
 * @property {number} n
 * @property {number} d
 * @property {(t: number, y: Float64Array, exponent: number, out: Float64Array) => void} evaluate
 * @property {boolean} isSphere
 * @property {boolean} mayRescale            whether a power of two may be taken out
 * @property {() => boolean} [isUndecided]   some row attended to several tokens, or turned, since the last call
 * @property {(y: Float64Array, exponent: number) => number} [scoreSize]      the size of the largest score
 */

/**
 * @typedef {object} Control
 * @property {number} tEnd
 * @property {ArrayLike<number>} times       ascending, in [0, tEnd]: when `frame` is called
 * @property {number} rtol
 * @property {number} [atol]
 * @property {number} [scoreError]           while rows are undecided, steps are accurate enough for scores to be off by this only
 * @property {number[]} group                coordinates that share a tolerance
 * @property {number} rounding               no coordinate is asked to be more accurate than this times the largest one
 * @property {number} maxSteps
 * @property {number} [maxEvaluations]
 * @property {(t: number, y: Float64Array, exponent: number, growth: number) => boolean} [isPastWall]
 *           see precision_wall.js; growth = log(|x| / |x(0)|)
 * @property {(index: number, t: number, y: Float64Array, exponent: number) => void} [frame]
 * @property {(t: number, y: Float64Array, exponent: number) => boolean | void} [step]
 *           called at 0 and after each step; true ends the run
 */

/**
 * @typedef {object} Outcome
 * @property {Status} status
 * @property {number} saved                  how many of the times were reached
 * @property {number} t                      the time reached
 * @property {number} steps
 * @property {number} rejected
 * @property {number} evaluations
 */

const A = [
  [], [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9], [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
  [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656], [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
];
const C = [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1];
const STEP = 6;                               // the row of A that is the step itself, and the velocity at its end
const ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40];
const DENSE = [-12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072,
  701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423];

const SAFETY = 0.9, SMALLEST_FACTOR = 0.2, LARGEST_FACTOR = 10;
const TIGHTEST = 1e-13;                       // relative tolerance that double precision can keep
const EXPONENT_RANGE = 32;                    // y is divided by a power of two when it leaves 2^-32 .. 2^32
const SMALLEST_GROUP = 1e-280;                // coordinates this far below the largest are about to lose their digits

/**
 * scale[c] = atol + rtol times the largest coordinate of the group of c, never below `rounding` times the largest of all.
 * @param {Float64Array} y
 * @param {Float64Array} after
 * @param {Control} control
 * @param {number} rtol
 * @param {number} atol
 * @param {Float64Array} scale
 */
function setTolerances(y, after, control, rtol, atol, scale) {
  const d = scale.length, n = y.length / d;
  let top = 0;
  scale.fill(0);
  for (let c = 0; c < d; c++) {
    let size = 0;
    for (let i = c * n; i < (c + 1) * n; i++) size = Math.max(size, Math.abs(y[i]), Math.abs(after[i]));
    top = Math.max(top, size);
    for (let b = 0; b < d; b++) if (control.group[b] === control.group[c]) scale[b] = Math.max(scale[b], size);
  }
  for (let c = 0; c < d; c++) scale[c] = Math.max(atol + rtol * scale[c], control.rounding * top, 1e-300);
}

/**
 * The largest |v| over its tolerance; infinity where some v is not finite.
 * @param {Float64Array} v
 * @param {Float64Array} scale
 */
function scaledNorm(v, scale) {
  const n = v.length / scale.length;
  let top = 0;
  for (let c = 0; c < scale.length; c++) {
    for (let i = c * n; i < (c + 1) * n; i++) {
      const size = Math.abs(v[i]) / scale[c];
      if (!(size < Infinity)) return Infinity;
      if (size > top) top = size;
    }
  }
  return top;
}

/**
 * Whether some group of coordinates, not all 0, is about to lose its digits.
 * @param {Float64Array} y
 * @param {number[]} group
 */
function isGroupVanishing(y, group) {
  const n = y.length / group.length, sizes = group.map(() => 0);
  group.forEach((g, c) => { sizes[g] = Math.max(sizes[g], largest(y.subarray(c * n, (c + 1) * n))); });
  return sizes.some(size => size > 0 && size < SMALLEST_GROUP);
}

/**
 * Integrate y, which holds the start (d, n) and is overwritten by the end. Yields after every evaluation.
 * @param {System} system
 * @param {Control} control
 * @param {Float64Array} y
 * @returns {Generator<void, Outcome & {exponent: number}, void>}
 */
export function* integrate(system, control, y) {
  const { n, d, isSphere, mayRescale } = system, { tEnd, times, frame, step: onStep } = control, size = n * d;
  const K = Array.from({ length: STEP + 1 }, () => new Float64Array(size));
  const trial = new Float64Array(size), after = new Float64Array(size), scale = new Float64Array(d);
  const dense = Array.from({ length: 4 }, () => new Float64Array(size));
  const startSize = largest(y), startLog = startSize > 0 ? Math.log(startSize) : 0;
  let exponent = mayRescale ? binaryExponent(startSize) : 0;
  if (exponent !== 0) multiplyAll(y, 2 ** -exponent);
  let atol = (control.atol ?? 0) * 2 ** -exponent;
  let t = 0, saved = 0, steps = 0, rejected = 0, evaluations = 0;
  /** @type {Status} */
  let status = 'OK';
  const outcome = () => ({ status, saved, t, steps, rejected, evaluations, exponent });

  system.evaluate(0, y, exponent, K[0]);
  evaluations += 1;
  onStep?.(0, y, exponent);
  while (saved < times.length && times[saved] <= 0) frame?.(saved++, 0, y, exponent);
  yield;
  // the starting step of Hairer, Norsett and Wanner, section II.4
  setTolerances(y, y, control, control.rtol, atol, scale);
  const d0 = scaledNorm(y, scale), d1 = scaledNorm(K[0], scale);
  let h = Math.min(tEnd, d0 < 1e-5 || !(d1 > 1e-5) ? 1e-6 : 0.01 * d0 / d1);
  addStages(y, h, [1], K, trial);
  system.evaluate(h, trial, exponent, K[1]);
  evaluations += 1;
  yield;
  for (let i = 0; i < size; i++) trial[i] = K[1][i] - K[0][i];
  const d2 = h > 0 ? scaledNorm(trial, scale) / h : Infinity;
  if (d1 <= 1e-15 && d2 <= 1e-15) h = Math.max(1e-6, h * 1e-3);
  else if (Math.max(d1, d2) < Infinity) h = Math.min(100 * h, (0.01 / Math.max(d1, d2)) ** (1 / 5));

  let isAfterRejection = false, wasFinite = true;
  while (t < tEnd) {
    if (steps + rejected >= control.maxSteps || evaluations >= (control.maxEvaluations ?? Infinity)) status = 'MAX_STEPS';
    else if (h < 1e-15 * t || h < 1e-300) status = wasFinite ? 'STALLED' : 'NON_FINITE';
    if (status !== 'OK') return outcome();
    const tNew = t + 1.001 * h >= tEnd ? tEnd : t + h, step = tNew - t;                  // no sliver of a last step
    for (let s = 1; s <= STEP; s++) {
      const state = s === STEP ? after : trial;
      addStages(y, step, A[s], K, state);
      if (s === STEP && isSphere) renormalise(after, n, d);
      system.evaluate(t + C[s] * step, state, exponent, K[s]);
      evaluations += 1;
      yield;
    }
    // the error must not decide undecided rows: then scores must be accurate
    const isUndecided = system.isUndecided?.() ?? false, { scoreError = Infinity } = control;
    const needed = isUndecided && system.scoreSize ? scoreError / system.scoreSize(after, exponent) : Infinity;
    setTolerances(y, after, control, Math.min(control.rtol, Math.max(needed, TIGHTEST)), atol, scale);
    trial.fill(0);
    addStages(trial, step, ERROR, K, dense[0]);
    const error = scaledNorm(dense[0], scale);
    wasFinite = error < Infinity;
    const wanted = wasFinite ? SAFETY * error ** -0.2 : 0;                                // infinity where the error is 0
    const factor = Math.min(LARGEST_FACTOR, Math.max(SMALLEST_FACTOR, wanted));
    h = step * (isAfterRejection ? Math.min(1, factor) : factor);
    isAfterRejection = !(error < 1);
    if (isAfterRejection) {
      rejected += 1;
      continue;
    }
    steps += 1;
    if (control.isPastWall) {
      const top = largest(after), growth = exponent * Math.LN2 + Math.log(top) - startLog;
      if (top > 0 && control.isPastWall(tNew, after, exponent, growth)) {
        status = 'PAST_DOUBLE_PRECISION';
        return outcome();
      }
    }
    const isEnough = onStep?.(tNew, after, exponent) === true;
    // ---- the times that were asked for inside this step
    if (frame && saved < times.length && (times[saved] <= tNew || tNew >= tEnd)) {
      prepareDense(y, after, step, K, dense);
      while (saved < times.length && (times[saved] <= tNew || tNew >= tEnd)) {
        const part = (times[saved] - t) / step;
        if (part >= 1 - 1e-9) trial.set(after);
        else {
          interpolate(part, y, dense, trial);
          if (isSphere) renormalise(trial, n, d);
        }
        frame(saved++, times[saved - 1], trial, exponent);
      }
    }
    // ---- move on
    y.set(after);
    K[0].set(K[STEP]);
    t = tNew;
    const shift = mayRescale ? binaryExponent(largest(y)) : 0;
    if (Math.abs(shift) > EXPONENT_RANGE) {
      multiplyAll(y, 2 ** -shift);
      multiplyAll(K[0], 2 ** -shift);
      atol *= 2 ** -shift;
      exponent += shift;
    }
    if (control.rounding === 0 && isGroupVanishing(y, control.group)) {
      status = 'NON_FINITE';
      return outcome();
    }
    if (isEnough) return outcome();
  }
  return outcome();
}

/**
 * The polynomial of order 4 between y and after.
 * @param {Float64Array} y
 * @param {Float64Array} after
 * @param {number} step
 * @param {Float64Array[]} K
 * @param {Float64Array[]} dense      four arrays to be filled
 */
function prepareDense(y, after, step, K, dense) {
  for (let i = 0; i < y.length; i++) {
    const change = after[i] - y[i], bend = step * K[0][i] - change;
    let rest = 0;
    for (let l = 0; l <= STEP; l++) rest += DENSE[l] * K[l][i];
    dense[0][i] = change;
    dense[1][i] = bend;
    dense[2][i] = change - step * K[STEP][i] - bend;
    dense[3][i] = step * rest;
  }
}

/**
 * @param {number} p          the fraction of the step
 * @param {Float64Array} y
 * @param {Float64Array[]} dense
 * @param {Float64Array} out
 */
function interpolate(p, y, dense, out) {
  const q = 1 - p;
  for (let i = 0; i < y.length; i++) {
    out[i] = y[i] + p * (dense[0][i] + q * (dense[1][i] + p * (dense[2][i] + q * dense[3][i])));
  }
}
