// First tokens by name, as in attnlab's starts.py: same laws, same keys, same random numbers.
import { Generator } from './rng.js';
import { Refusal } from './refusal.js';
import { checkKeys, checkTable, finiteNumber, knownName, matrixOf, positiveNumber, show, wholeNumber } from './checks.js';

/** @typedef {import('./types.js').Table} Table */

export const MOST_TOKENS = 2000;
const CANDIDATES = 32;                                     // each planted centre is the most remote of so many draws

/**
 * @typedef {object} Law
 * @property {string[]} keys                               beside law, n, d, rng and moved
 * @property {(table: Table, n: number, d: number, rng: Generator) => number[][]} draw
 */

/** @type {{[name: string]: Law}} */
const LAWS = {
  uniform_cube: { keys: ['low', 'high'], draw: drawCube },
  normal: { keys: ['scale', 'mean'], draw: drawNormal },
  sphere: { keys: ['radius'], draw: drawSphere },
  circle: { keys: ['radius', 'equally_spaced'], draw: drawCircle },
  planted: { keys: ['clusters', 'spread', 'separation'], draw: drawPlanted },
  given: { keys: ['x'], draw: (table, n, d) => table.x },
};

/** The names of all laws. */
export const START_LAWS = Object.keys(LAWS);

/**
 * The dimension in a start table; undefined if the weights must give it.
 * @param {Table} start
 * @returns {number | undefined}
 */
export function startDimension(start) {
  if (start.d !== undefined) return wholeNumber('start.d', start.d);
  if (start.law === 'circle') return 2;
  if (start.law === 'given' && Array.isArray(start.x) && Array.isArray(start.x[0])) return start.x[0].length;
  return undefined;
}

/**
 * The first tokens (n, d) of a start table, with the tokens that were moved by hand at their new places.
 * @param {Table} start
 * @param {number} [d]         where the table does not say it
 * @returns {number[][]}
 */
export function drawStart(start, d) {
  const name = knownName('start.law', start?.law, START_LAWS), law = LAWS[name];
  checkKeys(`start (law = ${name})`, start, ['law', 'n', 'd', 'rng', 'batch', 'moved', ...law.keys]);
  if (start.batch !== undefined) {
    throw new Refusal('The page runs one start at a time: leave start.batch out, or use attnlab in Python.');
  }
  if (name === 'given') checkGiven(start, d);
  const dimension = startDimension(start) ?? d;
  if (dimension === undefined) throw new Refusal('start needs the key d, the number of coordinates of a token.');
  const n = name === 'given' ? start.x.length : wholeNumber('start.n', start.n, 1, MOST_TOKENS);
  const tokens = law.draw(start, n, dimension, new Generator(start.rng ?? 0)).map(token => token.slice());
  for (const [key, place] of Object.entries(checkTable('start.moved', start.moved ?? {}))) {
    const token = /^(0|[1-9]\d*)$/.test(key) ? Number(key) : NaN;
    if (!(token < n)) throw new Refusal(`start.moved must name tokens from 0 to ${n - 1}, got ${show(key)}.`);
    if (!Array.isArray(place) || place.length !== dimension) {
      throw new Refusal(`start.moved must give ${dimension} coordinates for each token, got ${show(place)} for token ${key}.`);
    }
    tokens[token] = place.map(value => finiteNumber(`start.moved, token ${key}:`, value));
  }
  if (tokens.every(token => token.every(Number.isFinite))) return tokens;
  throw new Refusal('The first tokens must be finite numbers: choose smaller ones.');
}

/**
 * @param {Table} start
 * @param {number | undefined} d
 */
function checkGiven(start, d) {
  const x = matrixOf('start.x', start.x);
  if (x.length > MOST_TOKENS) throw new Refusal(`start.x must have at most ${MOST_TOKENS} tokens in a page, got ${x.length}.`);
  if (start.n !== undefined && start.n !== x.length) {
    throw new Refusal(`start.x has ${x.length} tokens, but n = ${show(start.n)}. Leave n out.`);
  }
  for (const wanted of [start.d, d]) {
    if (wanted !== undefined && wanted !== x[0].length) {
      throw new Refusal(`start.x has tokens of ${x[0].length} coordinates, but d = ${show(wanted)}. Correct one of them.`);
    }
  }
}

/**
 * @param {number} rows
 * @param {number} columns
 * @param {(row: number, column: number) => number} entry
 * @returns {number[][]}
 */
function fill(rows, columns, entry) {
  return Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, k) => entry(i, k)));
}

/**
 * The square root of the sum of squares, added up from the left as NumPy does.
 * @param {number[]} vector
 */
function norm(vector) {
  let sum = 0;
  for (const value of vector) sum += value * value;
  return Math.sqrt(sum);
}

/** @type {Law['draw']} */
function drawCube(table, n, d, rng) {
  const low = finiteNumber('start.low', table.low ?? -1), high = finiteNumber('start.high', table.high ?? 1);
  if (!(low < high)) throw new Refusal(`start.low must be smaller than start.high, got ${low} and ${high}.`);
  return fill(n, d, () => rng.uniform(low, high));
}

/** @type {Law['draw']} */
function drawNormal(table, n, d, rng) {
  const given = table.mean ?? 0, scale = positiveNumber('start.scale', table.scale ?? 1);
  if (Array.isArray(given) && given.length !== d) {
    throw new Refusal(`start.mean must be a number or a list of d = ${d} numbers, got ${show(given)}.`);
  }
  const mean = Array.from({ length: d }, (_, k) => finiteNumber('start.mean', Array.isArray(given) ? given[k] : given));
  return fill(n, d, (_, k) => mean[k] + scale * rng.standardNormal());
}

/** @type {Law['draw']} */
function drawSphere(table, n, d, rng) {
  const radius = positiveNumber('start.radius', table.radius ?? 1);
  return fill(n, d, () => rng.standardNormal()).map(token => {
    const length = norm(token);
    return token.map(value => radius * value / length);
  });
}

/** @type {Law['draw']} */
function drawCircle(table, n, d, rng) {
  if (d !== 2) {
    throw new Refusal(`The start law circle lives in the plane: d must be 2, got ${d}. Use the law sphere for other d.`);
  }
  const radius = positiveNumber('start.radius', table.radius ?? 1), isSpaced = table.equally_spaced ?? false;
  if (typeof isSpaced !== 'boolean') throw new Refusal(`start.equally_spaced must be true or false, got ${show(isSpaced)}.`);
  return Array.from({ length: n }, (_, i) => {
    const angle = 2 * Math.PI * (isSpaced ? i / n : rng.random());
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

/** @type {Law['draw']} */
function drawPlanted(table, n, d, rng) {
  const clusters = wholeNumber('start.clusters', table.clusters ?? 3);
  const spread = positiveNumber('start.spread', table.spread ?? 0.1);
  const separation = positiveNumber('start.separation', table.separation ?? 2);
  if (clusters > n) {
    throw new Refusal(`start.clusters must be at most the number of tokens, got ${clusters} clusters for n = ${n}.`);
  }
  if (separation <= 4 * spread) {
    throw new Refusal(`start.separation must exceed 4 start.spread to keep the clusters apart, got ${separation} and ${spread}.`);
  }
  const centres = remoteCentres(clusters, d, rng).map(centre => centre.map(value => value * separation));
  const directions = drawSphere({}, n, d, rng);
  const radii = directions.map(() => rng.random()).map(u => d === 1 ? u : d === 2 ? Math.sqrt(u) : u ** (1 / d));
  return directions.map((token, i) => {
    const centre = centres[Math.floor(i * clusters / n)];
    return token.map((value, k) => centre[k] + spread * (value * radii[i]));
  });
}

/**
 * The distance to the nearest of some centres.
 * @param {number[][]} centres
 * @param {number[]} point
 */
function distanceTo(centres, point) {
  let least = Infinity;
  for (const centre of centres) least = Math.min(least, norm(point.map((value, k) => value - centre[k])));
  return least;
}

/**
 * Random centres with mean 0 and smallest distance 1.
 * @param {number} count
 * @param {number} d
 * @param {Generator} rng
 * @returns {number[][]}
 */
function remoteCentres(count, d, rng) {
  const centres = fill(1, d, () => rng.standardNormal());
  let smallest = 1;
  for (let i = 1; i < count; i++) {
    const candidates = fill(CANDIDATES, d, () => rng.standardNormal());
    const distances = candidates.map(candidate => distanceTo(centres, candidate));
    const best = distances.indexOf(Math.max(...distances));
    smallest = i === 1 ? distances[best] : Math.min(smallest, distances[best]);
    centres.push(candidates[best]);
  }
  const mean = Array.from({ length: d }, (_, k) => centres.reduce((sum, centre) => sum + centre[k], 0) / count);
  return centres.map(centre => centre.map((value, k) => (value - mean[k]) / smallest));
}
