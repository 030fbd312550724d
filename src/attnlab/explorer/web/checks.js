// Checks of untrusted words and numbers. Every refusal is a sentence.
import { Refusal } from './refusal.js';

/**
 * A value in a few letters, for messages.
 * @param {unknown} value
 * @returns {string}
 */
export function show(value) {
  let text;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    text = String(value);
  }
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {number} [least]
 * @param {number} [most]
 * @returns {number}
 */
export function wholeNumber(name, value, least = 1, most = Infinity) {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least) {
    throw new Refusal(`${name} must be a whole number of at least ${least}, got ${show(value)}.`);
  }
  if (value > most) throw new Refusal(`${name} must be at most ${most} in a page, got ${value}. attnlab in Python takes more.`);
  return value;
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {number}
 */
export function finiteNumber(name, value) {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new Refusal(`${name} must be a finite number, got ${show(value)}.`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {number}
 */
export function positiveNumber(name, value) {
  if (!(finiteNumber(name, value) > 0)) throw new Refusal(`${name} must be a positive number, got ${show(value)}.`);
  return /** @type {number} */ (value);
}

/**
 * Rows of finite numbers, all of one length.
 * @param {string} name
 * @param {unknown} value
 * @returns {number[][]}
 */
export function matrixOf(name, value) {
  const isMatrix = Array.isArray(value) && value.length > 0
    && value.every(row => Array.isArray(row) && row.length > 0 && row.length === value[0].length);
  if (!isMatrix) throw new Refusal(`${name} must be a list of rows of equal length, got ${show(value)}.`);
  for (const row of value) for (const entry of row) finiteNumber(`An entry of ${name}`, entry);
  return value.map(row => row.slice());
}

/**
 * Refuse a name that is not known.
 * @template {string} T
 * @param {string} kind
 * @param {unknown} name
 * @param {readonly T[]} known
 * @returns {T}
 */
export function knownName(kind, name, known) {
  const found = known.find(one => one === name);
  if (found === undefined) throw new Refusal(`${kind} must be one of ${known.join(', ')}; got ${show(name)}.`);
  return found;
}

/**
 * Refuse anything but a table.
 * @param {string} where
 * @param {unknown} table
 * @returns {import('./types.js').Table}
 */
export function checkTable(where, table) {
  if (typeof table === 'object' && table !== null && !Array.isArray(table)) return table;
  throw new Refusal(`${where} must be a table, got ${show(table)}.`);
}

/**
 * Refuse a table with a key that is not known, or something that is no table.
 * @param {string} where
 * @param {unknown} table
 * @param {readonly string[]} known
 * @returns {import('./types.js').Table}
 */
export function checkKeys(where, table, known) {
  const checked = checkTable(where, table);
  for (const key of Object.keys(checked)) {
    if (!known.includes(key)) throw new Refusal(`${where} takes the keys ${known.join(', ')}; got ${show(key)}.`);
  }
  return checked;
}
