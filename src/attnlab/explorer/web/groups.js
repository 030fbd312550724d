// Groups of tokens at a stated scale, by single linkage: two tokens are in one group when a chain of short steps joins them.

/**
 * The largest distance between two of n points (n, width).
 * @param {Float32Array | Float64Array} points
 * @param {number} n
 * @param {number} width
 * @returns {number}
 */
export function diameter(points, n, width) {
  let most = 0;
  for (let i = 0; i < n; i++) for (let k = 0; k < i; k++) most = Math.max(most, squaredDistance(points, i, k, width));
  return Math.sqrt(most);
}

/**
 * @param {Float32Array | Float64Array} points
 * @param {number} i
 * @param {number} k
 * @param {number} width
 */
function squaredDistance(points, i, k, width) {
  let sum = 0;
  for (let c = 0; c < width; c++) {
    const apart = points[i * width + c] - points[k * width + c];
    sum += apart * apart;
  }
  return sum;
}

/**
 * The group of each of n points, numbered by their first tokens.
 * @param {Float32Array | Float64Array} points    (n, width)
 * @param {number} n
 * @param {number} width
 * @param {number} scale
 * @returns {{names: Int32Array, count: number}}
 */
export function findGroups(points, n, width, scale) {
  const names = new Int32Array(n).fill(-1), unseen = Int32Array.from({ length: n }, (_, i) => i), waiting = new Int32Array(n);
  const near = scale * scale;
  let left = n, count = 0;
  while (left > 0) {
    let open = 0;
    // the first token not yet seen: the list is kept in order
    waiting[open++] = unseen[0];
    unseen.copyWithin(0, 1, left--);
    while (open > 0) {
      const token = waiting[--open], x = points[token * width];
      names[token] = count;
      let kept = 0;
      for (let k = 0; k < left; k++) {
        const other = unseen[k], apart = points[other * width] - x;           // most are far in the first coordinate already
        if (apart * apart <= near && squaredDistance(points, token, other, width) <= near) waiting[open++] = other;
        else unseen[kept++] = other;
      }
      left = kept;
    }
    count += 1;
  }
  return { names, count };
}

/**
 * Names of groups changed so that the largest group is 0, of equally large ones the one with the first token.
 * @param {ArrayLike<number>} names      whole numbers >= 0
 * @returns {Int32Array}
 */
export function rankLabels(names) {
  const sizes = new Map();
  for (let i = 0; i < names.length; i++) sizes.set(names[i], (sizes.get(names[i]) ?? 0) + 1);
  const order = [...sizes.keys()].sort((a, b) => sizes.get(b) - sizes.get(a));       // stable: first seen, first named
  const rank = new Map(order.map((name, k) => [name, k]));
  return Int32Array.from({ length: names.length }, (_, i) => rank.get(names[i]) ?? 0);
}
