// Eigenvalues of real matrices with d <= 3, and a real basis in which such a matrix is made of numbers and rotations.
import { add, apply, dot, identity, inverse, isSymmetric, multiply, orthonormalRows, size, solve, transpose } from './linear.js';

/** @typedef {number[][]} Matrix */
/** @typedef {{re: number, im: number}} Eigenvalue */

/**
 * A = basis blocks basis^{-1}: growth on the diagonal of blocks, and [[a, b], [-b, a]] where turn = b > 0.
 * @typedef {object} Eigenbasis
 * @property {Matrix} basis
 * @property {Matrix} inverse
 * @property {number[]} growth
 * @property {number[]} turn
 */

const LARGEST_CONDITION = 1e3;       // as in attnlab: eigenvectors lose that factor of the digits
const EQUAL = 1e-10;                 // eigenvalues this close, relative to |A|, are one with several eigenvectors
const EPSILON = 2 ** -52;

/**
 * The block diagonal matrix of an eigenbasis.
 * @param {number[]} growth
 * @param {number[]} turn
 * @returns {Matrix}
 */
export function blockMatrix(growth, turn) {
  const blocks = growth.map((a, i) => growth.map((_, k) => i === k ? a : 0));
  turn.forEach((b, i) => { if (b) { blocks[i][i + 1] = b; blocks[i + 1][i] = -b; } });
  return blocks;
}

/**
 * The eigenvalues, by decreasing real part; of a pair, im > 0 comes first.
 * @param {Matrix} A
 * @returns {Eigenvalue[]}
 */
export function eigenvalues(A) {
  const least = EQUAL * size(A);                           // rounding makes a pair of a double eigenvalue, or two of it
  return unordered(A).map(({ re, im }) => ({ re, im: Math.abs(im) < least ? 0 : im })).sort((p, q) => q.re - p.re || q.im - p.im);
}

/**
 * @param {Matrix} A
 * @returns {Eigenvalue[]}
 */
function unordered(A) {
  if (A.length === 1) return [{ re: A[0][0], im: 0 }];
  if (A.length === 2) return ofTwo(A);
  // One real eigenvalue, its eigenvector turned into the first axis, and the rest is a matrix of one dimension less.
  const { value, vector } = realPair(A);
  const frame = transpose([vector, ...orthonormalRows(identity(A.length), A.length - 1, [vector])]);
  const turned = multiply(transpose(frame), multiply(A, frame));
  return [{ re: value, im: 0 }, ...unordered(turned.slice(1).map(row => row.slice(1)))];
}

/**
 * @param {Matrix} A
 * @returns {Eigenvalue[]}
 */
function ofTwo([[a, b], [c, d]]) {
  const half = (a - d) / 2, discriminant = half * half + b * c;
  if (discriminant < 0) {
    const im = Math.sqrt(-discriminant);
    return [{ re: (a + d) / 2, im }, { re: (a + d) / 2, im: -im }];
  }
  const far = half + (half < 0 ? -1 : 1) * Math.sqrt(discriminant);          // no cancellation
  return [{ re: d + far, im: 0 }, { re: far === 0 ? d : d - b * c / far, im: 0 }];
}

/**
 * A real eigenvalue of a 3 x 3 matrix and its unit eigenvector: bisection of the polynomial, then Rayleigh's iteration.
 * @param {Matrix} A
 * @returns {{value: number, vector: number[]}}
 */
function realPair(A) {
  const norm = size(A), at = (/** @type {number} */ x) => determinant(add(A, identity(3), -x));
  let low = -norm, high = norm;                            // the determinant of A - x falls from + to -
  for (let k = 0; k < 200 && high - low > EPSILON * norm; k++) {
    const middle = (low + high) / 2;
    if (at(middle) > 0) low = middle;
    else high = middle;
  }
  let value = (low + high) / 2, vector = [0.48, 0.6, 0.64], best = { value, vector, residual: Infinity };
  for (let k = 0; k < 12; k++) {
    const solved = solve(add(A, identity(3), -value), vector.map(entry => [entry]), EPSILON * norm || 1);
    if (solved === null) break;
    const length = Math.hypot(...solved.flat());
    vector = solved.map(([entry]) => entry / length);
    const image = apply(A, vector);
    value = dot(vector, image);
    const residual = Math.hypot(...image.map((entry, i) => entry - value * vector[i]));
    if (residual < best.residual) best = { value, vector, residual };
    if (residual <= EPSILON * norm) break;
  }
  return best;
}

/** @param {Matrix} A */
function determinant([[a, b, c], [d, e, f], [g, h, i]]) {
  return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
}

/**
 * An eigenbasis, or null if there is none of condition below 1e3.
 * @param {Matrix} A
 * @returns {Eigenbasis | null}
 */
export function eigenbasis(A) {
  const found = inBlocks(A) ?? (isSymmetric(A) ? symmetricBasis(A) : generalBasis(A));
  if (found === null) return null;
  const back = inverse(found.basis);
  if (back === null || !(size(found.basis) * size(back) < LARGEST_CONDITION * A.length)) return null;
  const error = add(multiply(A, found.basis), multiply(found.basis, blockMatrix(found.growth, found.turn)), -1);
  if (!(size(error) <= 1e-12 * size(A) * size(found.basis))) return null;
  return { ...found, inverse: isSymmetric(A) ? transpose(found.basis) : back };
}

/**
 * A matrix that already consists of numbers and rotations keeps its coordinates; the two of a pair change places if b < 0.
 * @param {Matrix} A
 * @returns {{basis: Matrix, growth: number[], turn: number[]} | null}
 */
function inBlocks(A) {
  const d = A.length, growth = A.map((row, i) => row[i]), turn = growth.map(() => 0), columns = identity(d);
  for (let i = 0; i + 1 < d; i++) {
    const b = A[i][i + 1];
    if (b === 0 || A[i + 1][i] !== -b || growth[i] !== growth[i + 1]) continue;
    turn[i] = Math.abs(b);
    if (b < 0) [columns[i], columns[i + 1]] = [columns[i + 1], columns[i]];
    i += 1;
  }
  const basis = transpose(columns), blocks = multiply(basis, multiply(blockMatrix(growth, turn), columns));
  return size(add(A, blocks, -1)) === 0 ? { basis, growth, turn } : null;
}

/**
 * Jacobi's rotations.
 * @param {Matrix} A
 * @returns {{basis: Matrix, growth: number[], turn: number[]}}
 */
function symmetricBasis(A) {
  const d = A.length;
  let D = A, basis = identity(d);
  for (let sweep = 0; sweep < 30; sweep++) {
    for (let p = 0; p < d; p++) for (let q = p + 1; q < d; q++) {
      if (D[p][q] === 0) continue;
      const ratio = (D[q][q] - D[p][p]) / (2 * D[p][q]);
      const t = (ratio < 0 ? -1 : 1) / (Math.abs(ratio) + Math.hypot(ratio, 1)), c = 1 / Math.hypot(t, 1);
      const rotation = identity(d);
      rotation[p][p] = rotation[q][q] = c;
      rotation[p][q] = t * c;
      rotation[q][p] = -t * c;
      D = multiply(transpose(rotation), multiply(D, rotation));
      D[p][q] = D[q][p] = 0;
      basis = multiply(basis, rotation);
    }
  }
  const order = D.map((_, i) => i).sort((i, k) => D[k][k] - D[i][i]);
  const growth = order.map(i => D[i][i]);
  return { basis: basis.map(row => order.map(i => row[i])), growth, turn: growth.map(() => 0) };
}

/**
 * @param {Matrix} A
 * @returns {{basis: Matrix, growth: number[], turn: number[]} | null}
 */
function generalBasis(A) {
  const d = A.length, norm = size(A), values = eigenvalues(A), one = identity(d), columns = [], growth = [], turn = [];
  const shifted = (/** @type {number} */ value) => add(A, one, -value);
  for (let i = 0; i < d;) {
    const { re, im } = values[i];
    if (im !== 0) {
      const other = values.find(value => value.im === 0);
      const plane = other ? nullSpace([nullSpace(transpose(shifted(other.re)), 1)[0]], 2) : one;
      columns.push(...pairColumns(A, re, Math.abs(im), plane[0]));
      growth.push(re, re);
      turn.push(Math.abs(im), 0);
      i += 2;
      continue;
    }
    let count = 1;
    while (i + count < d && values[i + count].im === 0 && re - values[i + count].re < EQUAL * norm) count += 1;
    const mean = values.slice(i, i + count).reduce((sum, value) => sum + value.re, 0) / count;
    const space = nullSpace(shifted(mean), count);
    if (space.length < count) return null;
    columns.push(...space);
    for (let k = 0; k < count; k++) { growth.push(mean); turn.push(0); }
    i += count;
  }
  return { basis: transpose(columns), growth, turn };
}

/**
 * `dimension` orthonormal vectors v with N v = 0, as nearly as possible.
 * @param {Matrix} N
 * @param {number} dimension
 * @returns {number[][]}
 */
function nullSpace(N, dimension) {
  const d = N[0].length, rows = orthonormalRows(N, d - dimension);
  return orthonormalRows(identity(d), dimension, rows);
}

/**
 * Columns p, q with A p = a p - b q and A q = b p + a q, orthogonal to each other, from a vector of their plane.
 * @param {Matrix} A
 * @param {number} a
 * @param {number} b
 * @param {number[]} p
 * @returns {[number[], number[]]}
 */
function pairColumns(A, a, b, p) {
  const image = apply(A, p), q = p.map((value, i) => (a * value - image[i]) / b);
  const angle = 0.5 * Math.atan2(2 * dot(p, q), dot(p, p) - dot(q, q)), c = Math.cos(angle), s = Math.sin(angle);
  const first = p.map((value, i) => c * value + s * q[i]), second = p.map((value, i) => c * q[i] - s * value);
  const length = Math.max(Math.hypot(...first), Math.hypot(...second));
  return [first.map(value => value / length), second.map(value => value / length)];
}
