// The frozen-leader test: do the present leaders lead forever? It is sufficient but has no error bounds: an estimate, not a
// proof.
//
// Once every row attends to one token, its leader, leaders move as x_l(t + s) = e^{sV} x_l and followers keep their offset
// x_i - x_l. Every gap between the score of a leader and that of another token is then a sum of exponentials,
//
//   f_ik(s) = beta x_i . M (x_l - x_k) = sum C e^{mu s},     mu among lambda_a + lambda_b, lambda_a, 0.
//
// If all partial sums of the coefficients, by decreasing mu, are >= 0, the gap stays open forever (Abel). A margin is subtracted
// at its place among the exponents, so that the weight of other tokens in a row is negligible.

/** @typedef {import('./types.js').ResolvedMatrices} ResolvedMatrices */

const MARGIN = 40;                    // e^-40 = 4e-18
const SAME_EXPONENT = 1e-9;

/**
 * Why the test does not apply to an equation; empty if it applies.
 * @param {ResolvedMatrices} weights
 * @param {import('./options.js').Dynamics} dynamics
 * @returns {string}
 */
export function whyNotTested(weights, dynamics) {
  if (dynamics.geometry === 'sphere') return 'On the sphere every row attends to many tokens: the page has no test for the end.';
  if (weights.heads.length > 1) return 'The page has no test for the end with several heads.';
  if (dynamics.kernel === 'exp_mean') return 'The page has no test for the end with exp_mean.';
  if (dynamics.feedforward) return 'The page has no test for the end with a feed-forward layer.';
  if (dynamics.beta === 0) return 'With beta = 0 every row attends to all tokens equally.';
  if (!weights.isEigenbasis) return 'V has no basis of eigenvectors: the page has no test for the end.';
  if (!weights.growth.some(value => value > 0)) return 'No direction of V grows: the page has no test for the end.';
  const isTurning = weights.turn.some((b, c) => b !== 0 && weights.growth[c] > 0);
  if (isTurning) return 'A complex pair grows: the page has no test for the end.';
  return '';
}

/** The test for one equation; `check` can be called at any time of the run. */
export class FrozenTest {
  /**
   * @param {ResolvedMatrices} weights
   * @param {{beta: number, kernel: string, mask: string}} dynamics
   * @param {number} n
   */
  constructor(weights, { beta, kernel, mask }, n) {
    const { d, growth, turn } = weights, M = weights.eigenHeads[0].M;
    this.n = n;
    this.d = d;
    this.M = M.map(row => row.map(value => Math.sign(beta) * value));
    this.strength = Math.abs(beta);
    this.isHard = kernel === 'hardmax';
    this.isCausal = mask === 'causal';
    this.turns = turn.map((b, c) => b !== 0 || (c > 0 && turn[c - 1] !== 0));
    this.partner = turn.map((b, c) => b !== 0 ? c + 1 : c > 0 && turn[c - 1] !== 0 ? c - 1 : c);
    const mu = 0.5 * Math.min(...growth.filter(value => value > 0));
    const all = [0, mu, ...growth, ...growth.flatMap(a => growth.map(b => a + b))].sort((p, q) => q - p);
    const near = SAME_EXPONENT * Math.max(...growth.map(Math.abs));
    const exponents = all.filter((value, i) => i === 0 || all[i - 1] - value > near);
    const rank = (/** @type {number} */ value) => exponents.findIndex(exponent => exponent - value <= near);
    this.single = growth.map(rank);
    this.pair = growth.map(a => growth.map(b => rank(a + b)));
    this.constant = rank(0);
    this.margin = rank(mu);
    this.sums = new Float64Array(exponents.length);
    // of each token: its leader's coordinates, and its offset to the leader
    this.lead = new Float64Array(n * d);
    this.offset = new Float64Array(n * d);
  }

  /**
   * An empty text if the leaders lead forever, else why the test does not show it.
   * @param {Float64Array} y                (d, n)
   * @param {number} exponent
   * @param {Int32Array} leaders            (n)
   * @returns {string}
   */
  check(y, exponent, leaders) {
    const { n, d, lead, offset } = this;
    for (let i = 0; i < n; i++) {
      const l = leaders[i];
      if (leaders[l] !== l) return `Token ${i} attends to ${l}, which itself still attends to ${leaders[l]}.`;
      for (let c = 0; c < d; c++) {
        lead[c * n + i] = y[c * n + l];
        offset[c * n + i] = y[c * n + i] - y[c * n + l];
      }
    }
    const needed = (this.isHard ? 1e-9 : MARGIN) * 2 ** (-2 * exponent) / this.strength;
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < (this.isCausal ? i + 1 : n); k++) {
        if (k !== leaders[i] && !this.#staysOpen(i, k, needed)) return `Token ${i} may still turn from ${leaders[i]} to ${k}.`;
      }
    }
    return '';
  }

  /**
   * Whether the gap of row i between its leader and token k stays open. A turning term counts as minus its size.
   * @param {number} i
   * @param {number} k
   * @param {number} needed
   */
  #staysOpen(i, k, needed) {
    const { n, d, M, lead, offset, turns, single, pair, sums } = this;
    sums.fill(0);
    sums[this.margin] -= needed;
    for (let a = 0; a < d; a++) {
      const own = lead[a * n + i], away = offset[a * n + i];
      for (let b = 0; b < d; b++) {
        const weight = M[a][b];
        if (weight === 0) continue;
        const apart = lead[b * n + i] - lead[b * n + k], other = offset[b * n + k];
        const reach = turns[a] ? this.#reach(a, i) : 0, far = turns[b] ? this.#distance(b, i, k) : 0, size = Math.abs(weight);
        if (turns[a] || turns[b]) sums[pair[a][b]] -= size * (reach || Math.abs(own)) * (far || Math.abs(apart));
        else sums[pair[a][b]] += weight * own * apart;
        sums[single[b]] += turns[b] ? -size * Math.abs(away) * far : weight * away * apart;
        sums[single[a]] -= turns[a] ? size * reach * Math.abs(other) : weight * own * other;
        sums[this.constant] -= weight * away * other;
      }
    }
    let total = 0;
    for (let r = 0; r < sums.length; r++) {
      total += sums[r];
      if (!(total >= 0)) return false;
    }
    return true;
  }

  /**
   * The largest size that a coordinate of a leader has while its pair turns.
   * @param {number} c
   * @param {number} i
   */
  #reach(c, i) {
    const { n, lead, partner } = this;
    return Math.hypot(lead[c * n + i], lead[partner[c] * n + i]);
  }

  /**
   * The same for the difference of the leaders of two tokens.
   * @param {number} c
   * @param {number} i
   * @param {number} k
   */
  #distance(c, i, k) {
    const { n, lead } = this, p = this.partner[c];
    return Math.hypot(lead[c * n + i] - lead[c * n + k], lead[p * n + i] - lead[p * n + k]);
  }
}
