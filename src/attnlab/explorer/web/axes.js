// The background of the tokens: the box with its back walls, the axes of the plane, circle and sphere, and the names of axes.

import { outlineRadius } from './camera.js';
import { formatNumber, toSubscript } from './dom.js';
import { drawLine, tracePolygon } from './marks.js';
import { growingOf } from './outcome.js';
import { SANS, SERIF } from './theme.js';

const FULL = 2 * Math.PI;
const MARGIN = 1.05; // walls are a little outside the tokens

/** @typedef {import('./scene.js').Scene} Scene */
/** @typedef {import('./camera.js').Camera} Camera */

/**
 * The names of the axes: z for growing directions of V, x for others. If directions of V are oblique, axes mix both: y.
 * @param {import('./types.js').Recording} recording
 * @param {'limit' | 'z' | 'x'} frame
 * @returns {string[]}
 */
export function nameAxes(recording, frame) {
  const { d, basis, axes, geometry } = recording;
  if (axes) return axes;
  const grows = growingOf(recording),
    isStraight = basis.every((row, i) => row.every((value, k) => i === k || value === 0));
  const numbers = Array.from({ length: d }, (_, c) => (d === 1 ? '' : toSubscript(c + 1)));
  if (geometry === 'sphere' || frame === 'x') return numbers.map((c) => `x${c}`);
  if (frame === 'z' || grows.every(Boolean)) return numbers.map((c) => `z${c}`);
  if (!grows.some(Boolean)) return numbers.map((c) => `x${c}`);
  return numbers.map((c, k) => `${isStraight ? (grows[k] ? 'z' : 'x') : 'y'}${c}`);
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {Camera} camera
 */
export function drawScenery(g, scene, camera) {
  if (scene.kind === 'space') drawWalls(g, scene, camera);
  else if (scene.kind === 'plane') drawAxes(g, scene, camera);
  else if (scene.kind === 'circle') drawCircle(g, scene, camera);
  else if (scene.kind === 'sphere') drawBall(g, scene, camera);
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {import('./theme.js').Theme} theme
 * @param {string} name
 * @param {number} x
 * @param {number} y
 */
export function drawAxisName(g, theme, name, x, y) {
  g.fillStyle = theme.note;
  g.font = name.length > 3 ? `12px ${SANS}` : `italic 15px ${SERIF}`;
  g.textAlign = 'center';
  g.textBaseline = 'middle';
  g.fillText(name, x, y);
}

/**
 * The three walls that are behind the tokens, each with a grid.
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {Camera} camera
 */
function drawWalls(g, { theme, box, recording, frame }, camera) {
  const at = [0, 0, 0, 0];
  /** @param {number[]} corner   in halves of the box @returns {number[]} */
  const place = (corner) => {
    camera.project(...spread(corner.map((value, c) => box.centre[c] + value * box.half[c])), at);
    return at.slice();
  };
  const back = [0, 1, 2].map((c) => {
    const side = [0, 0, 0];
    side[c] = 1;
    return place(side)[2] > place(side.map((value) => -value))[2] ? 1 : -1;
  });
  for (let c = 0; c < 3; c++) {
    const [u, v] = [0, 1, 2].filter((other) => other !== c);
    /** @param {number} a @param {number} b */
    const wall = (a, b) => {
      const corner = [0, 0, 0];
      corner[c] = back[c] * MARGIN;
      corner[u] = a * MARGIN;
      corner[v] = b * MARGIN;
      return place(corner);
    };
    g.beginPath();
    tracePolygon(g, [wall(-1, -1), wall(1, -1), wall(1, 1), wall(-1, 1)]);
    g.fillStyle = theme.face;
    g.globalAlpha = c === 2 ? 0.045 : 0.018;
    g.fill();
    g.strokeStyle = theme.grid;
    g.lineWidth = 1;
    for (let m = -2; m <= 2; m++) {
      g.globalAlpha = Math.abs(m) === 2 ? 1 : 0.5;
      drawLine(g, wall(m / 2, -1), wall(m / 2, 1));
      drawLine(g, wall(-1, m / 2), wall(1, m / 2));
    }
  }
  g.globalAlpha = 1;
  const names = nameAxes(recording, frame),
    floor = back[2];
  const edges = [
    [0, -back[1] * 1.19, floor * 1.13],
    [-back[0] * 1.19, 0, floor * 1.13],
    [back[0] * 1.13, -back[1] * 1.13, 0],
  ];
  edges.forEach((edge, c) => {
    const [x, y] = place(edge);
    const name = names[c] ?? '',
      isNarrow = camera.middle[0] < 300;
    drawAxisName(g, theme, isNarrow ? name.split(' ')[0] : name, x, y);
  });
}

/**
 * @param {number[]} point
 * @returns {[number, number, number]}
 */
function spread([x, y, z]) {
  return [x, y, z];
}

/**
 * Round numbers in an interval, three to six of them.
 * @param {number} centre
 * @param {number} half
 * @returns {number[]}
 */
export function findTicks(centre, half) {
  const rough = half / 2.5,
    power = Math.floor(Math.log10(rough)),
    digit = [1, 2, 2.5, 5, 10].find((one) => one * 10 ** power >= rough) ?? 10;
  const step = digit * 10 ** power, first = Math.ceil((centre - half) / step), last = Math.floor((centre + half) / step);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {Camera} camera
 */
function drawAxes(g, { theme, box, recording, frame, view }, camera) {
  const at = [0, 0, 0, 0],
    reach = 1.04;
  /** @param {number} a @param {number} b @returns {number[]} */
  const place = (a, b) => {
    camera.project(box.centre[0] + a * box.half[0], box.centre[1] + b * box.half[1], 0, at);
    return at.slice();
  };
  /** @param {number} c   where the axis lies, in halves of the box */
  const inside = (c) => Math.min(1, Math.max(-1, c));
  const x0 = inside(-box.centre[0] / box.half[0]),
    y0 = inside(-box.centre[1] / box.half[1]);
  g.strokeStyle = theme.grid;
  g.lineWidth = 1;
  const ticks = [0, 1].map((c) => findTicks(box.centre[c], reach * box.half[c]));
  /** @param {number} value @param {number} c   from a coordinate to halves of the box */
  const along = (value, c) => (value - box.centre[c]) / box.half[c];
  g.globalAlpha = 0.38;
  for (const value of ticks[0]) drawLine(g, place(along(value, 0), -reach), place(along(value, 0), reach));
  for (const value of ticks[1]) drawLine(g, place(-reach, along(value, 1)), place(reach, along(value, 1)));
  g.globalAlpha = 1;
  g.strokeStyle = theme.rule;
  drawLine(g, place(-reach, y0), place(reach, y0));
  drawLine(g, place(x0, -reach), place(x0, reach));
  g.fillStyle = theme.note;
  g.font = `11px ${SANS}`;
  g.textAlign = 'left';
  g.textBaseline = 'alphabetic';
  for (const c of view[2] > 1.01 ? [] : [0, 1]) {
    for (const value of ticks[c]) {
      const at = along(value, c);
      if (value === 0 || Math.abs(at) > 0.9) continue; // the axes cross there, or their names are there
      const [x, y] = c === 0 ? place(at, y0) : place(x0, at);
      g.fillText(formatNumber(value, 6), x + (c === 0 ? 4 : 5), y + (c === 0 ? 13 : -4));
    }
  }
  const names = nameAxes(recording, frame),
    [right, top] = [place(reach, y0), place(x0, reach)];
  drawAxisName(g, theme, names[0] ?? '', right[0] - 2, right[1] - 13);
  drawAxisName(g, theme, names[1] ?? '', top[0] + 16, top[1] + 6);
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {Camera} camera
 */
function drawCircle(g, { theme }, camera) {
  const at = [0, 0, 0, 0],
    edge = [0, 0, 0, 0];
  camera.project(0, 0, 0, at);
  camera.project(1, 0, 0, edge);
  const radius = edge[0] - at[0];
  g.beginPath();
  g.arc(at[0], at[1], radius, 0, FULL);
  g.fillStyle = theme.face;
  g.globalAlpha = 0.035;
  g.fill();
  g.globalAlpha = 1;
  g.strokeStyle = theme.rule;
  g.lineWidth = 1.2;
  g.stroke();
  g.strokeStyle = theme.grid;
  g.lineWidth = 1;
  for (let m = 0; m < 24; m++) {
    const a = (m / 24) * FULL,
      inner = m % 6 ? 0.985 : 0.965;
    drawLine(
      g,
      [at[0] + radius * inner * Math.cos(a), at[1] - radius * inner * Math.sin(a)],
      [at[0] + radius * Math.cos(a), at[1] - radius * Math.sin(a)],
    );
  }
}

/**
 * A sphere with parallels and meridians; those behind it are faint.
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {Camera} camera
 */
function drawBall(g, { theme }, camera) {
  const at = [0, 0, 0, 0],
    radius = outlineRadius(camera);
  camera.project(0, 0, 0, at);
  const [x, y] = at;
  const light = g.createRadialGradient(x - radius * 0.35, y - radius * 0.4, radius * 0.1, x, y, radius);
  light.addColorStop(0, theme.ball[0]);
  light.addColorStop(1, theme.ball[1]);
  g.beginPath();
  g.arc(x, y, radius, 0, FULL);
  g.fillStyle = light;
  g.fill();
  g.strokeStyle = theme.rule;
  g.lineWidth = 1.2;
  g.stroke();
  g.strokeStyle = theme.grid;
  g.lineWidth = 0.9;
  /** @param {(angle: number) => [number, number, number]} curve */
  const trace = (curve) => {
    for (const isBack of [true, false]) {
      let isDown = false;
      g.globalAlpha = isBack ? 0.3 : 1;
      g.beginPath();
      for (let m = 0; m <= 96; m++) {
        camera.project(...curve((m / 96) * FULL), at);
        if (at[2] > 0 !== isBack) {
          isDown = false;
          continue;
        }
        if (isDown) g.lineTo(at[0], at[1]);
        else g.moveTo(at[0], at[1]);
        isDown = true;
      }
      g.stroke();
    }
  };
  for (const height of [-2 / 3, -1 / 3, 0, 1 / 3, 2 / 3]) {
    const ring = Math.sqrt(1 - height * height);
    trace((a) => [ring * Math.cos(a), ring * Math.sin(a), height]);
  }
  for (let m = 0; m < 6; m++) {
    const b = (m * Math.PI) / 6;
    trace((a) => [Math.cos(a) * Math.cos(b), Math.cos(a) * Math.sin(b), Math.sin(a)]);
  }
  g.globalAlpha = 1;
}
