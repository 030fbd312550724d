// Fixed steps: Euler, the classical method of order 4, and residual layers x <- x + dt attention, which are Euler's steps.
import { addStages, binaryExponent, largest, multiplyAll, renormalise } from './arithmetic.js';

/** @typedef {import('./stepper.js').System} System */
/** @typedef {import('./stepper.js').Outcome} Outcome */

/**
 * @typedef {object} FixedControl
 * @property {number} tEnd
 * @property {number} dt
 * @property {'euler' | 'rk4'} stepper
 * @property {ArrayLike<number>} times
 * @property {number} maxSteps
 * @property {number} [maxEvaluations]
 * @property {(t: number, y: Float64Array, exponent: number, growth: number) => boolean} [isPastWall]
 * @property {(index: number, t: number, y: Float64Array, exponent: number) => void} frame
 */

const STAGES = {
  euler: { A: [[]], c: [0], step: [1] },
  rk4: { A: [[], [1 / 2], [0, 1 / 2], [0, 0, 1]], c: [0, 1 / 2, 1 / 2, 1], step: [1 / 6, 1 / 3, 1 / 3, 1 / 6] },
};
const EXPONENT_RANGE = 32;

/**
 * Integrate y, which holds the start (d, n) and is overwritten by the end. Yields after every evaluation.
 * @param {System} system
 * @param {FixedControl} control
 * @param {Float64Array} y
 * @returns {Generator<void, Outcome, void>}
 */
export function* integrateFixed(system, control, y) {
  const { n, d } = system, { tEnd, dt, times, frame } = control, { A, c, step: weights } = STAGES[control.stepper];
  const K = A.map(() => new Float64Array(n * d)), next = new Float64Array(n * d);
  const trial = new Float64Array(n * d), after = new Float64Array(n * d);
  const startSize = largest(y), startLog = startSize > 0 ? Math.log(startSize) : 0;
  let exponent = system.mayRescale ? binaryExponent(startSize) : 0;
  if (exponent !== 0) multiplyAll(y, 2 ** -exponent);
  let t = 0, saved = 0, steps = 0, evaluations = 1;
  const outcome = (/** @type {import('./types.js').Status} */ status) => ({ status, saved, t, steps, rejected: 0, evaluations });
  system.evaluate(0, y, exponent, K[0]);
  while (saved < times.length && times[saved] <= 0) frame(saved++, 0, y, exponent);
  yield;
  while (t < tEnd) {
    if (steps >= control.maxSteps || evaluations >= (control.maxEvaluations ?? Infinity)) return outcome('MAX_STEPS');
    let tNew = (steps + 1) * dt;
    if (tNew > tEnd - 1e-9 * dt) tNew = tEnd;
    const step = tNew - t;
    for (let s = 1; s < A.length; s++) {
      addStages(y, step, A[s], K, trial);
      system.evaluate(t + c[s] * step, trial, exponent, K[s]);
      evaluations += 1;
      yield;
    }
    addStages(y, step, weights, K, after);
    if (system.isSphere) renormalise(after, n, d);
    if (!(largest(after) < Infinity)) return outcome('NON_FINITE');
    steps += 1;
    system.evaluate(tNew, after, exponent, next);
    evaluations += 1;
    yield;
    if (control.isPastWall) {
      const top = largest(after), growth = exponent * Math.LN2 + Math.log(top) - startLog;
      if (top > 0 && control.isPastWall(tNew, after, exponent, growth)) return outcome('PAST_DOUBLE_PRECISION');
    }
    while (saved < times.length && (times[saved] <= tNew || tNew >= tEnd)) {
      const part = (times[saved] - t) / step;
      if (part >= 1 - 1e-9) trial.set(after);
      else {
        interpolate(part, step, y, after, K[0], control.stepper === 'rk4' ? next : null, trial);
        if (system.isSphere) renormalise(trial, n, d);
      }
      frame(saved++, times[saved - 1], trial, exponent);
    }
    y.set(after);
    K[0].set(next);
    t = tNew;
    const shift = system.mayRescale ? binaryExponent(largest(y)) : 0;
    if (Math.abs(shift) > EXPONENT_RANGE) {
      multiplyAll(y, 2 ** -shift);
      multiplyAll(K[0], 2 ** -shift);
      exponent += shift;
    }
  }
  return outcome('OK');
}

/**
 * A straight line, or where the velocity at the end is given, the cubic of Hermite.
 * @param {number} p
 * @param {number} h
 * @param {Float64Array} y
 * @param {Float64Array} after
 * @param {Float64Array} before        velocity at the start
 * @param {Float64Array | null} behind velocity at the end
 * @param {Float64Array} out
 */
function interpolate(p, h, y, after, before, behind, out) {
  const q = 1 - p;
  for (let i = 0; i < y.length; i++) {
    const change = after[i] - y[i];
    out[i] = y[i] + p * change;
    if (behind) out[i] += p * q * (q * (h * before[i] - change) - p * (h * behind[i] - change));
  }
}
