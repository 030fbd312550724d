// What is known about t = infinity: a limit that Python certified, an estimate of this page, or nothing. Also: colours of groups.

/**
 * @typedef {object} Outcome
 * @property {'certified' | 'estimated' | 'open'} kind
 * @property {number} count                0 where it is open
 * @property {number[]} labels             one per token; empty where it is open
 * @property {number[]} leaders            one per token, -1 is open; empty where it is open
 * @property {number[][]} points           one per label, Spec's coordinates
 * @property {boolean} isPlaces            points are whole positions; else projections on the growing directions
 * @property {string} why                  a sentence
 * @property {import('./types.js').CertifiedLimit} [limit]
 */

/**
 * Whether a direction of V grows, one truth value per column of the basis. On the sphere none does.
 * @param {import('./types.js').Recording} recording
 */
export function growingOf(recording) {
  return recording.growth.map((value) => recording.geometry !== 'sphere' && value > 0);
}

/**
 * A certified limit that can be drawn for these tokens. Its shape is checked, because the file may be untrusted.
 * @param {import('./types.js').CertifiedLimit} limit
 * @param {number} n
 * @param {number} d
 */
function isUsable(limit, n, d) {
  const { labels, leaders, points } = limit ?? {};
  if (
    !Array.isArray(labels)
    || !Array.isArray(points)
    || labels.length !== n
    || (limit.grade !== 'exact' && limit.grade !== 'group')
  )
    return false;
  if (Array.isArray(leaders) && leaders.some((j) => !Number.isInteger(j) || j < -1 || j >= n)) return false;
  return (
    labels.every((k) => Number.isInteger(k) && k >= 0 && k < points.length)
    && points.every((p) => Array.isArray(p) && p.length === d && p.every(Number.isFinite))
  );
}

/**
 * @param {import('./types.js').CertifiedLimit[]} limits   candidates: each holds for the Spec inside it
 * @param {import('./types.js').Spec} spec
 * @param {import('./types.js').Recording} recording
 * @param {(a: import('./types.js').Spec, b: import('./types.js').Spec) => boolean} isSame
 * @returns {Outcome}
 */
export function findOutcome(limits, spec, recording, isSame) {
  const { n, d, estimate } = recording,
    grows = growingOf(recording).some(Boolean);
  const limit = limits.find((one) => one?.spec && isSame(one.spec, spec) && isUsable(one, n, d));
  if (limit) {
    return {
      kind: 'certified',
      count: new Set(limit.labels).size,
      labels: limit.labels,
      leaders: limit.leaders ?? [],
      points: limit.points,
      isPlaces: !grows,
      why: limit.reason ?? '',
      limit,
    };
  }
  if (estimate?.holds && estimate.labels.length === n) {
    return {
      kind: 'estimated',
      count: estimate.count,
      labels: estimate.labels,
      leaders: estimate.leaders,
      points: estimate.points,
      isPlaces: !grows,
      why: estimate.why,
    };
  }
  return {
    kind: 'open',
    count: 0,
    labels: [],
    leaders: [],
    points: [],
    isPlaces: !grows,
    why: estimate?.why || recording.estimateWhy || '',
  };
}

/**
 * Number groups by size: the largest is 0, ties in the order of their first token.
 * @param {ArrayLike<number>} labels
 * @returns {Int32Array}
 */
export function rankGroups(labels) {
  const /** @type {Map<number, {size: number, first: number}>} */ groups = new Map();
  Array.from(labels).forEach((label, i) => {
    const group = groups.get(label);
    if (group) group.size++;
    else groups.set(label, { size: 1, first: i });
  });
  const order = [...groups].sort(([, a], [, b]) => b.size - a.size || a.first - b.first).map(([label]) => label);
  const rank = new Map(order.map((label, k) => [label, k]));
  return Int32Array.from(labels, (label) => rank.get(label) ?? 0);
}

/**
 * Give every group of a new run the colour of the old group with which it shares most tokens, so that colours do not jump during
 * a drag.
 * @param {Int32Array} ranks             new groups
 * @param {Int32Array | null} colours    old colours, of the same tokens as far as both have them
 * @returns {Int32Array}
 */
export function keepColours(ranks, colours) {
  if (!colours) return ranks;
  const /** @type {Map<string, number>} */ shared = new Map();
  for (let i = 0; i < Math.min(ranks.length, colours.length); i++) {
    if (colours[i] < 0) continue; // was unknown
    const key = `${ranks[i]},${colours[i]}`;
    shared.set(key, (shared.get(key) ?? 0) + 1);
  }
  const /** @type {Map<number, number>} */ given = new Map(),
    taken = new Set();
  for (const [key] of [...shared].sort((a, b) => b[1] - a[1])) {
    const [rank, colour] = key.split(',').map(Number);
    if (given.has(rank) || taken.has(colour)) continue;
    given.set(rank, colour);
    taken.add(colour);
  }
  let next = 0;
  for (const rank of [...new Set(ranks)].sort((a, b) => a - b)) {
    if (given.has(rank)) continue;
    while (taken.has(next)) next++;
    given.set(rank, next);
    taken.add(next);
  }
  return ranks.map((rank) => given.get(rank) ?? 0);
}

/**
 * The order of tokens in the attention matrix, in the table and under the tab key: by colour, then by number.
 * @param {Int32Array} colours
 */
export function orderTokens(colours) {
  return Array.from(colours, (_, i) => i).sort((a, b) => colours[a] - colours[b] || a - b);
}

/**
 * The places of the tokens at t = infinity, (n, 3): on their limits; along directions that do not grow, at the end of the run.
 * @param {Outcome} outcome
 * @param {import('./types.js').Recording} recording
 * @param {number[][]} inverse   of the recording's basis
 * @returns {Float32Array}
 */
export function placeAtInfinity(outcome, recording, inverse) {
  const { n, d, T, basis, frames } = recording,
    grows = growingOf(recording),
    places = new Float32Array(n * 3);
  for (let i = 0; i < n; i++) {
    const point = outcome.points[outcome.labels[i]];
    for (let c = 0; c < d; c++) places[3 * i + c] = point[c];
    if (outcome.isPlaces) continue;
    const last = frames.limit.subarray(((T - 1) * n + i) * 3, ((T - 1) * n + i) * 3 + d);
    for (let k = 0; k < d; k++) {
      if (grows[k]) continue;
      let along = 0;
      for (let c = 0; c < d; c++) along += inverse[k][c] * last[c];
      for (let c = 0; c < d; c++) places[3 * i + c] += along * basis[c][k];
    }
  }
  return places;
}
