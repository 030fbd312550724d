// The eigenvalues of V while a reader moves them: snapping, pairs, and the new Spec. No pictures here.

/** A real eigenvalue, or a pair re +- i im. @typedef {number | [number, number]} Eigenvalue */
/** @typedef {import('./types.js').Spec} Spec */

export const GRID = 0.05;
export const REACH = 1.6; // eigenvalues can be dragged to this size
const MAGNET = 0.04; // distance at which an eigenvalue jumps onto another one
const LIFT = 0.12; // height at which two reals leave the line, or a pair falls back to it

/** @param {Eigenvalue} value */
export const realPart = (value) => (Array.isArray(value) ? value[0] : value);
/** @param {Eigenvalue} value */
export const imaginaryPart = (value) => (Array.isArray(value) ? Math.abs(value[1]) : 0);

/**
 * The eigenvalues that a Spec has, and why they cannot be dragged (empty: they can).
 * @param {Spec} spec
 * @param {import('./types.js').ResolvedMatrices | null} weights
 * @returns {{values: Eigenvalue[], lock: string}}
 */
export function readEigenvalues(spec, weights) {
  const { family, eigenvalues, V } = spec.weights;
  if (family === 'spectrum') return { values: structuredClone(eigenvalues), lock: '' };
  if (!weights) return { values: [], lock: 'The page does not know the eigenvalues of this V.' };
  const { growth, turn, heads, d } = weights;
  const values = growth.flatMap(
    (value, k) => /** @type {Eigenvalue[]} */ (turn[k] ? [[value, Math.abs(turn[k])]] : k && turn[k - 1] ? [] : [value]),
  );
  if (family === 'identity') return { values, lock: '' };
  const isPlain = family === 'published' || (family === 'given' && spec.weights.Q === undefined && spec.weights.K === undefined);
  const total = heads[0].V,
    isDiagonal = total.every((row, i) => row.every((value, j) => i === j || value === 0));
  if (isPlain && heads.length === 1 && isDiagonal) return { values: Array.from({ length: d }, (_, k) => total[k][k]), lock: '' };
  if (heads.length > 1)
    return { values, lock: `These are the eigenvalues of the sum of ${heads.length} heads. They cannot be dragged.` };
  return {
    values,
    lock: V
      ? 'V was given as a matrix. Its eigenvalues are shown, but they cannot be dragged.'
      : 'These eigenvalues cannot be dragged.',
  };
}

/**
 * The Spec with other eigenvalues. Families other than `spectrum` become one, with the coordinate axes as basis.
 * @param {Spec} spec
 * @param {Eigenvalue[]} values
 * @returns {Spec}
 */
export function writeEigenvalues(spec, values) {
  const weights =
    spec.weights.family === 'spectrum'
      ? { ...spec.weights, eigenvalues: values }
      : { family: 'spectrum', eigenvalues: values, basis: 'identity' };
  return { ...spec, weights };
}

/**
 * Round a number to the grid; near 0 or another value, to that value.
 * @param {number} value
 * @param {number[]} others
 */
export function snap(value, others) {
  const inside = Math.min(REACH, Math.max(-REACH, value));
  for (const other of [0, ...others]) if (Math.abs(other - inside) < MAGNET) return other;
  return toGrid(inside);
}

/** @param {number} value */
function toGrid(value) {
  const rounded = Number((Math.round(value / GRID) * GRID).toFixed(2));
  return rounded === 0 ? 0 : rounded;
}

/**
 * Move one eigenvalue of a list to a point of the plane. Call it with the list from before the drag, so that a drag can be
 * undone.
 * If two equal reals are pulled off the line together, they become a pair. If a pair is pushed to the line, it becomes two
 * equal reals. A single real stays on the line.
 * @param {Eigenvalue[]} values
 * @param {number} held           index
 * @param {number} re
 * @param {number} im
 * @returns {Eigenvalue[]}
 */
export function moveEigenvalue(values, held, re, im) {
  const now = values[held],
    height = Math.min(REACH, Math.abs(im));
  const others = values.flatMap((value, k) => (k === held ? [] : [realPart(value)]));
  const heights = values.flatMap((value, k) => (k !== held && imaginaryPart(value) ? [imaginaryPart(value)] : []));
  const result = values.slice();
  if (Array.isArray(now)) {
    const place = snap(re, others);
    if (height < LIFT) result.splice(held, 1, place, place);
    else result[held] = [place, Math.max(GRID, snap(height, heights))];
    return result;
  }
  const equal = values.findIndex((value, k) => k !== held && value === now);
  if (height < LIFT || equal < 0) {
    result[held] = snap(re, others);
    return result;
  }
  result[Math.min(held, equal)] = [
    snap(
      re,
      others.filter((value) => value !== now),
    ),
    Math.max(GRID, snap(height, heights)),
  ];
  result.splice(Math.max(held, equal), 1);
  return result;
}

/**
 * The index of the eigenvalue that was just moved, so that the keyboard can move it again.
 * @param {Eigenvalue[]} values
 * @param {number} held
 */
export function clampIndex(values, held) {
  return Math.min(held, values.length - 1);
}

/**
 * Equal eigenvalues together: where they are, how many, and the index of the last one, which a drag takes.
 * @param {Eigenvalue[]} values
 * @returns {{re: number, im: number, count: number, index: number}[]}
 */
export function gatherEigenvalues(values) {
  const /** @type {Map<string, {re: number, im: number, count: number, index: number}>} */ places = new Map();
  values.forEach((value, index) => {
    const re = realPart(value),
      im = imaginaryPart(value),
      key = `${re},${im}`,
      place = places.get(key);
    if (place) Object.assign(place, { count: place.count + 1, index });
    else places.set(key, { re, im, count: 1, index });
  });
  return [...places.values()].sort((a, b) => a.re - b.re || a.im - b.im);
}
