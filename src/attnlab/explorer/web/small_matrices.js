// Matrices of at most three dimensions as rows of numbers, for the hypotheses of theorems.

/**
 * Whether beta M is symmetric and positive definite, by the signs of its leading minors.
 * @param {number[][]} M
 * @param {number} beta
 */
export function isPositiveDefinite(M, beta) {
  const size = sizeOf(M);
  if (size === 0 || beta <= 0 || sizeOf(subtract(M, transpose(M))) > 1e-10 * size) return false;
  const scaled = scale(M, 1 / size);
  return scaled.every((_, k) => determinant(scaled.slice(0, k + 1).map((row) => row.slice(0, k + 1))) > 1e-12);
}

/**
 * @param {number[][]} A
 * @returns {number}
 */
function determinant(A) {
  if (A.length === 1) return A[0][0];
  if (A.length === 2) return A[0][0] * A[1][1] - A[0][1] * A[1][0];
  const minor = (/** @type {number} */ j) => determinant(A.slice(1).map((row) => row.filter((_, k) => k !== j)));
  return A[0].reduce((sum, entry, j) => sum + (j % 2 ? -1 : 1) * entry * minor(j), 0);
}

/** How far a matrix is from a multiple of the identity, relative to its size. @param {number[][]} A */
export function distanceToIdentity(A) {
  const size = sizeOf(A);
  return size === 0 ? 0 : sizeOf(subtract(A, scale(identity(A.length), trace(A) / A.length))) / size;
}

/** @param {number[][]} A */
export const trace = (A) => A.reduce((sum, row, i) => sum + row[i], 0);
/** @param {number[][]} A */
export const sizeOf = (A) => Math.hypot(...A.flat());
/** @param {number[][]} A */
export const transpose = (A) => A[0].map((_, j) => A.map((row) => row[j]));
/** @param {number} d */
export const identity = (d) => Array.from({ length: d }, (_, i) => Array.from({ length: d }, (_, j) => Number(i === j)));
/** @param {number[][]} A @param {number} c */
export const scale = (A, c) => A.map((row) => row.map((entry) => c * entry));
/** @param {number[][]} A @param {number[][]} B */
export const subtract = (A, B) => A.map((row, i) => row.map((entry, j) => entry - B[i][j]));
/** @param {number[][]} A @param {number[][]} B */
export const multiply = (A, B) => A.map((row) => B[0].map((_, j) => row.reduce((sum, entry, k) => sum + entry * B[k][j], 0)));
