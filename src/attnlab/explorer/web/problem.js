// Turn a Spec into arrays: matrices, first tokens, the equation, and the coordinates in which it is integrated.
import { Refusal } from './refusal.js';
import { checkKeys, checkTable } from './checks.js';
import { apply } from './linear.js';
import { drawStart } from './starts.js';
import { resolveWeights } from './weights.js';
import { readDynamics, readSolve } from './options.js';
import { Field } from './field.js';
import { orderLossTest, WALL_GROWTH } from './precision_wall.js';

/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').ResolvedWeights} ResolvedWeights */
/** @typedef {import('./types.js').ResolvedMatrices} ResolvedMatrices */
/** @typedef {import('./options.js').Dynamics} Dynamics */
/** @typedef {import('./options.js').Solve} Solve */

/**
 * @typedef {object} Problem
 * @property {number} n
 * @property {number} d
 * @property {ResolvedMatrices} weights
 * @property {Dynamics} dynamics
 * @property {Solve} solve
 * @property {number[][]} x0                Spec's coordinates
 * @property {boolean} isEigen              whether y is in the coordinates of weights.basis, not in the Spec's
 * @property {Float64Array} start           (d, n), in the coordinates of the integration
 * @property {number} leading               the largest real part of an eigenvalue of sum_h V_h
 */

const SPHERE_TOLERANCE = 1e-8;               // how far from norm 1 a start on the sphere may be
const ROUNDING = 1e-15;                      // of coupled coordinates: for more accuracy the integrator would stall

/**
 * @param {Spec} spec
 * @param {ResolvedWeights | null} [resolved]
 * @returns {Problem}
 */
export function readProblem(spec, resolved = null) {
  checkKeys('A Spec', spec, ['weights', 'start', 'solve', 'dynamics', 'observe']);
  for (const section of ['weights', 'start', 'solve']) {
    if (!Object.hasOwn(spec, section)) throw new Refusal(`A Spec needs weights, start and solve; ${section} is missing.`);
    checkTable(`Spec.${section}`, /** @type {any} */ (spec)[section]);
  }
  const weights = resolveWeights(spec, resolved), { d } = weights, isLayers = spec.solve?.layers != null;
  const dynamics = readDynamics(spec.dynamics, d, isLayers), solve = readSolve(spec.solve, dynamics);
  const drawn = drawStart(spec.start, d), n = drawn.length;
  if (drawn[0].length !== d) throw new Refusal(`The tokens have ${drawn[0].length} coordinates, and the weights act on ${d}.`);
  const isSphere = dynamics.geometry === 'sphere', x0 = isSphere ? onSphere(drawn) : drawn;
  const isEigen = !isSphere, start = new Float64Array(n * d);
  x0.forEach((token, i) => {
    const own = isEigen ? apply(weights.inverse, token) : token;
    own.forEach((value, c) => { start[c * n + i] = value; });
  });
  if (!start.every(Number.isFinite)) throw new Refusal('The first tokens are too large for double precision. Scale them down.');
  return { n, d, weights, dynamics, solve, x0, isEigen, start, leading: Math.max(...weights.growth) };
}

/**
 * @param {number[][]} tokens
 * @returns {number[][]}
 */
function onSphere(tokens) {
  return tokens.map(token => {
    const length = Math.hypot(...token);
    if (!(Math.abs(length - 1) <= SPHERE_TOLERANCE)) {
      throw new Refusal(`On the sphere every token must have norm 1, but one has ${+length.toPrecision(6)}. Use the law sphere.`);
    }
    return token.map(value => value / length);
  });
}

/**
 * The velocity of a problem. Layers on the sphere are not projected: they are divided by their norm afterwards.
 * @param {Problem} problem
 * @returns {Field}
 */
export function fieldOf({ n, d, weights, dynamics, solve, isEigen }) {
  return new Field({
    n, d, heads: isEigen ? weights.eigenHeads : weights.heads, beta: dynamics.beta, kernel: dynamics.kernel,
    isCausal: dynamics.mask === 'causal', isSphere: dynamics.geometry === 'sphere' && solve.layers === null,
  });
}

/**
 * The group of each coordinate, and the highest accuracy that is possible: if no head moves one group by another, rounding
 * in each group is relative to that group only.
 * @param {Problem} problem
 * @returns {{group: number[], rounding: number}}
 */
export function tolerancesOf({ d, weights, isEigen }) {
  const group = isEigen ? weights.group : new Array(d).fill(0);
  const isCoupled = !weights.isEigenbasis || group.every(g => g === group[0])
    || weights.eigenHeads.some(({ V }) => V.some((row, i) => row.some((value, k) => value !== 0 && group[i] !== group[k])));
  return { group, rounding: isCoupled ? ROUNDING : 0 };
}

/**
 * The test of the precision wall for the stepper; undefined where the tokens cannot grow that far.
 * @param {Problem} problem
 * @param {Field} field
 * @returns {((t: number, y: Float64Array, exponent: number, growth: number) => boolean) | undefined}
 */
export function wallOf({ weights, dynamics, solve, leading, start }, field) {
  const rowSums = weights.eigenHeads.map(({ V }) => V.map(row => row.reduce((sum, value) => sum + Math.abs(value), 0)));
  const bound = rowSums.reduce((sum, rows) => sum + Math.max(...rows), 0);                  // of the growth of |x|
  if (dynamics.geometry === 'sphere' || bound * solve.tEnd < WALL_GROWTH) return undefined;
  let rate = leading;
  if (solve.layers !== null && solve.dt !== null) {
    const { growth, turn } = weights, dt = solve.dt;
    const sizes = growth.map((a, i) => Math.hypot(1 + dt * a, dt * (turn[i] || turn[i - 1] || 0)));
    rate = Math.log(Math.max(...sizes, 1e-300)) / dt;
  }
  const from = weights.heads.length > 1 || !(rate > 0) ? 0 : WALL_GROWTH / rate, isLost = orderLossTest(field, start);
  return (t, y, exponent, growth) => t >= from && growth >= WALL_GROWTH && isLost(y, exponent);
}

/**
 * The tokens 2^exponent y in the Spec's coordinates, as rows of plain numbers.
 * @param {Problem} problem
 * @param {Float64Array} y
 * @param {number} exponent
 * @returns {number[][]}
 */
export function toRows({ n, d, weights, isEigen }, y, exponent) {
  const scale = 2 ** exponent;
  return Array.from({ length: n }, (_, i) => {
    const token = Array.from({ length: d }, (_, c) => scale * y[c * n + i]);
    return isEigen ? apply(weights.basis, token) : token;
  });
}
