// From the [weights] of a Spec to matrices: the families identity, spectrum, published and given, and weights from Python.
import { Refusal } from './refusal.js';
import { Generator, generateState64, wholeSeed } from './rng.js';
import { checkKeys, finiteNumber, knownName, matrixOf, show, wholeNumber } from './checks.js';
import { add, identity, inverse, multiply, orthogonalFactor, transpose } from './linear.js';
import { blockMatrix, eigenbasis, eigenvalues } from './eigen.js';
import { startDimension } from './starts.js';

/** @typedef {import('./types.js').Table} Table */
/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').Head} Head */
/** @typedef {import('./types.js').ResolvedMatrices} ResolvedMatrices */
/** @typedef {import('./types.js').ResolvedWeights} ResolvedWeights */
/** @typedef {import('./eigen.js').Eigenbasis} Eigenbasis */

const MOST_HEADS = 16;
const LARGEST_ENTRY = 1e50;
const SAME_GROWTH = 1e-6;             // real parts closer than this, relative to the largest, are one group
const WEIGHTS_STREAM = 0x57454947;    // spawn key of the weights' random numbers, as in attnlab's run.py
const OBLIQUE_CONDITION = 10;

/** V of the figures of the paper (weights/published.py). */
/** @type {{[name: string]: number[][]}} */
const PUBLISHED = {
  hyperplanes_2d: [[0.64709742, 0.81911926], [0.61210449, 0.63263484]],
  hyperplanes_3d_decaying: [
    [0.2362413, 0.0599536, 0.40506019], [0.81321448, 0.49948705, 0.33754772], [0.2160645, 0.38505272, 0.14588075]],
  hyperplanes_3d_growing: [
    [0.18608476, 0.34391026, 0.13905949], [0.35244288, 0.6694859, 0.39992145], [0.46685606, 0.17094454, 0.42092308]],
  codimension: [[0.92761287, 0.94333073, 0.3827744], [0.94333073, 0.59991396, 0.47825472], [0.3827744, 0.47825472, 0.46668605]],
};

/** @typedef {{heads: Head[], made?: {basis: number[][], growth: number[], turn: number[]}}} Drawn */
/** @typedef {{keys: string[], draw: (table: Table, d: number | undefined) => Drawn}} Family */

/** @type {{[name: string]: Family}} */
const FAMILIES = {
  identity: { keys: ['scale'], draw: drawIdentity },
  spectrum: { keys: ['eigenvalues', 'basis', 'rng'], draw: drawSpectrum },
  published: { keys: ['matrix'], draw: drawPublished },
  given: { keys: ['Q', 'K', 'V', 'B', 'C'], draw: drawGiven },
};

/**
 * The matrices of a Spec with d <= 3, and the coordinates in which it is integrated.
 * @param {Spec} spec
 * @param {ResolvedWeights | null} [resolved]     weights from Python that the page cannot make itself
 * @returns {ResolvedMatrices}
 */
export function resolveWeights(spec, resolved = null) {
  const start = startDimension(spec.start), own = spec.weights?.d;
  const d = own === undefined ? start : wholeNumber('weights.d', own);
  if (start !== undefined && start !== d) throw new Refusal(`weights.d = ${d} and start.d = ${start} must be equal.`);
  const drawn = isResolved(spec, resolved) ? headsOf(/** @type {ResolvedWeights} */ (resolved)) : drawWeights(spec.weights, d);
  const { heads } = drawn, dimension = heads[0].V.length;
  if (d !== undefined && d !== dimension) {
    throw new Refusal(`The weights act on dimension ${dimension}, but d = ${d}. Correct one of them.`);
  }
  if (dimension > 3) {
    throw new Refusal(`The page computes in dimension 1, 2 or 3, and this Spec has d = ${dimension}. Run it in Python: `
      + 'attnlab run saves it, and attnlab explore shows the saved run.');
  }
  if (heads.some(head => [...head.M.flat(), ...head.V.flat()].some(value => !(Math.abs(value) < LARGEST_ENTRY)))) {
    throw new Refusal(`The entries of Q^T K and of V must be below ${LARGEST_ENTRY} in a page. Scale them down.`);
  }
  return inEigenCoordinates(heads, drawn);
}

/**
 * @param {Spec} spec
 * @param {ResolvedWeights | null} resolved
 */
function isResolved(spec, resolved) {
  if (!resolved) return false;
  const inOrder = (/** @type {Table} */ table) => JSON.stringify(Object.keys(table).sort().map(key => [key, table[key]]));
  return inOrder(resolved.spec.weights) === inOrder(spec.weights);
}

/**
 * @param {ResolvedWeights} resolved
 * @returns {Drawn}
 */
function headsOf({ M, V }) {
  return { heads: V.map((matrix, h) => ({ M: matrixOf('M', M[h]), V: matrixOf('V', matrix) })) };
}

/**
 * @param {Table} table
 * @param {number | undefined} d
 * @returns {Drawn}
 */
function drawWeights(table, d) {
  const name = table?.family, family = typeof name === 'string' && Object.hasOwn(FAMILIES, name) ? FAMILIES[name] : null;
  if (family === null) {
    throw new Refusal(`The page draws the weights families ${Object.keys(FAMILIES).join(', ')}; got ${show(name)}. `
      + 'attnlab explore resolves the others before it writes a page.');
  }
  checkKeys(`weights (family = ${name})`, table, ['family', 'd', ...family.keys]);
  return family.draw(table, d);
}

/** @type {Family['draw']} */
function drawIdentity(table, d) {
  if (d === undefined) throw new Refusal('The weights family identity needs d: give d in weights or in start.');
  const scale = finiteNumber('weights.scale', table.scale ?? 1);
  if (d > 3) return { heads: [{ M: identity(d), V: identity(d) }] };                       // refused by its dimension, later
  return { heads: [{ M: identity(d), V: identity(d).map(row => row.map(value => value * scale)) }] };
}

/** @type {Family['draw']} */
function drawSpectrum(table) {
  const given = table.eigenvalues;
  if (!Array.isArray(given) || given.length === 0 || given.length > 1000) {
    throw new Refusal(`weights.eigenvalues must be a list of at least one number or pair [re, im], got ${show(given)}.`);
  }
  /** @type {[number, number][]} */
  const pairs = given.map(value => {
    const parts = Array.isArray(value) ? value : [value, 0];
    if (parts.length !== 2) throw new Refusal(`An eigenvalue must be a number or a pair [re, im], got ${show(value)}.`);
    return [finiteNumber('An eigenvalue', parts[0]), finiteNumber('An eigenvalue', parts[1])];
  });
  const growth = given.flatMap((value, i) => Array.isArray(value) ? [pairs[i][0], pairs[i][0]] : [pairs[i][0]]);
  const turn = given.flatMap((value, i) => Array.isArray(value) ? [pairs[i][1], 0] : [0]), D = blockMatrix(growth, turn);
  const kind = knownName('weights.basis', table.basis ?? 'orthogonal', ['orthogonal', 'random', 'identity']), d = D.length;
  if (kind === 'identity' || d > 3) return { heads: [{ M: identity(d), V: D }] };
  const rng = new Generator(generateState64(wholeSeed(table.rng ?? 0), 1, [WEIGHTS_STREAM])[0]);
  const draw = () => orthogonalFactor(identity(d).map(row => row.map(() => rng.standardNormal())));
  let basis = draw();
  if (kind === 'random') {
    const stretch = growth.map((_, i) => d === 1 ? 1 : OBLIQUE_CONDITION ** (i / (d - 1)));
    basis = multiply(basis.map(row => row.map((value, k) => value * stretch[k])), draw());
  }
  const back = kind === 'random' ? /** @type {number[][]} */ (inverse(basis)) : transpose(basis);
  return { heads: [{ M: identity(d), V: multiply(multiply(basis, D), back) }], made: { basis, growth, turn } };
}

/** @type {Family['draw']} */
function drawPublished(table, d) {
  const name = knownName('weights.matrix', table.matrix, [...Object.keys(PUBLISHED), 'polytope_times_line']);
  if (name !== 'polytope_times_line') return { heads: [{ M: identity(PUBLISHED[name].length), V: PUBLISHED[name] }] };
  const dimension = wholeNumber('d', d ?? 3, 2, 1000), V = identity(dimension);
  V[dimension - 1][dimension - 1] = -0.5;
  return { heads: [{ M: identity(dimension), V }] };
}

/** @type {Family['draw']} */
function drawGiven(table) {
  if ((table.B === undefined) !== (table.C === undefined) || (table.V === undefined) === (table.B === undefined)) {
    throw new Refusal('The weights family given needs V, or both factors B and C of V = B C: one of the two, not both.');
  }
  const values = table.V !== undefined ? perHead('weights.V', table.V) : null;
  const B = values ? [] : perHead('weights.B', table.B), C = values ? [] : perHead('weights.C', table.C);
  const d = values ? values[0].length : B[0].length;
  const Q = perHead('weights.Q', table.Q ?? identity(d)), K = perHead('weights.K', table.K ?? identity(d));
  const all = values ? { Q, K, V: values } : { Q, K, B, C }, count = Math.max(...Object.values(all).map(list => list.length));
  if (Object.values(all).some(list => list.length !== 1 && list.length !== count)) {
    throw new Refusal('Q, K and V must have the same number of heads, or be given once for all heads.');
  }
  const of = (/** @type {number[][][]} */ list, /** @type {number} */ h) => list[list.length === 1 ? 0 : h];
  const heads = Array.from({ length: count }, (_, h) => {
    const q = of(Q, h), k = of(K, h);
    const isOneShape = q.length === k.length && q[0].length === k[0].length;
    if (!isOneShape) throw new Refusal('weights.Q and weights.K must have the same shape.');
    if (q[0].length !== d) throw new Refusal(`weights.Q and weights.K must have d = ${d} columns like V, got ${q[0].length}.`);
    const fits = values ? of(values, h)[0].length === d : of(B, h)[0].length === of(C, h).length && of(C, h)[0].length === d;
    if (!fits) throw new Refusal('weights.V must be square, (d, d) or (h, d, d); its factors B (d, r) and C (r, d).');
    return { M: multiply(transpose(q), k), V: values ? of(values, h) : multiply(of(B, h), of(C, h)) };
  });
  return { heads };
}

/**
 * A number, one matrix, or one matrix per head, as a list of matrices of one shape.
 * @param {string} name
 * @param {unknown} value
 * @returns {number[][][]}
 */
function perHead(name, value) {
  if (typeof value === 'number') return [[[finiteNumber(name, value)]]];
  const isStack = Array.isArray(value) && Array.isArray(value[0]) && Array.isArray(value[0][0]);
  if (!isStack) return [matrixOf(name, value)];
  if (value.length > MOST_HEADS) throw new Refusal(`${name} may have ${MOST_HEADS} heads in a page, got ${value.length}.`);
  const stack = value.map(matrix => matrixOf(name, matrix));
  if (stack.some(matrix => matrix.length !== stack[0].length || matrix[0].length !== stack[0][0].length)) {
    throw new Refusal(`${name} must have matrices of one shape, one per head.`);
  }
  return stack;
}

/**
 * @param {Head[]} heads
 * @param {Drawn} drawn
 * @returns {ResolvedMatrices}
 */
function inEigenCoordinates(heads, drawn) {
  const total = heads.slice(1).reduce((sum, head) => add(sum, head.V), heads[0].V), d = total.length;
  const found = drawn.made ? drawnBasis(drawn.made) : eigenbasis(total);
  if (found === null) {
    const values = eigenvalues(total), one = identity(d);
    return {
      d, heads, total, basis: one, inverse: one, isEigenbasis: false, growth: values.map(value => value.re),
      turn: values.map(value => Math.max(value.im, 0)), group: values.map(() => 0), eigenHeads: heads,
    };
  }
  const { basis, inverse: back, growth, turn } = found, group = groupsOf(growth);
  const eigenHeads = heads.map(head => ({
    M: multiply(transpose(basis), multiply(head.M, basis)),
    V: heads.length === 1 ? blockMatrix(growth, turn) : withoutNoise(multiply(back, multiply(head.V, basis)), group),
  }));
  return { d, heads, total, basis, inverse: back, isEigenbasis: true, growth, turn, group, eigenHeads };
}

/**
 * The eigenbasis from which V was made: its eigenvalues are those in the Spec, and equal ones are equal numbers.
 * The two columns of a pair change places if b < 0.
 * @param {{basis: number[][], growth: number[], turn: number[]}} made
 * @returns {Eigenbasis}
 */
function drawnBasis({ basis, growth, turn }) {
  const columns = transpose(basis);
  turn.forEach((b, i) => { if (b < 0) [columns[i], columns[i + 1]] = [columns[i + 1], columns[i]]; });
  const turned = transpose(columns);
  return { basis: turned, inverse: /** @type {number[][]} */ (inverse(turned)), growth, turn: turn.map(Math.abs) };
}

/**
 * Numbers that are equal if growth is equal.
 * @param {number[]} growth
 * @returns {number[]}
 */
function groupsOf(growth) {
  const order = growth.map((_, i) => i).sort((i, k) => growth[i] - growth[k]), group = growth.map(() => 0);
  const near = SAME_GROWTH * Math.max(...growth.map(Math.abs), 1e-300);
  for (let k = 1; k < order.length; k++) {
    group[order[k]] = group[order[k - 1]] + (growth[order[k]] - growth[order[k - 1]] > near ? 1 : 0);
  }
  return group;
}

/**
 * V without the rounding errors between groups: they would add fast coordinates to slow ones.
 * @param {number[][]} V
 * @param {number[]} group
 * @returns {number[][]}
 */
function withoutNoise(V, group) {
  const noise = 1e-13 * Math.max(...V.flat().map(Math.abs));
  return V.map((row, i) => row.map((value, k) => Math.abs(value) < noise && group[i] !== group[k] ? 0 : value));
}
