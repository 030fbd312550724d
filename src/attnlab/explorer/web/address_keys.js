// The keys that an address may have, with a reader and bounds for each value. An address is untrusted input.

/** The largest start that a page takes from an address. */
export const MOST_TOKENS = 2000;
export const MOST_DIMENSIONS = 3;

const MOST_HEADS = 8;
const MOST_TIMES = 10001;
const MOST_WORDS = 40;
const LARGEST = 1e12;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const PAIR = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([+-](?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)i$/i;
const WORD = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$/;

/**
 * A reader takes the text of a value and returns the value, or throws a string that says what must hold.
 * @typedef {(text: string) => any} Reader
 */

/**
 * @param {number} least
 * @param {number} most
 * @returns {Reader}
 */
function readNumber(least = -LARGEST, most = LARGEST) {
  return (text) => {
    const value = NUMBER.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most)) throw `must be a number from ${least} to ${most}`;
    return value;
  };
}

/**
 * @param {number} least
 * @param {number} most
 * @returns {Reader}
 */
function readWhole(least, most) {
  return (text) => {
    const value = NUMBER.test(text) ? Number(text) : NaN;
    if (!(Number.isInteger(value) && value >= least && value <= most)) throw `must be a whole number from ${least} to ${most}`;
    return value;
  };
}

/**
 * @param {...string} words
 * @returns {Reader}
 */
function readOneOf(...words) {
  return (text) => {
    if (!words.includes(text)) throw `must be ${words.join(', ')}`;
    return text;
  };
}

/** @type {Reader} */
function readWord(text) {
  if (!WORD.test(text)) throw 'must be a name';
  return text;
}

/** @type {Reader} */
function readFlag(text) {
  return readOneOf('true', 'false')(text) === 'true';
}

/**
 * Numbers with commas between them.
 * @param {number} least
 * @param {number} most
 * @param {Reader} read
 * @returns {Reader}
 */
function readList(least, most, read) {
  return (text) => {
    const parts = text === '' ? [] : text.split(',', most + 1);
    if (parts.length < least || parts.length > most) throw `must have ${least === most ? least : `${least} to ${most}`} entries`;
    return parts.map(read);
  };
}

/** Real eigenvalues, and pairs 0.5+1.2i, which stand for two. @type {Reader} */
function readEigenvalues(text) {
  const values = readList(1, MOST_DIMENSIONS, (part) => {
    const pair = PAIR.exec(part);
    return pair ? [readNumber()(pair[1]), readNumber()(pair[2])] : readNumber()(part);
  })(text);
  if (values.flat().length > MOST_DIMENSIONS) throw `must stand for at most ${MOST_DIMENSIONS} dimensions`;
  return values;
}

/**
 * Numbers of several heads, rows or tokens, as JSON.
 * @param {...number} most   entries at each level, from outside
 * @returns {Reader}
 */
function readNested(...most) {
  return (text) => {
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      throw 'must be numbers in brackets';
    }
    checkNested(value, most);
    return value;
  };
}

/**
 * @param {any} value
 * @param {number[]} most
 */
function checkNested(value, most) {
  if (typeof value === 'number') {
    if (!(Math.abs(value) <= LARGEST)) throw `must have numbers up to ${LARGEST}`;
  } else if (Array.isArray(value) && most.length > 0 && value.length > 0 && value.length <= most[0]) {
    for (const entry of value) checkNested(entry, most.slice(1));
  } else {
    throw `must be numbers in brackets, at most ${most.join(' x ') || 1}`;
  }
}

/** Tokens as JSON, [[1, 2], [3, 4]]. @type {Reader} */
function readTokens(text) {
  const tokens = readNested(MOST_TOKENS, MOST_DIMENSIONS)(text);
  if (!Array.isArray(tokens) || !tokens.every((token) => Array.isArray(token) && token.length === tokens[0].length)) {
    throw 'must be tokens with equally many coordinates';
  }
  return tokens;
}

/** @type {Reader} */
function readMean(text) {
  return text.includes(',') ? readList(2, MOST_DIMENSIONS, readNumber())(text) : readNested(MOST_DIMENSIONS)(text);
}

/** @type {Reader} */
function readTime(text) {
  return text === 'inf' ? text : readNumber(0)(text);
}

const matrices = readNested(MOST_HEADS, MOST_DIMENSIONS, MOST_DIMENSIONS);
const seed = readWhole(0, Number.MAX_SAFE_INTEGER), positive = readNumber(Number.MIN_VALUE);

/** The reader of every key; tokens moved by hand have the keys start.moved.0, start.moved.1, ... @type {Map<string, Reader>} */
const READERS = new Map(Object.entries({
  version: readWhole(1, 1e6),
  preset: readWord,
  observe: readList(0, MOST_WORDS, readWord),
  'weights.family': readWord,
  'weights.eigenvalues': readEigenvalues,
  'weights.basis': readWord,
  'weights.matrix': readWord,
  'weights.rng': seed,
  'weights.d': readWhole(1, MOST_DIMENSIONS),
  'weights.scale': readNumber(),
  'weights.V': matrices,
  'weights.Q': matrices,
  'weights.K': matrices,
  'weights.B': matrices,
  'weights.C': matrices,
  'dynamics.beta': readNumber(),
  'dynamics.geometry': readOneOf('euclidean', 'sphere'),
  'dynamics.kernel': readOneOf('softmax', 'exp_mean', 'hardmax'),
  'dynamics.mask': readOneOf('full', 'causal'),
  'start.law': readWord,
  'start.n': readWhole(1, MOST_TOKENS),
  'start.d': readWhole(1, MOST_DIMENSIONS),
  'start.rng': seed,
  'start.low': readNumber(),
  'start.high': readNumber(),
  'start.scale': positive,
  'start.mean': readMean,
  'start.radius': positive,
  'start.equally_spaced': readFlag,
  'start.clusters': readWhole(1, MOST_TOKENS),
  'start.spread': positive,
  'start.separation': positive,
  'start.x': readTokens,
  'solve.t_end': positive,
  'solve.layers': readWhole(1, MOST_TIMES),
  'solve.times': readList(1, MOST_TIMES, readNumber(0)),
  'solve.saves': readWhole(1, MOST_TIMES),
  'solve.rtol': readNumber(1e-14, 0.1),
  'solve.atol': readNumber(0),
  'solve.stepper': readOneOf('adaptive', 'euler', 'rk4'),
  'solve.dt': positive,
  'solve.frame': readOneOf('auto', 'x', 'z'),
  'solve.max_steps': readWhole(1, 1e7),
  'solve.measure_error': readFlag,
  'view.t': readTime,
  'view.frame': readOneOf('limit', 'z', 'x'),
  'view.camera': readList(3, 3, readNumber(-1000, 1000)),
  'view.show': readList(0, MOST_WORDS, readWord),
  'view.selected': readList(0, MOST_TOKENS, readWhole(0, MOST_TOKENS - 1)),
  'view.theme': readOneOf('auto', 'light', 'dark'),
}));

const MOVED = /^start\.moved\.(0|[1-9]\d{0,3})$/;
const readPlace = readList(1, MOST_DIMENSIONS, readNumber());

/**
 * The reader of a key, or undefined if the key is unknown.
 * @param {string} key
 * @returns {Reader | undefined}
 */
export function readerOf(key) {
  return READERS.get(key) ?? (MOVED.test(key) ? readPlace : undefined);
}
