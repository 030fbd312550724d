// The arithmetic of a Runge-Kutta step on tokens (d, n).

/**
 * The exponent e with |value| in [2^(e - 1), 2^e).
 * @param {number} value
 * @returns {number}
 */
export function binaryExponent(value) {
  return value > 0 && value < Infinity ? Math.max(-1000, Math.min(1000, Math.floor(Math.log2(value)) + 1)) : 0;
}

/**
 * max |y|; NaN where there is one.
 * @param {Float64Array} y
 * @returns {number}
 */
export function largest(y) {
  let top = 0;
  for (let i = 0; i < y.length; i++) {
    const size = Math.abs(y[i]);
    if (!(size <= top)) {
      if (size !== size) return size;
      top = size;
    }
  }
  return top;
}

/**
 * Every token divided by its norm.
 * @param {Float64Array} y
 * @param {number} n
 * @param {number} d
 */
export function renormalise(y, n, d) {
  for (let i = 0; i < n; i++) {
    let square = 0;
    for (let c = 0; c < d; c++) square += y[c * n + i] * y[c * n + i];
    const length = Math.sqrt(square);
    for (let c = 0; c < d; c++) y[c * n + i] /= length;
  }
}

/**
 * @param {Float64Array} y
 * @param {number} factor
 */
export function multiplyAll(y, factor) {
  for (let i = 0; i < y.length; i++) y[i] *= factor;
}

/**
 * out = y + h sum_l weights[l] K[l].
 * @param {Float64Array} y
 * @param {number} h
 * @param {number[]} weights
 * @param {Float64Array[]} K
 * @param {Float64Array} out
 */
export function addStages(y, h, weights, K, out) {
  out.fill(0);
  for (let l = 0; l < weights.length; l++) {
    const weight = weights[l], k = K[l];
    if (weight !== 0) for (let i = 0; i < out.length; i++) out[i] += weight * k[i];
  }
  for (let i = 0; i < out.length; i++) out[i] = y[i] + h * out[i];
}
