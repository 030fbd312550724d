// Draw the limits: a diamond for a point, a dashed line for a line, a transparent sheet for a plane.

import { drawDiamond, drawLine, tracePolygon } from './marks.js';
import { growingOf } from './outcome.js';
import { SANS, colourOf } from './theme.js';

/** @typedef {import('./scene.js').Scene} Scene */
/** @typedef {import('./camera.js').Camera} Camera */

const MARGIN = 1.05;

/**
 * The letter of a group: A, B, ... Z, A1, ...
 * @param {number} group
 */
export function letterOf(group) {
  return String.fromCharCode(65 + (group % 26)) + (group < 26 ? '' : Math.floor(group / 26));
}

/**
 * One token of every group: [label, token].
 * @param {number[]} labels
 * @returns {[number, number][]}
 */
export function firstOfGroups(labels) {
  const /** @type {Map<number, number>} */ first = new Map();
  labels.forEach((label, i) => first.has(label) || first.set(label, i));
  return [...first];
}

/**
 * Whether limits have a place in this picture: they are limits of the limit frame, and of z where everything grows.
 * @param {Scene} scene
 */
export function hasPlaceForLimits({ recording, frame, outcome }) {
  if (outcome.kind === 'open') return false;
  return frame === 'limit' || recording.geometry === 'sphere' || (frame === 'z' && growingOf(recording).every(Boolean));
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {Camera} camera
 * @param {number} size    of a diamond
 */
export function drawLimits(g, scene, camera, size) {
  const { recording, outcome, colours, theme, places } = scene,
    { d, basis } = recording;
  if (!hasPlaceForLimits(scene)) return;
  const grows = growingOf(recording);
  const free = outcome.isPlaces ? [] : grows.flatMap((isGrowing, k) => (isGrowing ? [] : [basis.map((row) => row[k])]));
  const isCertified = outcome.kind === 'certified',
    /** @type {number[][]} */ letters = [];
  for (const [label, token] of firstOfGroups(outcome.labels)) {
    const point = [...outcome.points[label], 0, 0].slice(0, 3),
      colour = colourOf(theme, colours[token]);
    g.strokeStyle = colour;
    g.fillStyle = colour;
    g.lineWidth = 1.5;
    let /** @type {number[] | null} */ mark;
    if (!free.length) mark = drawPoint(g, point, camera, isCertified, size);
    else if (free.length === 1 || d === 2) mark = drawDirection(g, point, free[0], scene, camera, isCertified);
    else mark = drawSheet(g, point, free, scene, camera, isCertified);
    const letter = letterOf(colours[token]),
      members = outcome.labels.filter((other) => other === label).length;
    if (!mark) continue;
    while (letters.some(([x, y]) => Math.abs(x - mark[0]) < 12 && Math.abs(y - mark[1]) < 12)) mark[1] += 12;
    letters.push(mark);
    drawLetter(g, theme, places ? `${letter} ×${members}` : letter, mark[0], mark[1]);
  }
  g.globalAlpha = 1;
  g.setLineDash([]);
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {import('./theme.js').Theme} theme
 * @param {string} letter
 * @param {number} x
 * @param {number} y
 */
export function drawLetter(g, theme, letter, x, y) {
  g.globalAlpha = 1;
  g.font = `600 11px ${SANS}`;
  g.textAlign = 'left';
  g.textBaseline = 'middle';
  g.strokeStyle = theme.panel;
  g.lineWidth = 3;
  g.lineJoin = 'round';
  g.strokeText(letter, x, y);
  g.fillStyle = theme.note;
  g.fillText(letter, x, y);
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {number[]} point
 * @param {Camera} camera
 * @param {boolean} isCertified
 * @param {number} size
 */
function drawPoint(g, point, camera, isCertified, size) {
  const at = [0, 0, 0, 0];
  camera.project(point[0], point[1], point[2], at);
  g.globalAlpha = camera.isDeep ? Math.min(1, Math.max(0.5, 0.9 - 0.3 * at[2])) : 1;
  drawDiamond(g, at[0], at[1], size, isCertified);
  return [at[0] + size + 1, at[1] - 9];
}

/**
 * A line through the limit, cut at the walls.
 * @param {CanvasRenderingContext2D} g
 * @param {number[]} point
 * @param {number[]} direction
 * @param {Scene} scene
 * @param {Camera} camera
 * @param {boolean} isCertified
 */
function drawDirection(g, point, direction, { box, recording }, camera, isCertified) {
  let from = -Infinity,
    to = Infinity;
  for (let c = 0; c < recording.d; c++) {
    if (Math.abs(direction[c]) < 1e-12) continue;
    const ends = [-1, 1]
      .map((side) => (box.centre[c] + side * MARGIN * box.half[c] - point[c]) / direction[c])
      .sort((a, b) => a - b);
    from = Math.max(from, ends[0]);
    to = Math.min(to, ends[1]);
  }
  if (!(from < to) || !Number.isFinite(to - from)) return null;
  const ends = [from, to].map((s) => {
    const at = [0, 0, 0, 0];
    camera.project(
      point[0] + s * (direction[0] ?? 0),
      point[1] + s * (direction[1] ?? 0),
      point[2] + s * (direction[2] ?? 0),
      at,
    );
    return at;
  });
  g.globalAlpha = isCertified ? 0.8 : 0.6;
  g.setLineDash(isCertified ? [7, 4] : [2, 4]);
  drawLine(g, ends[0], ends[1]);
  g.setLineDash([]);
  const upper = ends[0][1] < ends[1][1] ? ends[0] : ends[1];
  return [upper[0] + 6, upper[1] + 4];
}

/**
 * The plane through a limit, cut at the walls of the box.
 * @param {number[]} point
 * @param {number[][]} directions   two
 * @param {import('./camera.js').Box} box
 * @returns {number[][]} corners, in order; fewer than three where the plane misses the box
 */
export function cutPlane(point, [u, v], box) {
  const normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
  /** @param {number[]} p */
  const height = (p) => p.reduce((sum, value, c) => sum + normal[c] * (value - point[c]), 0);
  const /** @type {number[][]} */ corners = [];
  for (let c = 0; c < 3; c++) {
    for (let side = 0; side < 4; side++) {
      const sides = [side & 1 ? 1 : -1, side & 2 ? 1 : -1],
        [low, high] = [-1, 1].map((end) => {
          const all = [...sides.slice(0, c), end, ...sides.slice(c)];
          return all.map((value, k) => box.centre[k] + value * MARGIN * box.half[k]);
        });
      const a = height(low),
        b = height(high);
      if (a === b || a * b > 0) continue;
      corners.push(low.map((value, k) => value + (a / (a - b)) * (high[k] - value)));
    }
  }
  if (corners.length < 3) return [];
  const middle = [0, 1, 2].map((c) => corners.reduce((sum, p) => sum + p[c], 0) / corners.length);
  /** @param {number[]} p @param {number[]} w */
  const along = (p, w) => p.reduce((sum, value, c) => sum + (value - middle[c]) * w[c], 0);
  const across = [normal[1] * u[2] - normal[2] * u[1], normal[2] * u[0] - normal[0] * u[2], normal[0] * u[1] - normal[1] * u[0]];
  const size = [Math.hypot(...u), Math.hypot(...across)];
  /** @param {number[]} p */
  const angle = (p) => Math.atan2(along(p, across) / size[1], along(p, u) / size[0]);
  return corners.sort((p, q) => angle(p) - angle(q));
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {number[]} point
 * @param {number[][]} directions
 * @param {Scene} scene
 * @param {Camera} camera
 * @param {boolean} isCertified
 */
function drawSheet(g, point, directions, { box }, camera, isCertified) {
  const corners = cutPlane(point, directions, box).map((corner) => {
    const at = [0, 0, 0, 0];
    camera.project(corner[0], corner[1], corner[2], at);
    return at;
  });
  if (corners.length < 3) return null;
  g.beginPath();
  tracePolygon(g, corners);
  g.globalAlpha = 0.1;
  g.fill();
  g.globalAlpha = 0.65;
  g.setLineDash(isCertified ? [] : [4, 3]);
  g.stroke();
  g.setLineDash([]);
  const top = corners.reduce((best, corner) => (corner[1] < best[1] ? corner : best));
  return [top[0] + 5, top[1] - 6];
}
