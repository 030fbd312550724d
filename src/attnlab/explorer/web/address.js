// The whole state as an address that people can read: #weights.eigenvalues=1,0.9,-0.5&dynamics.beta=4&start.n=40&view.t=0.4
// Numbers are written so that they are read back to the same bits. An address is untrusted input: sizes are bounded, and a
// sentence names each part that the page does not understand.

import { MOST_TOKENS, readerOf } from './address_keys.js';
import { VERSION } from './types.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Preset} Preset */

const LONGEST = 400000;
const MOST_KEYS = MOST_TOKENS + 200;
const MOST_COMPLAINTS = 6;
const SECTIONS = /** @type {const} */ (['weights', 'dynamics', 'start', 'solve']);

/**
 * The fragment of an address, without its #, that holds a whole state.
 * @param {State} state
 * @returns {string}
 */
export function writeAddress(state) {
  return [...entriesOf(state)].map(([key, value]) => `${encode(key)}=${encode(textOf(key, value))}`).join('&');
}

/**
 * The state in the fragment of an address. Missing keys come from `fallback`. If the fragment names the family of the weights and
 * the law of the start, it holds a whole Spec, and no key of the Spec comes from `fallback`. `#preset=NAME` alone opens that
 * preset. Never throws: complaints are sentences for the reader, and the state can always be shown.
 * @param {string} text
 * @param {State} fallback
 * @param {Preset[]} [presets]
 * @param {(spec: import('./types.js').Spec) => void} [check]   throws a sentence for the reader if a Spec cannot be run
 * @returns {{state: State, complaints: string[]}}
 */
export function readAddress(text, fallback, presets = [], check = () => {}) {
  const /** @type {string[]} */ complaints = [];
  try {
    if (typeof text !== 'string' || text.length > LONGEST) throw new Error('too long');
    const said = readEntries(text.replace(/^#+/, ''), fallback, complaints);
    const state = makeState(said, fallback, presets, complaints);
    const own = presets.find((one) => one.id === state.preset);
    const usual = own ? { ...fallback, spec: own.spec, preset: own.id } : fallback;
    if (said.size > 0) keepRunnable(state, usual, check, complaints);
    return { state, complaints: shorten(complaints) };
  } catch {
    return { state: structuredClone(fallback), complaints: ['This address cannot be read, so it was left out.'] };
  }
}

/**
 * Every key and value of a state, in the order in which they are written.
 * @param {State} state
 * @returns {Map<string, any>}
 */
function entriesOf(state) {
  const /** @type {Map<string, any>} */ entries = new Map();
  if (state.version !== VERSION) entries.set('version', state.version);
  if (state.preset !== undefined) entries.set('preset', state.preset);
  if (state.spec.observe?.length) entries.set('observe', state.spec.observe);
  for (const section of SECTIONS) {
    for (const [key, value] of Object.entries(state.spec[section] ?? {})) {
      if (section === 'start' && key === 'moved') {
        for (const [token, place] of Object.entries(value)) entries.set(`start.moved.${token}`, place);
      } else {
        entries.set(`${section}.${key}`, value);
      }
    }
  }
  for (const [key, value] of Object.entries(state.view)) entries.set(`view.${key}`, value);
  return entries;
}

/**
 * @param {string} key
 * @param {any} value
 * @returns {string}
 */
function textOf(key, value) {
  if (key === 'weights.eigenvalues') return value.map(eigenvalueText).join(',');
  const isList = Array.isArray(value) && value.every((entry) => typeof entry !== 'object');
  const needsBrackets = /^(weights\.[A-Z]|start\.x)$/.test(key) || (key === 'start.mean' && value.length === 1);
  if (isList && !needsBrackets) return value.map(scalarText).join(',');
  return Array.isArray(value) ? `[${value.map((entry) => textOf('start.x', entry)).join(',')}]` : scalarText(value);
}

/** @param {number | [number, number]} value */
function eigenvalueText(value) {
  if (!Array.isArray(value)) return scalarText(value);
  const imaginary = scalarText(value[1]);
  return `${scalarText(value[0])}${/^[-+]/.test(imaginary) ? '' : '+'}${imaginary}i`;
}

/** @param {any} value */
function scalarText(value) {
  if (Object.is(value, -0)) return '-0';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/**
 * Ordinary letters stay readable. Only characters with a meaning in an address are escaped.
 * @param {string} text
 */
function encode(text) {
  return encodeURIComponent(text).replace(/%(2C|2B|5B|5D|3A|2F)/gi, (code) => decodeURIComponent(code));
}

/**
 * The keys and values of an address. A refused part is left out, with a complaint.
 * @param {string} text
 * @param {State} fallback
 * @param {string[]} complaints
 * @returns {Map<string, any>}
 */
function readEntries(text, fallback, complaints) {
  const /** @type {Map<string, any>} */ said = new Map(), known = entriesOf(fallback);
  const parts = text.split('&', MOST_KEYS + 1).filter((part) => part !== '');
  if (parts.length > MOST_KEYS) complaints.push(`The address has more than ${MOST_KEYS} keys; the others were left out.`);
  for (const part of parts.slice(0, MOST_KEYS)) {
    const [key, raw] = splitPart(part), read = readerOf(key);
    if (known.has(key) && textOf(key, known.get(key)) === raw) {
      said.set(key, structuredClone(known.get(key)));             // values of the page itself may exceed the bounds
    } else if (read === undefined) {
      complaints.push(`The address has the key ${quote(key)}, which this page does not know; it was left out.`);
    } else {
      try {
        said.set(key, read(raw));
      } catch (reason) {
        complaints.push(`In the address ${quote(key)} ${reason}, but it is ${quote(raw)}; it was left out.`);
      }
    }
  }
  return said;
}

/**
 * @param {string} part
 * @returns {[string, string]}
 */
function splitPart(part) {
  const place = part.indexOf('='), key = place < 0 ? part : part.slice(0, place), value = place < 0 ? '' : part.slice(place + 1);
  return [decode(key), decode(value)];
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * @param {Map<string, any>} said
 * @param {State} fallback
 * @param {Preset[]} presets
 * @param {string[]} complaints
 * @returns {State}
 */
function makeState(said, fallback, presets, complaints) {
  const /** @type {State} */ state = structuredClone(fallback);
  if (said.get('version') !== undefined && said.get('version') !== VERSION) {
    complaints.push(`The address was written by version ${said.get('version')} of the explorer; this is version ${VERSION}.`);
  }
  const preset = presets.find((one) => one.id === said.get('preset'));
  if (said.has('preset') && presets.length > 0 && !preset) {
    complaints.push(`There is no preset ${quote(said.get('preset'))} on this page.`);
  } else if (said.has('preset')) {
    state.preset = said.get('preset');
  }
  if (preset) state.spec = structuredClone(preset.spec);
  if (preset?.camera && !said.has('view.camera')) state.view.camera = [...preset.camera];
  const isWhole = said.has('weights.family') && said.has('start.law');
  if (isWhole && !said.has('preset')) delete state.preset;
  if (isWhole) state.spec = { weights: {}, start: {}, solve: {} };
  else dropOthers(said, state.spec);
  if ([...said.keys()].some((key) => key.startsWith('start.moved.'))) delete state.spec.start.moved;
  applyEntries(said, state);
  checkSpec(said, state, fallback, complaints);
  return state;
}

/**
 * Another law or family keeps no key of the old one, except the keys that all of them have.
 * @param {Map<string, any>} said
 * @param {import('./types.js').Spec} spec
 */
function dropOthers(said, spec) {
  const law = said.get('start.law'), family = said.get('weights.family'), { n, d, rng } = spec.start;
  if (law !== undefined && law !== spec.start.law) {
    spec.start = Object.fromEntries(Object.entries({ n, d, rng }).filter(([, value]) => value !== undefined));
  }
  if (family !== undefined && family !== spec.weights.family) spec.weights = {};
}

/**
 * @param {Map<string, any>} said
 * @param {State} state
 */
function applyEntries(said, state) {
  const { spec, view } = state;
  if (said.has('weights.eigenvalues') && !said.has('weights.family') && spec.weights.family !== 'spectrum') {
    spec.weights = { family: 'spectrum', basis: 'identity' };
  }
  for (const [key, value] of said) {
    const [section, name, token] = key.split('.');
    if (key === 'observe') spec.observe = value;
    else if (token !== undefined && name === 'moved') (spec.start.moved ??= {})[token] = value;
    else if (section === 'dynamics') (spec.dynamics ??= {})[name] = value;
    else if (section === 'weights' || section === 'start' || section === 'solve') spec[section][name] = value;
    else if (section === 'view') /** @type {any} */ (view)[name] = value;
  }
}

/**
 * Make the parts of the Spec consistent: dimensions, moved tokens, and selected tokens.
 * @param {Map<string, any>} said
 * @param {State} state
 * @param {State} fallback
 * @param {string[]} complaints
 */
function checkSpec(said, state, fallback, complaints) {
  const { weights, start, solve } = state.spec;
  const hasEnd = ['t_end', 'times', 'layers'].some((key) => solve[key] !== undefined);
  if (!hasEnd) solve.t_end = fallback.spec.solve.t_end ?? 12;
  const d = weights.family === 'spectrum' && Array.isArray(weights.eigenvalues) ? weights.eigenvalues.flat().length : weights.d;
  if (d !== undefined && start.d !== undefined && d !== start.d) {
    if (said.has('start.d') && said.has('weights.eigenvalues')) {
      complaints.push(`In the address the weights have ${d} dimensions and the tokens ${start.d}; the tokens were given ${d}.`);
    }
    start.d = d;
    delete start.moved;
  }
  const n = Array.isArray(start.x) ? start.x.length : start.n, dimension = start.d ?? d;
  for (const [token, place] of Object.entries(start.moved ?? {})) {
    if (Number(token) < n && (dimension === undefined || place.length === dimension)) continue;
    delete start.moved[token];
    complaints.push(`The address moves token ${token}, and its place does not fit this start; it was left out.`);
  }
  if (start.moved && Object.keys(start.moved).length === 0) delete start.moved;
  state.view.selected = state.view.selected.filter((token) => !(token >= n));
}

/**
 * Replace a Spec that cannot be run by that of the fallback.
 * @param {State} state
 * @param {State} fallback
 * @param {(spec: import('./types.js').Spec) => void} check
 * @param {string[]} complaints
 */
function keepRunnable(state, fallback, check, complaints) {
  try {
    check(state.spec);
  } catch (problem) {
    const reason = problem instanceof Error ? problem.message : String(problem);
    complaints.push(`The run in the address cannot be shown. ${reason}`);
    state.spec = structuredClone(fallback.spec);
    state.preset = fallback.preset;
    if (fallback.preset === undefined) delete state.preset;
  }
}

/** @param {string[]} complaints */
function shorten(complaints) {
  const more = complaints.length - MOST_COMPLAINTS;
  return more <= 0 ? complaints : [...complaints.slice(0, MOST_COMPLAINTS), `The address has ${more} more such faults.`];
}

/** An untrusted word, short and without control characters. @param {string} word */
function quote(word) {
  const plain = word.replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, '?');
  return `“${plain.length > 40 ? `${plain.slice(0, 40)}…` : plain}”`;
}
