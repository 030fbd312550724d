// Starts that a reflection maps onto themselves. A token on the mirror stays on it forever, so it never follows a token on one
// side. In double precision rounding chooses a side, and a test of its leader would be about that side.

/**
 * A token on a mirror of the start whose leader is not on it, or -1. Mirrors are those of the coordinates, which V leaves alone.
 * @param {Float64Array} start        (d, n), in eigen-coordinates
 * @param {number[][]} M              the scores, in the same coordinates
 * @param {boolean[]} turns           whether a coordinate belongs to a complex pair: those flip together
 * @param {ArrayLike<number>} leaders (n)
 * @returns {number}
 */
export function findTie(start, M, turns, leaders) {
  const d = M.length, n = leaders.length;
  for (let flips = 1; flips < 1 << d; flips++) {
    const isFlipped = (/** @type {number} */ c) => Boolean(flips & (1 << c));
    const isOnMirror = (/** @type {number} */ i) => M.every((_, c) => !isFlipped(c) || start[c * n + i] === 0);
    const isKept = M.every((row, a) => row.every((value, b) => value === 0 || isFlipped(a) === isFlipped(b)))
      && M.every((_, a) => M.every((_, b) => !turns[a] || !turns[b] || isFlipped(a) === isFlipped(b)));
    if (!isKept) continue;
    for (let i = 0; i < n; i++) if (isOnMirror(i) && !isOnMirror(leaders[i]) && isInvariant(start, d, n, isFlipped)) return i;
  }
  return -1;
}

/**
 * Whether flipping the signs of some coordinates maps the tokens onto themselves.
 * @param {Float64Array} start
 * @param {number} d
 * @param {number} n
 * @param {(c: number) => boolean} isFlipped
 */
function isInvariant(start, d, n, isFlipped) {
  /** @type {Map<string, number>} */
  const count = new Map();
  const add = (/** @type {boolean} */ isImage, /** @type {number} */ by) => {
    for (let i = 0; i < n; i++) {
      const key = Array.from({ length: d }, (_, c) => (isImage && isFlipped(c) ? -1 : 1) * start[c * n + i] + 0).join();
      count.set(key, (count.get(key) ?? 0) + by);
    }
  };
  add(false, 1);
  add(true, -1);
  return [...count.values()].every(difference => difference === 0);
}
