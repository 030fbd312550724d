// window.attnlab.run: the states of a Spec at the times of al.simulate, as plain arrays.
import { Refusal } from './refusal.js';
import { exponential, apply } from './linear.js';
import { fieldOf, readProblem, tolerancesOf, toRows, wallOf } from './problem.js';
import { integrate } from './stepper.js';
import { integrateFixed } from './fixed.js';
import { rescaledSystem } from './rescaled.js';

/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').RunResult} RunResult */
/** @typedef {import('./stepper.js').System} System */
/** @typedef {import('./problem.js').Problem} Problem */

const RTOL = 1e-9;                    // tighter than attnlab's own default, because the method is of lower order
const SCORE_ERROR = 1e-3;             // of scores, while rows are undecided: rounding must not decide the leader of a cluster
const STEPS_PER_STEP = 3;             // a step of order 5 is shorter than one of order 8, which max_steps counts
const MOST_STEPS = 200_000;           // a run that slides between two leaders needs any number: these take about ten seconds
const MOST_PAIRS = 4e9;               // (row, column, head) that one run may compute: about half a minute
const MOST_NUMBERS = 2e7;             // saved

/**
 * Integrate a Spec. Yields after every evaluation of the velocity, and returns the result.
 * @param {Spec} spec
 * @param {import('./types.js').ResolvedWeights | null} [resolved]
 * @returns {Generator<void, RunResult, void>}
 */
export function* runSpec(spec, resolved = null) {
  const problem = readProblem(spec, resolved), { n, d, solve, weights } = problem, field = fieldOf(problem);
  if (solve.times.length * n * d > MOST_NUMBERS) throw new Refusal('A page cannot save so much. Choose fewer saves or tokens.');
  const isRescaled = frameOf(problem) === 'z', maxEvaluations = MOST_PAIRS / (weights.heads.length * n * n) + 100;
  /** @type {number[][][]} */
  const x = [];
  /** @type {System} */
  const system = isRescaled ? rescaledSystem(field, weights, problem.dynamics.feedforward) : {
    n, d, isSphere: problem.dynamics.geometry === 'sphere', mayRescale: problem.dynamics.geometry !== 'sphere',
    evaluate: (t, y, exponent, out) => field.evaluate(y, exponent, out),
    isUndecided: () => field.isUndecided(),
    scoreSize: (y, exponent) => field.scoreSize(y, exponent),
  };
  /** @type {import('./fixed.js').FixedControl['frame']} */
  const frame = (_, t, y, exponent) => {
    const rows = toRows(problem, y, exponent);
    if (!isRescaled) return void x.push(rows);
    const grow = exponential(weights.total.map(row => row.map(value => t * value)));
    x.push(rows.map(row => apply(grow, row)));
  };
  const isPastWall = isRescaled ? undefined : wallOf(problem, field), y = problem.start.slice();
  let run;
  if (solve.stepper !== 'adaptive' && solve.dt !== null) {
    const { tEnd, times, dt, stepper, maxSteps } = solve;
    run = integrateFixed(system, { tEnd, times, dt, stepper, maxSteps, maxEvaluations, isPastWall, frame }, y);
  } else {
    const rtol = Math.max(Math.min(RTOL, solve.rtol), 1e-12);
    const { group, rounding } = isRescaled ? { group: new Array(d).fill(0), rounding: 1e-15 } : tolerancesOf(problem);
    const maxSteps = Math.min(STEPS_PER_STEP * solve.maxSteps, MOST_STEPS);
    const { tEnd, times } = solve;
    const scoreError = SCORE_ERROR, bounds = { rtol, scoreError, group, rounding, maxSteps, maxEvaluations };
    run = integrate(system, { tEnd, times, ...bounds, isPastWall, frame }, y);
  }
  const { status } = yield* run;
  const finite = x.findIndex(rows => !rows.every(row => row.every(Number.isFinite)));
  if (finite < 0) return { times: solve.times.slice(0, x.length), x, status };
  // a run ends before its first time that is not finite
  return { times: solve.times.slice(0, finite), x: x.slice(0, finite), status: status === 'OK' ? 'NON_FINITE' : status };
}

/**
 * x or z, as in attnlab: z for fixed steps with one head, and for the feed-forward variant. Adaptive steps work in both
 * frames, so they always use x.
 * @param {Problem} problem
 * @returns {'x' | 'z'}
 */
function frameOf({ dynamics, solve, weights }) {
  if (dynamics.feedforward) return 'z';
  if (dynamics.geometry === 'sphere' || solve.layers !== null || solve.stepper === 'adaptive') return 'x';
  if (solve.frame !== 'auto') return solve.frame;
  return weights.heads.length === 1 && dynamics.kernel !== 'exp_mean' ? 'z' : 'x';
}
