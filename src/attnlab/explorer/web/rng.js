// NumPy's random numbers, bit for bit: SeedSequence, PCG64, random and standard_normal of numpy.random.default_rng(seed).
import { TAIL, ONE_OVER_TAIL, widths, insides, heights } from './ziggurat.js';
import { Refusal } from './refusal.js';

const POOL = 4;                                            // uint32 words
const MASK_32 = 0xffffffffn, MASK_64 = (1n << 64n) - 1n, MASK_128 = (1n << 128n) - 1n;
const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;    // of PCG64

/**
 * A seed as a whole number >= 0 of any size, or a Refusal.
 * @param {unknown} seed
 * @returns {bigint}
 */
export function wholeSeed(seed) {
  if (typeof seed === 'bigint' && seed >= 0n) return seed;
  if (typeof seed === 'number' && Number.isSafeInteger(seed) && seed >= 0) return BigInt(seed);
  if (typeof seed === 'number' && seed > Number.MAX_SAFE_INTEGER && Number.isInteger(seed)) {
    throw new Refusal(`rng must be below 2^53 in a page, where larger numbers lose digits; got ${seed}. Choose a smaller one.`);
  }
  throw new Refusal(`rng must be a whole number, 0 or more, got ${String(seed).slice(0, 40)}. rng = 0 makes a repeatable draw.`);
}

/**
 * The uint32 words of a whole number, the lowest first; of 0 one word.
 * @param {bigint} value
 * @returns {number[]}
 */
function wordsOf(value) {
  const words = [];
  do {
    words.push(Number(value & MASK_32));
    value >>= 32n;
  } while (value > 0n);
  return words;
}

/**
 * numpy.random.SeedSequence(seed, spawn_key=spawnKey).generate_state(count).
 * @param {bigint} seed
 * @param {number} count       how many uint32 words
 * @param {number[]} [spawnKey]
 * @returns {number[]}
 */
export function generateState(seed, count, spawnKey = []) {
  const entropy = wordsOf(seed);
  if (spawnKey.length) {
    while (entropy.length < POOL) entropy.push(0);         // so that a seed with a key differs from every longer seed
    for (const key of spawnKey) entropy.push(...wordsOf(BigInt(key)));
  }
  let hash = 0x43b0d7e5;
  const hashed = (/** @type {number} */ value) => {
    value = (value ^ hash) >>> 0;
    hash = Math.imul(hash, 0x931e8875) >>> 0;
    value = Math.imul(value, hash) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  };
  const mixed = (/** @type {number} */ x, /** @type {number} */ y) => {
    const value = (Math.imul(x, 0xca01f9dd) - Math.imul(y, 0x4973f715)) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  };
  const pool = Array.from({ length: POOL }, (_, i) => hashed(entropy[i] ?? 0));
  for (let from = 0; from < POOL; from++) {
    for (let to = 0; to < POOL; to++) if (from !== to) pool[to] = mixed(pool[to], hashed(pool[from]));
  }
  for (let from = POOL; from < entropy.length; from++) {
    for (let to = 0; to < POOL; to++) pool[to] = mixed(pool[to], hashed(entropy[from]));
  }
  hash = 0x8b51f9dd;
  return Array.from({ length: count }, (_, i) => {
    let value = (pool[i % POOL] ^ hash) >>> 0;
    hash = Math.imul(hash, 0x58f38ded) >>> 0;
    value = Math.imul(value, hash) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  });
}

/**
 * SeedSequence(seed, spawn_key).generate_state(count, uint64).
 * @param {bigint} seed
 * @param {number} count
 * @param {number[]} [spawnKey]
 * @returns {bigint[]}
 */
export function generateState64(seed, count, spawnKey = []) {
  const words = generateState(seed, 2 * count, spawnKey).map(BigInt);
  return Array.from({ length: count }, (_, i) => words[2 * i] | (words[2 * i + 1] << 32n));
}

/** numpy.random.default_rng(seed). */
export class Generator {
  /** @param {unknown} seed  a whole number or a bigint, 0 or more */
  constructor(seed) {
    const [high, low, streamHigh, streamLow] = generateState64(wholeSeed(seed), 4);
    this.increment = ((((streamHigh << 64n) | streamLow) << 1n) | 1n) & MASK_128;
    this.state = 0n;
    this.#advance();
    this.state = (this.state + ((high << 64n) | low)) & MASK_128;
    this.#advance();
  }

  #advance() {
    this.state = (this.state * MULTIPLIER + this.increment) & MASK_128;
  }

  /**
   * The next 64 random bits.
   * @returns {bigint}
   */
  nextBits() {
    this.#advance();
    const folded = ((this.state >> 64n) ^ this.state) & MASK_64, turn = this.state >> 122n;
    return ((folded >> turn) | (folded << ((64n - turn) & 63n))) & MASK_64;
  }

  /**
   * A number uniform on [0, 1).
   * @returns {number}
   */
  random() {
    return Number(this.nextBits() >> 11n) / 9007199254740992;
  }

  /**
   * A number uniform on [low, high).
   * @param {number} low
   * @param {number} high
   */
  uniform(low, high) {
    return low + (high - low) * this.random();
  }

  /**
   * A standard normal number, by NumPy's ziggurat.
   * @returns {number}
   */
  standardNormal() {
    for (;;) {
      const bits = this.nextBits(), high = Number(bits >> 32n), low = Number(bits & MASK_32);
      const strip = low & 255, isNegative = (low >>> 8 & 1) === 1;
      const place = (high & 0x1fffffff) * 8388608 + (low >>> 9);             // 52 bits
      const x = (isNegative ? -place : place) * widths[strip];
      if (place < insides[strip]) return x;
      if (strip === 0) return this.#tail((low >>> 17 & 1) === 1);
      if ((heights[strip - 1] - heights[strip]) * this.random() + heights[strip] < Math.exp(-0.5 * x * x)) return x;
    }
  }

  /**
   * Beyond the last strip, one draw in 4000. log1p differs from the C library's in the last place for one number in a thousand;
   * the sum hides nine in ten of these.
   * @param {boolean} isNegative
   */
  #tail(isNegative) {
    for (;;) {
      const beyond = -ONE_OVER_TAIL * Math.log1p(-this.random()), height = -Math.log1p(-this.random());
      if (height + height > beyond * beyond) return isNegative ? -(TAIL + beyond) : TAIL + beyond;
    }
  }
}
