// The velocity of all tokens: x_i' = sum_h V_h mean_i^h, mean_i^h = sum_j P_ij^h x_j, for d <= 3.
//
//   softmax   P_ij = exp(beta s_ij) / sum_l exp(beta s_il),    s_ij = x_i . M x_j
//   exp_mean  P_ij = exp(beta s_ij) / (number of tokens that i sees)
//   hardmax   P_ij = 1 / |C_i| on C_i = argmax_j beta s_ij, else 0
//
// Tokens are kept as x = 2^exponent y, y a Float64Array (d, n): coordinate c of token i is y[c n + i].

import { largest } from './arithmetic.js';
import { expOfGap, NEGLIGIBLE } from './exponential.js';

const MIXED = 1e-5;                   // a row that attends to more than 1 + this many tokens is undecided
const LARGEST_FACTOR = 2 ** 700;      // beyond this any two scores that differ at all give weights 0 and 1

/** @typedef {import('./types.js').Head} Head */
/** @typedef {'softmax' | 'exp_mean' | 'hardmax'} Kernel */

/**
 * @typedef {object} Equation
 * @property {number} n
 * @property {number} d
 * @property {Head[]} heads
 * @property {number} beta
 * @property {Kernel} kernel
 * @property {boolean} isCausal
 * @property {boolean} isSphere       the velocity is projected on the tangent space
 */

/** The equation for n tokens, and facts of the last evaluation: the best token of each row, and how many a row attends to. */
export class Field {
  /** @param {Equation} equation */
  constructor({ n, d, heads, beta, kernel, isCausal, isSphere }) {
    this.n = n;
    this.d = d;
    this.heads = heads.map(head => ({ M: Float64Array.from(head.M.flat()), V: Float64Array.from(head.V.flat()) }));
    this.beta = beta;
    this.kernel = beta === 0 && kernel === 'hardmax' ? 'softmax' : kernel;      // all scores are tied: all count equally
    this.isCausal = isCausal;
    this.isSphere = isSphere;
    /** (heads, n): the token with the largest score of each row, the first one of equals. */
    this.best = new Int32Array(heads.length * n);
    /** e^entropy of the rows, averaged over rows and heads. */
    this.listened = 0;
    /** The number of rows that changed their best token, added up until a caller sets it to 0. */
    this.turned = 0;
    this.evaluations = 0;
    // of the row in hand: factor M^T y_i, the mean of what it attends to, and the best token
    this.query = new Float64Array(3);
    this.mean = new Float64Array(3);
    this.at = 0;
  }

  /**
   * out = x' / 2^exponent of the tokens x = 2^exponent y.
   * @param {Float64Array} y
   * @param {number} exponent
   * @param {Float64Array} out
   */
  evaluate(y, exponent, out) {
    const factor = Math.max(-LARGEST_FACTOR, Math.min(LARGEST_FACTOR, this.beta * 2 ** (2 * exponent)));
    const { n, d, heads, isCausal, best, mean } = this;
    out.fill(0);
    let listened = 0;
    for (let h = 0; h < heads.length; h++) {
      const { M, V } = heads[h];
      for (let i = 0; i < n; i++) {
        const seen = isCausal ? i + 1 : n, row = h * n + i;
        this.#ask(M, y, i, factor);
        listened += this.kernel === 'hardmax' ? this.#hardRow(y, seen) : this.#softRow(y, seen, best[row]);
        if (best[row] !== this.at) this.turned += 1;
        best[row] = this.at;
        for (let c = 0; c < d; c++) {
          let sum = 0;
          for (let b = 0; b < d; b++) sum += V[c * d + b] * mean[b];
          out[c * n + i] += sum;
        }
      }
    }
    this.listened = listened / (heads.length * n);
    this.evaluations += 1;
    if (this.isSphere) this.#project(y, out);
  }

  /**
   * this.query = factor M^T y_i, so that beta s_ij = query . y_j; zeros in unused coordinates.
   * @param {Float64Array} M
   * @param {Float64Array} y
   * @param {number} i
   * @param {number} factor
   */
  #ask(M, y, i, factor) {
    const { n, d, query } = this;
    for (let b = 0; b < d; b++) {
      let sum = 0;
      for (let a = 0; a < d; a++) sum += M[a * d + b] * y[a * n + i];
      query[b] = factor * sum;
    }
  }

  /**
   * One row of softmax or exp_mean; returns e^entropy. Unused coordinates read the first one, times 0: one loop for every d.
   * One pass: each score is compared with that of the best token so far, beginning with the best token of the last evaluation.
   * @param {Float64Array} y
   * @param {number} seen        how many tokens it sees
   * @param {number} at          the token that was best the last time
   */
  #softRow(y, seen, at) {
    const { n, d, mean, query } = this, second = d > 1 ? n : 0, third = d > 2 ? 2 * n : 0;
    const q0 = query[0], q1 = query[1], q2 = query[2];
    let top = q0 * y[at] + q1 * y[second + at] + q2 * y[third + at];
    let weight = 0, weighted = 0, m0 = 0, m1 = 0, m2 = 0;
    for (let j = 0; j < seen; j++) {
      const x0 = y[j], x1 = y[second + j], x2 = y[third + j], score = q0 * x0 + q1 * x1 + q2 * x2;
      let gap = score - top;
      if (gap < NEGLIGIBLE) continue;
      if (gap > 0) {
        const shrink = gap > -NEGLIGIBLE ? 0 : expOfGap(-gap);
        weighted = shrink * (weighted - gap * weight);
        weight *= shrink;
        m0 *= shrink;
        m1 *= shrink;
        m2 *= shrink;
        top = score;
        at = j;
        gap = 0;
      } else if (gap === 0 && j < at) at = j;
      const e = expOfGap(gap);
      weight += e;
      weighted += e * gap;
      m0 += e * x0;
      m1 += e * x1;
      m2 += e * x2;
    }
    const share = this.kernel === 'softmax' ? 1 / weight : Math.exp(top) / seen;
    mean[0] = m0 * share;
    mean[1] = m1 * share;
    mean[2] = m2 * share;
    this.at = at;
    return weight * Math.exp(-weighted / weight);
  }

  /**
   * One row of hardmax: the mean of all tokens with the largest score; returns how many there are.
   * @param {Float64Array} y
   * @param {number} seen
   */
  #hardRow(y, seen) {
    const { n, d, mean, query } = this;
    let top = -Infinity, at = 0, count = 0;
    for (let j = 0; j < seen; j++) {
      let score = 0;
      for (let b = 0; b < d; b++) score += query[b] * y[b * n + j];
      if (score > top) {
        top = score;
        at = j;
        count = 0;
        mean.fill(0);
      }
      if (score === top) {
        count += 1;
        for (let c = 0; c < d; c++) mean[c] += y[c * n + j];
      }
    }
    for (let c = 0; c < d; c++) mean[c] = count > 0 ? mean[c] / count : NaN;      // NaN scores are never the largest
    this.at = at;
    return count;
  }

  /**
   * Whether some row attended to several tokens in the last evaluation, or changed its best token since the last call.
   * @returns {boolean}
   */
  isUndecided() {
    const { turned } = this;
    this.turned = 0;
    return turned > 0 || (this.listened - 1) * this.best.length > MIXED;
  }

  /**
   * A bound of all scores beta x_i . M x_j.
   * @param {Float64Array} y
   * @param {number} exponent
   * @returns {number}
   */
  scoreSize(y, exponent) {
    const size = largest(y), weight = Math.max(...this.heads.map(({ M }) => largest(M)));
    return Math.abs(this.beta) * weight * size * size * 2 ** (2 * exponent);
  }

  /**
   * The best token of one row, for tokens that were not evaluated.
   * @param {number} h
   * @param {Float64Array} y
   * @param {number} i
   * @returns {number}
   */
  bestOf(h, y, i) {
    this.#ask(this.heads[h].M, y, i, this.beta);
    this.#hardRow(y, this.isCausal ? i + 1 : this.n);
    return this.at;
  }

  /**
   * @param {Float64Array} y
   * @param {Float64Array} out
   */
  #project(y, out) {
    const { n, d } = this;
    for (let i = 0; i < n; i++) {
      let inner = 0;
      for (let c = 0; c < d; c++) inner += out[c * n + i] * y[c * n + i];
      for (let c = 0; c < d; c++) out[c * n + i] -= inner * y[c * n + i];
    }
  }
}
