// The coordinates in which a run is drawn: x, z = e^{-tW} x, and the limit frame, which stays bounded: z where V grows, else x.
import { exponential, multiply } from './linear.js';

/** @typedef {import('./problem.js').Problem} Problem */
/** @typedef {'limit' | 'x' | 'z'} Frame */

/**
 * The matrix from the coordinates of the integration, y, to a frame at a time t: tokens of the frame = matrix y.
 * @param {Problem} problem
 * @param {Frame} frame
 * @param {number} t
 * @param {number} exponent             tokens are x = 2^exponent y
 * @returns {number[][]}
 */
export function frameMatrix({ weights, d, isEigen, leading }, frame, t, exponent) {
  const { growth, turn, basis, total } = weights, scale = exponent * Math.LN2;
  if (!isEigen || !weights.isEigenbasis) {
    // on the sphere there is only x; without an eigenbasis of V, z is formed as a whole, and mixed cases use the fastest growth
    const isRescaled = isEigen && (frame === 'z' || (frame === 'limit' && growth.every(value => value > 0)));
    const shrink = isEigen && frame === 'limit' && !isRescaled ? Math.max(leading, 0) * t : 0;
    const A = total.map((row, i) => row.map((value, k) => (isRescaled ? -t * value : 0) + (i === k ? (scale - shrink) : 0)));
    return exponential(A);
  }
  const blocks = growth.map((a, i) => growth.map((_, k) => {
    const rate = frame === 'z' || (frame === 'limit' && a > 0) ? a : 0;
    return i === k ? Math.exp(scale - rate * t) : 0;
  }));
  turn.forEach((b, c) => {
    if (b === 0 || frame === 'x' || (frame === 'limit' && growth[c] <= 0)) return;
    const size = blocks[c][c], cos = size * Math.cos(b * t), sin = size * Math.sin(b * t);
    blocks[c][c] = blocks[c + 1][c + 1] = cos;
    blocks[c][c + 1] = -sin;
    blocks[c + 1][c] = sin;
  });
  return d === 1 ? [[basis[0][0] * blocks[0][0]]] : multiply(basis, blocks);
}

/**
 * The growing coordinates of the basis, in which limits are counted. If none grows, and on the sphere: all coordinates.
 * @param {Problem} problem
 * @returns {boolean[]}
 */
export function countedOf({ weights, d, isEigen }) {
  const isAll = !isEigen || !weights.isEigenbasis || !weights.growth.some(value => value > 0);
  return isAll ? new Array(d).fill(true) : weights.growth.map(value => value > 0);
}

/**
 * Write the tokens of one frame, matrix y, into (n, 3) numbers from `at` on.
 * @param {number[][]} matrix
 * @param {Float64Array} y              (d, n)
 * @param {number} n
 * @param {Float32Array} out
 * @param {number} at
 */
export function writeFrame(matrix, y, n, out, at) {
  const d = matrix.length;
  for (let i = 0; i < n; i++) {
    for (let c = 0; c < d; c++) {
      let sum = 0;
      for (let b = 0; b < d; b++) sum += matrix[c][b] * y[b * n + i];
      out[at + 3 * i + c] = sum;
    }
  }
}

/**
 * The part of the tokens in which groups are counted, (n, d), Spec's coordinates of the limit frame.
 * @param {number[][]} matrix           of the limit frame
 * @param {boolean[]} counted
 * @param {Float64Array} y
 * @param {number} n
 * @returns {Float64Array}
 */
export function countedPart(matrix, counted, y, n) {
  const d = counted.length, out = new Float64Array(n * d);
  for (let i = 0; i < n; i++) {
    for (let c = 0; c < d; c++) {
      let sum = 0;
      for (let b = 0; b < d; b++) if (counted[b]) sum += matrix[c][b] * y[b * n + i];
      out[i * d + c] = sum;
    }
  }
  return out;
}
