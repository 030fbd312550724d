// The tables [dynamics] and [solve] of a Spec, checked as attnlab checks them; and the times at which a run is saved.
import { Refusal } from './refusal.js';
import { checkKeys, finiteNumber, knownName, matrixOf, positiveNumber, show, wholeNumber } from './checks.js';
import { identity } from './linear.js';

/** @typedef {import('./types.js').Table} Table */

const DEFAULT_SAVES = 101;
const MOST_SAVES = 100_000;
const MOST_LAYERS = 1e6;
const SOLVE_KEYS = ['t_end', 'layers', 'times', 'saves', 'rtol', 'atol', 'stepper', 'dt', 'frame', 'max_steps', 'measure_error'];

/**
 * @typedef {object} FeedForward
 * @property {number[][]} outer
 * @property {'relu' | 'tanh' | 'identity'} sigma
 * @property {number[]} bias
 * @property {number[]} biasOutside
 */

/**
 * @typedef {object} Dynamics
 * @property {number} beta
 * @property {'euclidean' | 'sphere'} geometry
 * @property {'softmax' | 'exp_mean' | 'hardmax'} kernel
 * @property {'full' | 'causal'} mask
 * @property {FeedForward | null} feedforward
 */

/**
 * @typedef {object} Solve
 * @property {number} tEnd
 * @property {number[]} times
 * @property {number} rtol
 * @property {'adaptive' | 'euler' | 'rk4'} stepper
 * @property {number | null} dt
 * @property {'auto' | 'x' | 'z'} frame
 * @property {number} maxSteps
 * @property {number | null} layers
 */

/**
 * @param {Table | undefined} table
 * @param {number} d
 * @param {boolean} isLayers
 * @returns {Dynamics}
 */
export function readDynamics(table, d, isLayers) {
  const given = checkKeys('dynamics', table ?? {}, ['beta', 'geometry', 'kernel', 'mask', 'feedforward']);
  const geometry = knownName('dynamics.geometry', given.geometry ?? 'euclidean', ['euclidean', 'sphere']);
  const kernel = knownName('dynamics.kernel', given.kernel ?? 'softmax', ['softmax', 'exp_mean', 'hardmax']);
  const mask = knownName('dynamics.mask', given.mask ?? 'full', ['full', 'causal']);
  const beta = finiteNumber('dynamics.beta', given.beta ?? 1);
  const feedforward = given.feedforward == null ? null : readFeedForward(given.feedforward, d);
  if (feedforward) {
    if (geometry === 'sphere') throw new Refusal('The feed-forward variant has no version on the sphere.');
    if (kernel === 'exp_mean') throw new Refusal('The feed-forward variant needs attention weights that sum to 1, not exp_mean.');
    if (isLayers) throw new Refusal('The feed-forward variant is defined in continuous time only. Leave layers out.');
  }
  return { beta, geometry, kernel, mask, feedforward };
}

/**
 * @param {unknown} table
 * @param {number} d
 * @returns {FeedForward}
 */
function readFeedForward(table, d) {
  const given = checkKeys('dynamics.feedforward', table, ['W', 'sigma', 'bias', 'bias_outside']);
  const sigma = knownName('dynamics.feedforward.sigma', given.sigma ?? 'relu', ['relu', 'tanh', 'identity']);
  const outer = given.W == null ? identity(d) : matrixOf('dynamics.feedforward.W', given.W);
  const [bias, biasOutside] = ['bias', 'bias_outside'].map(key => {
    const value = given[key] ?? new Array(d).fill(0);
    if (!Array.isArray(value) || value.length !== d) throw new Refusal(`dynamics.feedforward.${key} must have d = ${d} numbers.`);
    return value.map(entry => finiteNumber(`dynamics.feedforward.${key}`, entry));
  });
  if (outer.length !== d || outer[0].length !== d) throw new Refusal(`dynamics.feedforward.W must be a ${d} by ${d} matrix.`);
  return { outer, sigma, bias, biasOutside };
}

/**
 * @param {Table} table
 * @param {Dynamics} dynamics
 * @returns {Solve}
 */
export function readSolve(table, dynamics) {
  const given = checkKeys('solve', table, SOLVE_KEYS);
  const stepper = knownName('solve.stepper', given.stepper ?? 'adaptive', ['adaptive', 'euler', 'rk4']);
  const frame = knownName('solve.frame', given.frame ?? 'auto', ['auto', 'x', 'z']);
  const rtol = positiveNumber('solve.rtol', given.rtol ?? 1e-8);
  if (rtol < 1e-14 || rtol > 0.1) throw new Refusal(`solve.rtol must be from 1e-14 to 0.1, got ${rtol}.`);
  if (given.atol != null && given.atol !== 0) positiveNumber('solve.atol', given.atol);
  const maxSteps = wholeNumber('solve.max_steps', given.max_steps ?? 100_000);
  if (given.times != null && given.saves != null) throw new Refusal('Give either solve.times or solve.saves, not both.');
  if (frame === 'z' && dynamics.geometry === 'sphere') throw new Refusal('The sphere has no rescaled frame: use frame = "x".');
  if (frame === 'x' && dynamics.feedforward) throw new Refusal('The feed-forward variant is an equation for z: use frame = "z".');
  const saves = given.saves == null ? null : wholeNumber('solve.saves', given.saves, 2, MOST_SAVES);
  const asked = given.times == null ? null : ascending(given.times);
  if (given.layers != null) return readLayers(given, { stepper, frame, rtol, maxSteps, saves, asked });
  const dt = given.dt == null ? null : positiveNumber('solve.dt', given.dt);
  if (stepper === 'adaptive' && dt !== null) throw new Refusal('solve.dt belongs to stepper = "euler" or "rk4", or to layers.');
  if (stepper !== 'adaptive' && dt === null) throw new Refusal(`solve.stepper = "${stepper}" needs a step size: dt = 0.1, say.`);
  if (given.t_end == null && !asked) throw new Refusal('Give the end of the run: solve.t_end, solve.times or solve.layers.');
  const tEnd = given.t_end == null && asked ? asked[asked.length - 1] : positiveNumber('solve.t_end', given.t_end);
  if (asked && asked[asked.length - 1] > tEnd) throw new Refusal(`solve.times must not go beyond t_end = ${tEnd}.`);
  return { tEnd, times: asked ?? equallySpaced(tEnd, saves, dt), rtol, stepper, dt, frame, maxSteps, layers: null };
}

/**
 * The default times, as in attnlab: equally spaced, or for fixed steps the steps themselves.
 * @param {number} tEnd
 * @param {number | null} saves
 * @param {number | null} dt
 * @returns {number[]}
 */
function equallySpaced(tEnd, saves, dt) {
  if (dt === null || saves !== null) return linspace(tEnd, saves ?? DEFAULT_SAVES);
  const steps = Math.ceil(tEnd / dt - 1e-9);
  if (!(steps < 1e9)) throw new Refusal(`solve.t_end / solve.dt must be a reasonable number of steps, got ${tEnd} / ${dt}.`);
  return wholes(linspace(steps, Math.min(steps + 1, DEFAULT_SAVES))).map(step => Math.min(step * dt, tEnd));
}

/**
 * @param {Table} given
 * @param {{stepper: string, frame: 'auto' | 'x' | 'z', rtol: number, maxSteps: number, saves: number | null,
 *          asked: number[] | null}} read
 * @returns {Solve}
 */
function readLayers(given, { stepper, frame, rtol, maxSteps, saves, asked }) {
  const dt = positiveNumber('solve.dt', given.dt ?? 1), layers = wholeNumber('solve.layers', given.layers, 1, MOST_LAYERS);
  if (given.t_end != null) throw new Refusal('solve.t_end and solve.layers are two different clocks: give one of them.');
  if (stepper !== 'adaptive') throw new Refusal('solve.layers is an equation of its own and takes no stepper.');
  if (frame === 'z') throw new Refusal('Layers are computed in x: use frame = "x" or "auto".');
  if (!asked && saves === null && layers > MOST_SAVES) throw new Refusal('For so many layers, give solve.saves or solve.times.');
  let numbers = saves === null ? Array.from({ length: layers + 1 }, (_, k) => k) : wholes(linspace(layers, saves));
  if (asked) {
    numbers = asked.map(t => roundToEven(t / dt));
    const isWhole = asked.every((t, k) => Math.abs(t - numbers[k] * dt) <= 1e-9 * dt);
    if (!isWhole || numbers[numbers.length - 1] > layers) {
      throw new Refusal(`With layers, solve.times must be whole multiples of dt = ${dt} up to layer ${layers}.`);
    }
  }
  const times = numbers.map(k => k * dt);
  return { tEnd: layers * dt, times, rtol, stepper: 'euler', dt, frame, maxSteps: Math.max(maxSteps, layers), layers };
}

/**
 * numpy.linspace(0, end, count).
 * @param {number} end
 * @param {number} count
 * @returns {number[]}
 */
export function linspace(end, count) {
  const step = end / (count - 1);
  return Array.from({ length: count }, (_, k) => count > 1 && k === count - 1 ? end : k * (count > 1 ? step : 0));
}

/**
 * Whole numbers nearest to ascending ones, each once.
 * @param {number[]} values
 */
function wholes(values) {
  return [...new Set(values.map(roundToEven))];
}

/** @param {number} value */
function roundToEven(value) {
  const low = Math.floor(value), part = value - low;
  return part > 0.5 || (part === 0.5 && low % 2 !== 0) ? low + 1 : low;
}

/**
 * @param {unknown} times
 * @returns {number[]}
 */
function ascending(times) {
  const isList = Array.isArray(times) && times.length > 0;
  if (!isList) throw new Refusal(`solve.times must be a list of numbers, got ${show(times)}.`);
  if (times.length > MOST_SAVES) throw new Refusal(`solve.times must be at most ${MOST_SAVES} numbers, got ${times.length}.`);
  times.forEach((t, k) => {
    finiteNumber('solve.times', t);
    if (t < 0) throw new Refusal(`solve.times must not be negative, got ${t}.`);
    if (k > 0 && t <= times[k - 1]) throw new Refusal(`solve.times must ascend strictly, but ${t} follows ${times[k - 1]}.`);
  });
  return times.slice();
}
