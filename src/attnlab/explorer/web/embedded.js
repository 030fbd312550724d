// Unpack a recording that Python packed (explorer/recording.py, packing.py) for the viewer. It is untrusted input: sizes are
// checked before any array is made.

import { Refusal } from './refusal.js';

/** @typedef {import('./types.js').Recording} Recording */
/** @typedef {import('./types.js').EmbeddedRecording} EmbeddedRecording */

const MOST_FRAMES = 2000;
const MOST_TOKENS = 2000;
const LEVELS = 65535;
const SHARES = 255;
const LONGEST = 4000;   // letters of a text
const ENDINGS = ['certified', 'open', 'end'];
const STATUSES = ['OK', 'MAX_STEPS', 'STALLED', 'NON_FINITE', 'PAST_DOUBLE_PRECISION', 'INTERRUPTED'];

/**
 * The recording in a packed one.
 * @param {EmbeddedRecording} packed
 * @returns {Promise<Recording>}
 */
export async function unpackRecording(packed) {
  const { n, T, d } = checkRecord(packed);
  const began = performance.now();
  const limit = await unpackTokens(packed.tokens, T, n);
  const leaders = await unpackLeaders(packed.leaders, T, n);
  const shares = packed.shares === undefined ? undefined : await unpackShares(packed.shares, T, n);
  return {
    n, d, T, times: Float64Array.from(packed.times), tau: packed.tau, complete: true, frames: { limit }, leaders,
    ...(shares ? { shares } : {}),
    every: packed.every, groups: Float32Array.from(packed.groups), listened: Float32Array.from(packed.listened),
    labels: Int32Array.from(packed.labels), count: packed.count, changes: Float64Array.from(packed.changes),
    x0: packed.x0 ?? firstFrame(limit, n, d), basis: packed.basis, growth: packed.growth, turn: packed.turn,
    geometry: packed.geometry,
    status: packed.status, sentence: String(packed.sentence), trusted: packed.trusted ?? Infinity, estimate: null,
    estimateWhy: 'This is a recording: Python computed it, and the page does not estimate its limit.',
    steps: packed.steps, evaluations: packed.evaluations, milliseconds: performance.now() - began,
    isEmbedded: true,
    ...(packed.words ? { words: packed.words.map(String) } : {}),
    ...(packed.axes ? { axes: packed.axes.map(String) } : {}),
    ...(packed.layers ? { layers: packed.layers } : {}),
    ...readAbout(packed),
  };
}

/**
 * The facts in a recording of a trained model. Its words are untrusted: they are shown as text, and shortened.
 * @param {EmbeddedRecording} packed
 * @returns {Partial<Recording>}
 */
function readAbout({ until, box, heads, equation, numbers, ending, python, times }) {
  const /** @type {Partial<Recording>} */ about = {}, cut = (/** @type {any} */ text) => String(text).slice(0, LONGEST);
  if (until !== undefined) {
    if (until !== times[times.length - 1]) refuse('until');
    about.until = until;
  }
  if (box !== undefined) {
    requireNumbers('box', box?.centre, 3);
    requireNumbers('box', box.half, 3);
    if (box.half.some((/** @type {number} */ size) => size <= 0)) refuse('box');
    about.box = { centre: box.centre, half: box.half };
  }
  if (Number.isInteger(heads) && heads > 0) about.heads = heads;
  if (equation !== undefined) about.equation = cut(equation);
  if (numbers !== undefined) about.numbers = cut(numbers);
  if (python !== undefined) about.python = cut(python);
  if (ending !== undefined) {
    if (!ENDINGS.includes(ending?.kind)) refuse('ending');
    about.ending = { kind: ending.kind, mark: cut(ending.mark), text: cut(ending.text) };
  }
  return about;
}

/**
 * Refuse a record that does not have the shape of a recording.
 * @param {EmbeddedRecording} packed
 * @returns {{n: number, T: number, d: number}}
 */
function checkRecord(packed) {
  if (typeof packed !== 'object' || packed === null) throw new Refusal('The recording in this page must be a table.');
  if (packed.version !== 1) throw new Refusal(`The recording has version ${show(packed.version)}; this page reads version 1.`);
  const { n, T, d } = packed, series = Math.ceil(T / packed.every);
  /** @param {any} value @param {number} most */
  const isWhole = (value, most) => Number.isInteger(value) && value >= 1 && value <= most;
  if (!isWhole(n, MOST_TOKENS) || !isWhole(T, MOST_FRAMES) || !isWhole(d, 3) || !isWhole(packed.every, T)) {
    throw new Refusal(`A recording has at most ${MOST_TOKENS} tokens and ${MOST_FRAMES} frames in 1 to 3 dimensions; this one `
      + `says n = ${show(n)}, T = ${show(T)}, d = ${show(d)}.`);
  }
  requireNumbers('times', packed.times, T);
  requireNumbers('groups', packed.groups, series);
  requireNumbers('listened', packed.listened, series);
  requireNumbers('labels', packed.labels, n);
  requireNumbers('changes', packed.changes, null);
  requireNumbers('growth', packed.growth, d);
  requireNumbers('turn', packed.turn, d);
  requireNumbers('basis', packed.basis?.flat?.(), d * d);
  requireNumbers('tokens.low', packed.tokens?.low, 3);
  requireNumbers('tokens.size', packed.tokens?.size, 3);
  if (packed.x0 !== undefined) requireNumbers('x0', packed.x0?.flat?.(), n * d);
  requireNumbers('tau, count, steps and evaluations', [packed.tau, packed.count, packed.steps, packed.evaluations], 4);
  if (packed.labels.some((/** @type {number} */ label) => !Number.isInteger(label) || label < 0 || label >= n)) refuse('labels');
  const /** @type {number[]} */ times = packed.times;
  if (times.some((t, k) => t < 0 || (k > 0 && t <= times[k - 1]))) refuse('times');
  if (packed.words !== undefined && !(Array.isArray(packed.words) && packed.words.length === n)) refuse('words');
  if (packed.axes !== undefined && !(Array.isArray(packed.axes) && packed.axes.length === d)) refuse('axes');
  if (!(packed.trusted === null || packed.trusted === undefined || packed.trusted >= 0)) refuse('trusted');
  if (!STATUSES.includes(packed.status)) refuse('status');
  if (packed.geometry !== 'euclidean' && packed.geometry !== 'sphere') refuse('geometry');
  return { n, T, d };
}

/**
 * @param {string} name
 * @param {any} value
 * @param {number | null} count
 */
function requireNumbers(name, value, count) {
  if (!Array.isArray(value) || (count !== null && value.length !== count) || !value.every(Number.isFinite)) refuse(name);
}

/**
 * @param {string} name
 * @returns {never}
 */
function refuse(name) {
  throw new Refusal(`The recording in this page is damaged: its ${name} are not consistent. Write the page again.`);
}

/** @param {any} value */
function show(value) {
  return String(JSON.stringify(value)).slice(0, 40);
}

/**
 * Tokens as (T, n, 3).
 * @param {{low: number[], size: number[], bytes: string}} packed
 * @param {number} T
 * @param {number} n
 */
async function unpackTokens(packed, T, n) {
  const steps = await unpackNumbers(packed.bytes, 3 * n * T, 'tokens'), tokens = new Float32Array(T * n * 3);
  for (let row = 0; row < 3 * n; row++) {
    addUp(steps, row * T, T);
    addUp(steps, row * T, T);
    const coordinate = Math.floor(row / n), token = row % n;
    const low = packed.low[coordinate], step = packed.size[coordinate] / LEVELS;
    for (let k = 0; k < T; k++) tokens[(k * n + token) * 3 + coordinate] = low + step * steps[row * T + k];
  }
  return tokens;
}

/**
 * Leaders as (T, n).
 * @param {string} text
 * @param {number} T
 * @param {number} n
 */
async function unpackLeaders(text, T, n) {
  const steps = await unpackNumbers(text, n * T, 'leaders'), leaders = new Int16Array(T * n);
  for (let token = 0; token < n; token++) {
    addUp(steps, token * T, T);
    for (let k = 0; k < T; k++) leaders[k * n + token] = steps[token * T + k];
  }
  if (leaders.some((leader) => leader < -1 || leader >= n)) refuse('leaders');
  return leaders;
}

/**
 * Shares of attention as (T, n).
 * @param {string} text
 * @param {number} T
 * @param {number} n
 */
async function unpackShares(text, T, n) {
  const steps = await unpackNumbers(text, n * T, 'shares'), shares = new Float32Array(T * n);
  for (let token = 0; token < n; token++) {
    addUp(steps, token * T, T);
    for (let k = 0; k < T; k++) shares[k * n + token] = steps[token * T + k] / SHARES;
  }
  if (shares.some((share) => share > 1)) refuse('shares');
  return shares;
}

/**
 * Undo differences along one row; the numbers wrap around at 2^16, as they did when they were packed.
 * @param {Uint16Array} steps
 * @param {number} first
 * @param {number} count
 */
function addUp(steps, first, count) {
  for (let k = first + 1; k < first + count; k++) steps[k] += steps[k - 1];
}

/**
 * @param {any} text       base64 of deflated byte planes
 * @param {number} count   numbers that must be there
 * @param {string} name
 * @returns {Promise<Uint16Array>}
 */
async function unpackNumbers(text, count, name) {
  const bytes = await inflate(text, 2 * count).catch(() => refuse(name));
  if (bytes.length !== 2 * count) refuse(name);
  const numbers = new Uint16Array(count);
  for (let k = 0; k < count; k++) {
    const folded = bytes[k] | (bytes[count + k] << 8);
    numbers[k] = (folded >> 1) ^ -(folded & 1);                          // 0, 1, 2, 3 -> 0, -1, 1, -2
  }
  return numbers;
}

/**
 * Deflated bytes out of base64, at most `most` of them: a small text could hold gigabytes.
 * @param {string} text
 * @param {number} most
 */
async function inflate(text, most) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate')).getReader();
  const bytes = new Uint8Array(most);
  let filled = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    if (filled + piece.value.length > most) {
      await reader.cancel();
      throw new Error('too long');
    }
    bytes.set(piece.value, filled);
    filled += piece.value.length;
  }
  return bytes.subarray(0, filled);
}

/**
 * @param {Float32Array} frames
 * @param {number} n
 * @param {number} d
 */
function firstFrame(frames, n, d) {
  return Array.from({ length: n }, (_, i) => Array.from(frames.subarray(3 * i, 3 * i + d)));
}
