// The precision wall of attnlab's engine/wall.py: whether double precision still knows which token a row attends to.

/** @typedef {import('./field.js').Field} Field */

const EPSILON = 2 ** -52;

/** There is no test before the tokens have grown by e^28. */
export const WALL_GROWTH = 28;

/**
 * Return a function: whether rounding hides, for some row of some head, which token is its best one.
 * @param {Field} field
 * @param {Float64Array} start           (d, n): tokens that are equal here stay equal and do not count
 * @returns {(y: Float64Array, exponent: number) => boolean}
 */
export function orderLossTest(field, start) {
  const { n, d, heads, isCausal } = field, isHard = field.kernel === 'hardmax', q = new Float64Array(d);
  const sameAs = firstEqual(start, n, d);
  return (y, exponent) => {
    const factor = Math.abs(field.beta) * Math.LOG2E * 2 ** Math.min(2 * exponent, 1000), sign = Math.sign(field.beta);
    for (const { M } of heads) {
      for (let i = 0; i < n; i++) {
        for (let b = 0; b < d; b++) {
          q[b] = 0;
          for (let a = 0; a < d; a++) q[b] += sign * M[a * d + b] * y[a * n + i];
        }
        let best = 0, first = -Infinity, second = -Infinity;
        for (let j = 0; j < (isCausal ? i + 1 : n); j++) {
          let score = 0;
          for (let b = 0; b < d; b++) score += q[b] * y[b * n + j];
          if (score > first) {
            if (sameAs[best] !== sameAs[j]) second = first;
            best = j;
            first = score;
          } else if (score > second && sameAs[best] !== sameAs[j]) second = score;
        }
        let noise = 0;
        for (let b = 0; b < d; b++) noise += Math.abs(q[b] * y[b * n + best]);
        noise *= EPSILON;
        if ((isHard || noise * factor >= 0.25) && first - second <= 2 * noise) return true;
      }
    }
    return false;
  };
}

/**
 * For each token the number of the first token that equals it.
 * @param {Float64Array} y
 * @param {number} n
 * @param {number} d
 * @returns {Int32Array}
 */
function firstEqual(y, n, d) {
  const seen = new Map();
  return Int32Array.from({ length: n }, (_, i) => {
    const key = Array.from({ length: d }, (_, c) => y[c * n + i]).join();
    if (!seen.has(key)) seen.set(key, i);
    return seen.get(key);
  });
}
