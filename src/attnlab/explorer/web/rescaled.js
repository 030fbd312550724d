// The equation for z = e^{-tW} x, W = sum_h V_h, in which fixed steps with one head and the feed-forward variant are defined.
//
//   z' = e^{-tW} (x' - W x),    x = e^{tW} z          feed-forward:  z' = outer sigma(that + bias) + biasOutside
import { exponential } from './linear.js';
import { blockMatrix } from './eigen.js';

/** @typedef {import('./stepper.js').System} System */
/** @typedef {import('./field.js').Field} Field */
/** @typedef {import('./types.js').ResolvedMatrices} ResolvedMatrices */
/** @typedef {import('./options.js').FeedForward} FeedForward */

/** @type {{[name: string]: (u: number) => number}} */
const ACTIVATIONS = { relu: u => u < 0 ? 0 : u, tanh: Math.tanh, identity: u => u };

/**
 * The system for z in the coordinates of weights.basis.
 * @param {Field} field               of the eigen-coordinates
 * @param {ResolvedMatrices} weights
 * @param {FeedForward | null} feedforward
 * @returns {System}
 */
export function rescaledSystem(field, weights, feedforward) {
  const { n, d } = field, { growth, turn } = weights, rate = Math.max(...growth);
  const W = weights.isEigenbasis ? blockMatrix(growth, turn) : weights.total;
  const x = new Float64Array(n * d), column = new Float64Array(d);
  /** @type {(t: number) => number[][]} */
  const power = t => weights.isEigenbasis ? blockPower(growth, turn, rate, t)
    : exponential(W.map((row, i) => row.map((value, k) => t * (value - (i === k ? rate : 0)))));

  return {
    n, d, isSphere: false, mayRescale: feedforward === null,
    evaluate(t, z, exponent, out) {
      // e^{tW} = e^{rate t} grow: the scale goes into the exponent, so that nothing overflows
      const grow = power(t), shrink = power(-t);
      for (let i = 0; i < n; i++) writeProduct(grow, z, i, x);
      field.evaluate(x, exponent + rate * t / Math.LN2, out);
      for (let i = 0; i < n; i++) {
        for (let c = 0; c < d; c++) {
          let self = 0;
          for (let b = 0; b < d; b++) self += W[c][b] * x[b * n + i];
          out[c * n + i] -= self;
        }
        writeProduct(shrink, out, i, out);
        if (feedforward) applyLayer(out, i);
      }
    },
  };

  /**
   * to[i] = matrix from[i]; the two arrays may be one.
   * @param {number[][]} matrix
   * @param {Float64Array} from
   * @param {number} i
   * @param {Float64Array} to
   */
  function writeProduct(matrix, from, i, to) {
    for (let c = 0; c < d; c++) {
      column[c] = 0;
      for (let b = 0; b < d; b++) column[c] += matrix[c][b] * from[b * n + i];
    }
    for (let c = 0; c < d; c++) to[c * n + i] = column[c];
  }

  /**
   * The feed-forward layer acts in the Spec's coordinates.
   * @param {Float64Array} out
   * @param {number} i
   */
  function applyLayer(out, i) {
    const { outer, sigma, bias, biasOutside } = /** @type {FeedForward} */ (feedforward), activate = ACTIVATIONS[sigma];
    writeProduct(weights.basis, out, i, out);
    for (let c = 0; c < d; c++) out[c * n + i] = activate(out[c * n + i] + bias[c]);
    writeProduct(outer, out, i, out);
    for (let c = 0; c < d; c++) out[c * n + i] += biasOutside[c];
    writeProduct(weights.inverse, out, i, out);
  }
}

/**
 * e^{t (blocks - rate)}.
 * @param {number[]} growth
 * @param {number[]} turn
 * @param {number} rate
 * @param {number} t
 * @returns {number[][]}
 */
function blockPower(growth, turn, rate, t) {
  const power = growth.map((a, i) => growth.map((_, k) => i === k ? Math.exp(t * (a - rate)) : 0));
  turn.forEach((b, i) => {
    if (!b) return;
    const size = power[i][i], c = size * Math.cos(b * t), s = size * Math.sin(b * t);
    power[i][i] = power[i + 1][i + 1] = c;
    power[i][i + 1] = s;
    power[i + 1][i] = -s;
  });
  return power;
}
