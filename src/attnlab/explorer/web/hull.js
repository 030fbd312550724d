// The convex hull of the tokens: computed in the plane and in space, and drawn behind them.

import { tracePolygon } from './marks.js';

/** @typedef {{corners: number[], normal: number[], offset: number}} Face   corners: three indices */

/**
 * The corners of a hull in the plane, counter-clockwise (monotone chain).
 * @param {number[][]} points   [[x, y], ...]
 * @returns {number[]} indices
 */
export function hullOfPlane(points) {
  const order = points.map((_, i) => i).sort((a, b) => points[a][0] - points[b][0] || points[a][1] - points[b][1]);
  if (order.length < 3) return order;
  /** @param {number} a @param {number} b @param {number} c */
  const turnOf = (a, b, c) =>
    (points[b][0] - points[a][0]) * (points[c][1] - points[a][1]) - (points[b][1] - points[a][1]) * (points[c][0] - points[a][0]);
  /** @param {number[]} list */
  const chainOf = (list) => {
    const /** @type {number[]} */ chain = [];
    for (const i of list) {
      while (chain.length > 1 && turnOf(chain[chain.length - 2], chain[chain.length - 1], i) <= 1e-12) chain.pop();
      chain.push(i);
    }
    return chain.slice(0, -1);
  };
  return [...chainOf(order), ...chainOf(order.reverse())];
}

/** @param {number[]} a @param {number[]} b */
const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
/** @param {number[]} a @param {number[]} b */
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
/** @param {number[]} a @param {number[]} b */
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

/**
 * The faces of a hull in space, outward; none where all points lie in a plane. Points are added one at a time.
 * @param {number[][]} points
 * @returns {Face[]}
 */
export function hullOfSpace(points) {
  const size = points.reduce((most, p) => Math.max(most, ...p.map(Math.abs)), 0),
    tiny = 1e-6 * (size || 1);
  const first = firstTetrahedron(points, tiny);
  if (!first) return [];
  /** @param {number} a @param {number} b @param {number} c @returns {Face} */
  const faceOf = (a, b, c) => {
    const normal = cross(minus(points[b], points[a]), minus(points[c], points[a])),
      length = Math.hypot(...normal) || 1;
    const unit = normal.map((value) => value / length);
    return { corners: [a, b, c], normal: unit, offset: dot(unit, points[a]) };
  };
  const [p, q, r, s] = first;
  let faces = [
    [p, q, r, s],
    [p, s, q, r],
    [q, s, r, p],
    [r, s, p, q],
  ].map(([a, b, c, other]) => {
    const face = faceOf(a, b, c);
    return dot(face.normal, points[other]) > face.offset ? faceOf(a, c, b) : face;
  });
  for (let i = 0; i < points.length; i++) {
    const seen = new Set(faces.filter((face) => dot(face.normal, points[i]) - face.offset > tiny));
    if (!seen.size) continue;
    const /** @type {Map<string, [number, number]>} */ rim = new Map();
    for (const { corners } of seen) {
      for (let k = 0; k < 3; k++) {
        const a = corners[k],
          b = corners[(k + 1) % 3];
        if (!rim.delete(`${b},${a}`)) rim.set(`${a},${b}`, [a, b]);
      }
    }
    faces = faces.filter((face) => !seen.has(face));
    for (const [a, b] of rim.values()) faces.push(faceOf(a, b, i));
  }
  return faces;
}

/**
 * Four points that are far from lying in a plane, or null.
 * @param {number[][]} points
 * @param {number} tiny
 */
function firstTetrahedron(points, tiny) {
  if (points.length < 4) return null;
  /** @param {(p: number[]) => number} measure @returns {[number, number]} */
  const farthest = (measure) => {
    let best = -1,
      most = -Infinity;
    points.forEach((p, i) => {
      if (measure(p) > most) {
        most = measure(p);
        best = i;
      }
    });
    return [best, most];
  };
  const [p] = farthest((x) => -x[0]),
    [q] = farthest((x) => Math.hypot(...minus(x, points[p])));
  const edge = minus(points[q], points[p]),
    length = Math.hypot(...edge);
  if (length < tiny) return null;
  const [r, area] = farthest((x) => Math.hypot(...cross(edge, minus(x, points[p]))));
  if (area < tiny * length) return null;
  const normal = cross(edge, minus(points[r], points[p]));
  const [s, volume] = farthest((x) => Math.abs(dot(normal, minus(x, points[p]))));
  return volume < tiny * Math.hypot(...normal) ? null : [p, q, r, s];
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {import('./theme.js').Theme} theme
 * @param {number[][]} points
 * @param {Float32Array} pixels   (n, 4)
 */
export function drawFlatHull(g, theme, points, pixels) {
  const corners = hullOfPlane(points);
  if (corners.length < 3) return;
  g.beginPath();
  tracePolygon(
    g,
    corners.map((i) => [pixels[4 * i], pixels[4 * i + 1]]),
  );
  g.fillStyle = theme.face;
  g.globalAlpha = 0.09;
  g.fill();
  g.globalAlpha = 0.55;
  g.strokeStyle = theme.edge;
  g.lineWidth = 1.1;
  g.stroke();
  g.globalAlpha = 1;
}

/**
 * Tokens with a distance: of tokens closer than `near` only the first stays. Faces between tokens of one group would be slivers.
 * @param {number[][]} points
 * @param {number} near
 * @returns {number[]} indices
 */
export function thinOut(points, near) {
  const /** @type {number[]} */ kept = [];
  points.forEach((p, i) => {
    if (!kept.some((k) => p.every((value, c) => Math.abs(value - points[k][c]) < near))) kept.push(i);
  });
  return kept;
}

/**
 * A transparent hull: faint faces, and edges that are stronger where they are sharper. Flat seams between triangles stay
 * invisible, so that the threads remain visible and a polytope shows its own edges when the tokens have gathered.
 * @param {CanvasRenderingContext2D} g
 * @param {import('./theme.js').Theme} theme
 * @param {number[][]} points     scaled to the box
 * @param {Float32Array} pixels   (n, 4)
 */
export function drawDeepHull(g, theme, points, pixels) {
  const kept = thinOut(points, 0.006);
  const faces = hullOfSpace(kept.map((i) => points[i])).map((face) => ({ ...face, corners: face.corners.map((k) => kept[k]) }));
  const /** @type {Map<string, {face: Face, isFront: boolean}>} */ sides = new Map();
  g.fillStyle = theme.face;
  for (const face of faces) {
    const [a, b, c] = face.corners.map((i) => [pixels[4 * i], pixels[4 * i + 1]]);
    const isFront = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) < 0;
    const light = Math.max(0, 0.45 * face.normal[2] - 0.3 * face.normal[0] + 0.55);
    face.corners.forEach((i, k) => sides.set(`${i},${face.corners[(k + 1) % 3]}`, { face, isFront }));
    g.globalAlpha = (isFront ? 0.05 : 0.03) * (0.35 + light);
    g.beginPath();
    tracePolygon(g, [a, b, c]);
    g.fill();
  }
  g.strokeStyle = theme.edge;
  for (const [key, side] of sides) {
    const [a, b] = key.split(',').map(Number),
      other = sides.get(`${b},${a}`);
    if (a > b || !other) continue;
    const sharpness = Math.min(1, 1.6 * (1 - dot(side.face.normal, other.face.normal)));
    const isOutline = side.isFront !== other.isFront,
      isBack = !side.isFront && !other.isFront;
    const alpha = (isBack ? 0.14 : isOutline ? 0.5 : 0.42) * (isOutline ? Math.max(0.35, sharpness) : sharpness);
    if (alpha < 0.02) continue;
    g.globalAlpha = alpha;
    g.lineWidth = isBack ? 0.7 : 1;
    g.beginPath();
    g.moveTo(pixels[4 * a], pixels[4 * a + 1]);
    g.lineTo(pixels[4 * b], pixels[4 * b + 1]);
    g.stroke();
  }
  g.globalAlpha = 1;
}
