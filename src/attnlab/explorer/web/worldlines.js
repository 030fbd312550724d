// Tokens on the line: their world-lines against the clock, which ends at infinity. The past is strong, the future faint.

import { shareOf } from './clock.js';
import { drawLabels } from './labels.js';
import { drawLetter, firstOfGroups, hasPlaceForLimits, letterOf } from './limits.js';
import { drawDiamond, drawGlow, drawLine, drawRing, drawToken, hatch } from './marks.js';
import { countFollowers, currentLeaders, emphasis, findPoints, radiusOf } from './scene.js';
import { drawAxisName, nameAxes } from './axes.js';
import { colourOf, shapeOf } from './theme.js';
import { drawRow } from './trails.js';

/** @typedef {import('./scene.js').Scene} Scene */
/** @typedef {import('./scene.js').Area} Area */

/**
 * The maps from frame number and coordinate to pixels, and from pixels to the coordinate.
 * @param {Scene} scene
 * @param {Area} area
 */
export function makeLineMap({ recording, box }, area) {
  const { T, times, tau } = recording,
    width = area.right - area.left;
  /** @param {number} k */
  const xOf = (k) => area.left + width * shareOf(times[k], tau);
  const top = area.top + 14,
    bottom = area.height - area.bottom - 10,
    middle = (top + bottom) / 2,
    reach = (bottom - top) / 2;
  const centre = box.centre[0],
    half = box.half[0] * 1.05;
  return {
    top,
    bottom,
    xOfFrame: (/** @type {number} */ k) => {
      const below = Math.floor(k);
      return below < T - 1 ? xOf(below) + (k - below) * (xOf(below + 1) - xOf(below)) : xOf(T - 1);
    },
    yOf: (/** @type {number} */ value) => middle - (reach * (value - centre)) / half,
    valueAt: (/** @type {number} */ y) => centre + (half * (middle - y)) / reach,
  };
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {Area} area
 * @param {Scene} scene
 * @returns {Float32Array} pixels (n, 4)
 */
export function drawWorldLines(g, area, scene) {
  const {
    recording: { n, T },
    theme,
    position,
    moment,
    places,
    colours,
  } = scene;
  const map = makeLineMap(scene, area),
    end = map.xOfFrame(T - 1),
    base = moment === 'gap' ? 0.3 : 1;
  hatch(g, end, map.top - 8, area.right - end, map.bottom - map.top + 16, theme.grid, 8);
  g.strokeStyle = theme.grid;
  g.lineWidth = 1;
  drawLine(g, [area.left, map.yOf(0)], [area.right, map.yOf(0)]);
  drawAxisName(g, theme, nameAxes(scene.recording, scene.frame)[0], area.left - 18, map.top + 2);
  drawAxisName(g, theme, '0', area.left - 18, map.yOf(0));
  const now = moment === 'run' ? Math.min(position, T - 1) : T - 1;
  g.save();
  g.beginPath();
  g.rect(area.left - 12, map.top - 12, area.right - area.left + 24, map.bottom - map.top + 24);
  g.clip();
  drawLines(g, scene, map, Math.floor(now), T - 1, 0.16, 1);
  if (scene.show.has('trails') || moment !== 'run') drawLines(g, scene, map, 0, now, 0.78 * base, n > 120 ? 1 : 1.5);
  g.restore();
  const pixels = new Float32Array(moment === 'infinity' && !places ? 0 : 4 * n);
  if (pixels.length) {
    const x = moment === 'infinity' ? area.right : map.xOfFrame(now);
    findPoints(scene).forEach((p, i) => pixels.set([x, map.yOf(p[0]), 0, 1], 4 * i));
  }
  if (scene.show.has('limits')) drawLimits(g, area, scene, map);
  if (scene.row) drawRow(g, scene, pixels);
  if (scene.show.has('drag')) drawStarts(g, area, scene, map);
  const followers = countFollowers(currentLeaders(scene)),
    radius = radiusOf(scene, area) * 0.9;
  for (let i = 0; i < pixels.length / 4; i++) {
    const x = pixels[4 * i],
      y = pixels[4 * i + 1],
      colour = colourOf(theme, colours[i]);
    g.globalAlpha = base * emphasis(scene, i);
    if (followers[i] > 0) {
      g.strokeStyle = theme.ink;
      g.lineWidth = 1.4;
      drawRing(g, x, y, radius + 4.4);
    }
    if (theme.glow && scene.quality.glow) drawGlow(g, x, y, radius, colour);
    drawToken(g, theme, x, y, radius, colour, shapeOf(colours[i], scene.show.has('shapes')));
    if (scene.selected.includes(i)) {
      g.strokeStyle = theme.accent;
      g.lineWidth = 2;
      drawRing(g, x, y, radius + 7);
    }
  }
  drawLabels(g, scene, pixels, area);
  g.globalAlpha = 1;
  return pixels;
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {ReturnType<typeof makeLineMap>} map
 * @param {number} from   frame numbers
 * @param {number} to
 * @param {number} alpha
 * @param {number} width
 */
function drawLines(g, scene, map, from, to, alpha, width) {
  const {
      recording: { n, T },
      frames,
      theme,
      colours,
    } = scene,
    step = Math.max(1, Math.round(T / (n > 200 ? 120 : 240)));
  const last = Math.floor(to),
    part = to - last;
  g.lineWidth = width;
  g.lineJoin = 'round';
  for (let i = 0; i < n; i++) {
    g.globalAlpha = alpha * emphasis(scene, i);
    g.strokeStyle = colourOf(theme, colours[i]);
    g.beginPath();
    for (let k = from; ; k = Math.min(last, k + step)) {
      const x = map.xOfFrame(k),
        y = map.yOf(frames[(k * n + i) * 3]);
      if (k === from) g.moveTo(x, y);
      else g.lineTo(x, y);
      if (k >= last) break;
    }
    if (part > 0 && last + 1 < T) {
      const a = frames[(last * n + i) * 3],
        b = frames[((last + 1) * n + i) * 3];
      g.lineTo(map.xOfFrame(to), map.yOf(a + part * (b - a)));
    }
    g.stroke();
  }
  g.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {Area} area
 * @param {Scene} scene
 * @param {ReturnType<typeof makeLineMap>} map
 */
function drawLimits(g, area, scene, map) {
  const { outcome, theme, colours } = scene;
  if (!hasPlaceForLimits(scene)) return;
  for (const [label, token] of firstOfGroups(outcome.labels)) {
    const y = map.yOf(outcome.points[label][0]);
    g.strokeStyle = colourOf(theme, colours[token]);
    g.lineWidth = 1.6;
    drawDiamond(g, area.right, y, 9, outcome.kind === 'certified');
    drawLetter(g, theme, letterOf(colours[token]), area.right - 4, y - 18);
  }
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {Area} area
 * @param {Scene} scene
 * @param {ReturnType<typeof makeLineMap>} map
 */
function drawStarts(g, area, scene, map) {
  const {
      recording: { x0 },
      theme,
      colours,
    } = scene,
    radius = radiusOf(scene, area) * 0.9;
  g.lineWidth = 1.4;
  x0.forEach(([value], i) => {
    g.strokeStyle = colourOf(theme, colours[i]);
    drawRing(g, area.left, map.yOf(value), radius);
  });
}
