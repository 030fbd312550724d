// A sweep: many short runs in which one number of the Spec is changed, each over several random starts.
import { Refusal } from './refusal.js';
import { Recorder } from './record.js';

/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').SweepRequest} SweepRequest */
/** @typedef {import('./types.js').SweepPoint} SweepPoint */

const MOST_RUNS = 5000;

/**
 * The Spec of one run of a sweep. Tokens moved by hand belong to another start and are left out.
 * @param {SweepRequest} request
 * @param {number} value
 * @param {number} rng
 * @returns {Spec}
 */
export function specOfPoint({ spec, path, n }, value, rng) {
  const { moved, ...start } = spec.start;
  /** @type {Spec} */
  const changed = { ...spec, start: { ...start, rng } };
  if (n !== undefined) changed.start.n = n;
  if (path === 'dynamics.beta') changed.dynamics = { ...spec.dynamics, beta: value };
  else if (path === 'start.n') changed.start.n = value;
  else {
    const at = /^weights\.eigenvalues\.(\d+)$/.exec(path), eigenvalues = spec.weights.eigenvalues?.slice();
    if (!at || typeof eigenvalues?.[at[1]] !== 'number') {
      throw new Refusal(`A sweep changes dynamics.beta, start.n or a real eigenvalue weights.eigenvalues.0, ...; got ${path}.`);
    }
    eigenvalues[Number(at[1])] = value;
    changed.weights = { ...spec.weights, eigenvalues };
  }
  return changed;
}

/**
 * Run a sweep. Yields nothing after every evaluation, and a point after every run.
 * @param {SweepRequest} request
 * @param {import('./types.js').ResolvedWeights | null} resolved
 * @returns {Generator<SweepPoint | void, void, void>}
 */
export function* sweep(request, resolved) {
  const { values, seeds, spec } = request;
  const isShort = Array.isArray(values) && values.length * seeds <= MOST_RUNS;
  if (!isShort) throw new Refusal(`A sweep has at most ${MOST_RUNS} runs.`);
  if (spec.start.law === 'given') throw new Refusal('A sweep draws other starts: choose a random start law.');
  for (const value of values) {
    for (let rng = 0; rng < seeds; rng++) {
      const recorder = new Recorder(specOfPoint(request, value, rng), { frames: 2, rtol: 1e-6, untilSettled: true }, resolved);
      yield* recorder.run();
      const settled = recorder.estimate?.holds === true && !recorder.estimate.isStill;
      const count = settled && recorder.estimate ? recorder.estimate.count : recorder.finalGroups().count;
      yield { value, rng, count, settled, status: recorder.status };
    }
  }
}
