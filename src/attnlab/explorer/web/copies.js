// The present run as text for attnlab: TOML for a file, Python for a notebook. Numbers are written so that they are read back to
// the same bits.

import { Refusal } from './refusal.js';

/** @typedef {import('./types.js').Spec} Spec */

const SECTIONS = /** @type {const} */ (['weights', 'dynamics', 'start', 'solve']);
const BARE_KEY = /^[A-Za-z0-9_-]+$/;

/**
 * The Spec in TOML, for `attnlab run a.toml` and `attnlab limit a.toml`.
 * @param {Spec} spec
 * @returns {string}
 */
export function asToml(spec) {
  requireMatrices(spec);
  const parts = spec.observe?.length ? [`observe = ${tomlValue(spec.observe)}\n`] : [];
  for (const section of SECTIONS) {
    const table = spec[section];
    if (table === undefined || (section === 'dynamics' && Object.keys(table).length === 0)) continue;
    const lines = Object.entries(table).map(([key, value]) => `${tomlKey(key)} = ${tomlValue(value)}`);
    parts.push([`[${section}]`, ...lines].join('\n') + '\n');
  }
  return parts.join('\n');
}

/**
 * Python that computes the certified limit and the run of this Spec.
 * @param {Spec} spec
 * @returns {string}
 */
export function asPython(spec) {
  requireMatrices(spec);
  const options = spec.solve.layers === undefined ? '**spec.dynamics' : `**spec.dynamics, dt=${tomlNumber(spec.solve.dt ?? 1)}`;
  return [
    'import attnlab as al',
    '',
    `spec = al.Spec.from_json(r'''${jsonText(spec)}''')`,
    '',
    'start = al.resolve(spec)                       # the arrays that the Spec describes',
    `limit = al.limit(start.dynamics.weights, start.x0, ${options})`,
    'print(limit.certificate)                       # where the tokens end, with a proof',
    '',
    'run = al.run_spec(spec, throw=False)           # the tokens over time: run.times, run.x, run.z',
    'al.plot(run).savefig("run.png")',
    '',
  ].join('\n');
}

/**
 * Refuse the Spec of a recording whose matrices are too large for a page: attnlab could not run the copy.
 * @param {Spec} spec
 */
function requireMatrices({ weights }) {
  if (weights.family === 'given' && weights.V === undefined && weights.B === undefined) {
    throw new Refusal('This recording came without its matrices, so there is no run to copy. The file it was made of has them.');
  }
}

/**
 * JSON with one line per section. It contains no single quote, so it fits between the quotes of Python.
 * @param {Spec} spec
 */
function jsonText(spec) {
  const lines = Object.entries(spec).map(([key, value]) => `  ${JSON.stringify(key)}: ${jsonValue(value)}`);
  return `{\n${lines.join(',\n')}\n}`.replaceAll("'", '\\u0027');
}

/**
 * JSON.stringify would write -0 as 0.
 * @param {any} value
 * @returns {string}
 */
function jsonValue(value) {
  if (Array.isArray(value)) return `[${value.map(jsonValue).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value).map(([key, entry]) => `${JSON.stringify(key)}: ${jsonValue(entry)}`).join(', ')}}`;
  }
  return Object.is(value, -0) ? '-0.0' : JSON.stringify(value);
}

/** @param {string} key */
function tomlKey(key) {
  return BARE_KEY.test(key) ? key : tomlWord(key);
}

/**
 * @param {any} value
 * @returns {string}
 */
function tomlValue(value) {
  if (typeof value === 'number') return tomlNumber(value);
  if (typeof value === 'string') return tomlWord(value);
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([key, entry]) => `${tomlWord(key)} = ${tomlValue(entry)}`);
    return entries.length ? `{ ${entries.join(', ')} }` : '{}';
  }
  return String(value);
}

/**
 * The shortest text that is read back to the same bits. A whole number that is too large for TOML's 64 bits becomes a float.
 * @param {number} value
 */
function tomlNumber(value) {
  if (Object.is(value, -0)) return '-0.0';
  const text = String(value);
  return Number.isInteger(value) && Math.abs(value) > Number.MAX_SAFE_INTEGER && !text.includes('e') ? `${text}.0` : text;
}

/**
 * @param {string} word
 * TOML escapes what JSON escapes, and the delete character.
 */
function tomlWord(word) {
  return JSON.stringify(word).replaceAll('\u007f', '\\u007f');
}
