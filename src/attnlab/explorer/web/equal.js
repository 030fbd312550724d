// Whether two Specs mean the same run. A certified limit is shown only while the Spec inside it is the present one.

/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').Table} Table */

/** Defaults of keys, by section and then by family or law. @type {{[name: string]: Table}} */
const DEFAULTS = {
  dynamics: { beta: 1, geometry: 'euclidean', kernel: 'softmax', mask: 'full' },
  identity: { scale: 1 },
  spectrum: { basis: 'orthogonal', rng: 0 },
  uniform_cube: { low: -1, high: 1, rng: 0 },
  normal: { scale: 1, mean: 0, rng: 0 },
  sphere: { radius: 1, rng: 0 },
  circle: { d: 2, radius: 1, equally_spaced: false, rng: 0 },
  text: { layer: 0, special: true, fold_norm: true, rng: 0 },
  planted: { clusters: 3, spread: 0.1, separation: 2, rng: 0 },
};

/**
 * Whether two Specs have the same weights, equation and first tokens, and so the same limit. Values are compared, not texts: 5
 * and 5.0 are equal, the order of keys does not count, and a key that is left out equals its default. Of [solve] only the
 * clock of layers counts: the length and accuracy of the integration do not change the limit of a flow.
 * @param {Spec} a
 * @param {Spec} b
 * @returns {boolean}
 */
export function isSameSpec(a, b) {
  if (!isTable(a) || !isTable(b)) return false;
  return isEqual(completeWeights(a.weights), completeWeights(b.weights))
    && isEqual({ ...DEFAULTS.dynamics, ...a.dynamics }, { ...DEFAULTS.dynamics, ...b.dynamics })
    && isEqual(completeStart(a.start), completeStart(b.start))
    && isEqual(clockOf(a.solve), clockOf(b.solve));
}

/**
 * Whether two values of JSON are equal; tables by their keys, in any order.
 * @param {any} a
 * @param {any} b
 * @returns {boolean}
 */
export function isEqual(a, b) {
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((entry, k) => isEqual(entry, b[k]));
  }
  if (isTable(a) && isTable(b)) {
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key]));
  }
  return a === b;
}

/**
 * @param {any} value
 * @returns {value is Table}
 */
function isTable(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @param {any} weights */
function completeWeights(weights) {
  return isTable(weights) ? { ...defaultsOf(weights.family), ...weights } : weights;
}

/** @param {any} start */
function completeStart(start) {
  if (!isTable(start)) return start;
  const { rng, moved, ...others } = start, drawn = start.law === 'given' ? {} : { rng: rng ?? 0 };
  const places = isTable(moved) && Object.keys(moved).length > 0 ? { moved } : {};
  return { ...defaultsOf(start.law), ...others, ...drawn, ...places };
}

/** @param {any} name */
function defaultsOf(name) {
  return typeof name === 'string' && Object.hasOwn(DEFAULTS, name) ? DEFAULTS[name] : {};
}

/** @param {any} solve */
function clockOf(solve) {
  return isTable(solve) && solve.layers !== undefined ? { dt: solve.dt ?? 1 } : {};
}
