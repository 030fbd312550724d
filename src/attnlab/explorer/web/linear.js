// Small real matrices as rows of numbers: products, inverse, exponential, an orthogonal basis.

/** @typedef {number[][]} Matrix */

/**
 * @param {number} d
 * @returns {Matrix}
 */
export function identity(d) {
  return Array.from({ length: d }, (_, i) => Array.from({ length: d }, (_, k) => i === k ? 1 : 0));
}

/**
 * @param {Matrix} A
 * @returns {Matrix}
 */
export function transpose(A) {
  return A[0].map((_, k) => A.map(row => row[k]));
}

/**
 * @param {Matrix} A
 * @param {Matrix} B
 * @returns {Matrix}
 */
export function multiply(A, B) {
  return A.map(row => B[0].map((_, k) => row.reduce((sum, value, l) => sum + value * B[l][k], 0)));
}

/**
 * @param {Matrix} A
 * @param {number[]} v
 * @returns {number[]}
 */
export function apply(A, v) {
  return A.map(row => row.reduce((sum, value, k) => sum + value * v[k], 0));
}

/**
 * A + factor B.
 * @param {Matrix} A
 * @param {Matrix} B
 * @param {number} [factor]
 * @returns {Matrix}
 */
export function add(A, B, factor = 1) {
  return A.map((row, i) => row.map((value, k) => value + factor * B[i][k]));
}

/**
 * The square root of the sum of all squares.
 * @param {Matrix} A
 * @returns {number}
 */
export function size(A) {
  return Math.hypot(...A.flat());
}

/**
 * @param {number[]} u
 * @param {number[]} v
 * @returns {number}
 */
export function dot(u, v) {
  return u.reduce((sum, value, k) => sum + value * v[k], 0);
}

/**
 * @param {Matrix} A
 * @returns {boolean}
 */
export function isDiagonal(A) {
  return A.every((row, i) => row.every((value, k) => i === k || value === 0));
}

/**
 * @param {Matrix} A
 * @returns {boolean}
 */
export function isSymmetric(A) {
  return A.every((row, i) => row.every((value, k) => value === A[k][i]));
}

/**
 * A^{-1} B by elimination with pivots. A pivot of 0 becomes `least`; if that is 0 too, null.
 * @param {Matrix} A
 * @param {Matrix} B
 * @param {number} [least]
 * @returns {Matrix | null}
 */
export function solve(A, B, least = 0) {
  const d = A.length, rows = A.map((row, i) => [...row, ...B[i]]);
  for (let column = 0; column < d; column++) {
    let pivot = column;
    for (let i = column + 1; i < d; i++) if (Math.abs(rows[i][column]) > Math.abs(rows[pivot][column])) pivot = i;
    [rows[column], rows[pivot]] = [rows[pivot], rows[column]];
    if (Math.abs(rows[column][column]) < least) rows[column][column] = least;
    if (rows[column][column] === 0) return null;
    for (let i = 0; i < d; i++) {
      const factor = rows[i][column] / rows[column][column];
      if (i !== column && factor !== 0) for (let k = column; k < rows[i].length; k++) rows[i][k] -= factor * rows[column][k];
    }
  }
  return rows.map((row, i) => row.slice(d).map(value => value / row[i]));
}

/**
 * @param {Matrix} A
 * @returns {Matrix | null}     null where A is singular
 */
export function inverse(A) {
  return solve(A, identity(A.length));
}

/**
 * e^A, by halving, a Taylor polynomial, and squaring.
 * @param {Matrix} A
 * @returns {Matrix}
 */
export function exponential(A) {
  const halvings = Math.max(0, Math.ceil(Math.log2(size(A) || 1)) + 2), one = identity(A.length);
  const small = A.map(row => row.map(value => value / 2 ** halvings));
  let sum = one;
  for (let k = 16; k > 0; k--) sum = add(one, multiply(small, sum), 1 / k);
  for (let k = 0; k < halvings; k++) sum = multiply(sum, sum);
  return sum;
}

/**
 * The rows of `vectors` made orthonormal, `rank` of them, the longest remainder first: Gram and Schmidt, twice.
 * @param {number[][]} vectors
 * @param {number} rank
 * @param {number[][]} [before]     orthonormal vectors that the result is orthogonal to
 * @returns {number[][]}
 */
export function orthonormalRows(vectors, rank, before = []) {
  const found = before.slice();
  const left = vectors.map(vector => without(vector, found));
  while (found.length < before.length + rank) {
    const lengths = left.map(vector => Math.hypot(...vector)), longest = lengths.indexOf(Math.max(...lengths));
    if (!(lengths[longest] > 0)) break;
    const unit = without(left[longest].map(value => value / lengths[longest]), found), length = Math.hypot(...unit);
    found.push(unit.map(value => value / length));
    left.forEach((vector, i) => { left[i] = without(vector, found); });
  }
  return found.slice(before.length);
}

/**
 * @param {number[]} vector
 * @param {number[][]} units
 * @returns {number[]}
 */
function without(vector, units) {
  for (const unit of units) {
    const part = dot(vector, unit);
    vector = vector.map((value, k) => value - part * unit[k]);
  }
  return vector;
}

/**
 * Q of A = Q R with a positive diagonal of R: the result of NumPy's qr with its signs removed.
 * @param {Matrix} A
 * @returns {Matrix}
 */
export function orthogonalFactor(A) {
  /** @type {number[][]} */
  const units = [];
  for (const column of transpose(A)) {
    let unit = column;
    for (let pass = 0; pass < 2; pass++) {
      unit = without(unit, units);
      const length = Math.hypot(...unit);
      unit = unit.map(value => value / length);
    }
    units.push(unit);
  }
  return transpose(units);
}
