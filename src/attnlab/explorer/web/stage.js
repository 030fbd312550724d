// The picture of the tokens at one time, in the plane, in space, on the circle or the sphere; on the line see worldlines.js.
// It draws what a Scene says and integrates nothing. The same code draws on the screen, into a PNG, a film and an SVG.

import { makeCamera } from './camera.js';
import { drawDeepHull, drawFlatHull } from './hull.js';
import { drawLabels } from './labels.js';
import { drawLimits } from './limits.js';
import { drawGlow, drawRing, drawToken, hatch } from './marks.js';
import { canHaveHull, countFollowers, currentLeaders, emphasis, findPoints, fogOf, radiusOf } from './scene.js';
import { drawScenery } from './axes.js';
import { colourOf, shapeOf } from './theme.js';
import { drawRow, drawStarts, drawThreads, drawTrails } from './trails.js';
import { drawWorldLines, makeLineMap } from './worldlines.js';

/** @typedef {import('./scene.js').Scene} Scene */
/** @typedef {import('./scene.js').Area} Area */

/**
 * @param {CanvasRenderingContext2D} g
 * @param {Area} area
 * @param {Scene} scene
 * @returns {import('./scene.js').Drawn}
 */
export function drawStage(g, area, scene) {
  const isUnknown = scene.moment === 'infinity' && !scene.places;
  if (scene.kind === 'lines') {
    return { pixels: drawWorldLines(g, area, scene), camera: null, yOf: makeLineMap(scene, area).yOf };
  }
  const camera = makeCamera(scene.kind, scene.box, area, scene.view);
  drawScenery(g, scene, camera);
  if (isUnknown || scene.moment === 'gap') hatch(g, 0, 0, area.width, area.height, scene.theme.grid, 10);
  if (isUnknown) return { pixels: new Float32Array(0), camera };
  const points = findPoints(scene),
    pixels = new Float32Array(points.length * 4);
  points.forEach((p, i) => camera.project(p[0], p[1], p[2], pixels, 4 * i));
  const leaders = currentLeaders(scene);
  if (scene.show.has('hull') && canHaveHull(scene)) drawHull(g, scene, points, pixels);
  const base = scene.moment === 'gap' ? 0.3 : 1;
  if (scene.show.has('trails') && scene.moment === 'run') drawTrails(g, scene, camera, pixels);
  if (scene.show.has('threads')) drawThreads(g, scene, leaders, pixels, base);
  if (scene.show.has('limits')) drawLimits(g, scene, camera, Math.min(12, radiusOf(scene, area) + 7));
  if (scene.row) drawRow(g, scene, pixels);
  if (scene.show.has('drag')) drawStarts(g, scene, camera, area);
  drawTokens(g, scene, leaders, pixels, radiusOf(scene, area), base);
  drawLabels(g, scene, pixels, area);
  g.globalAlpha = 1;
  return { pixels, camera };
}

/** @param {CanvasRenderingContext2D} g @param {Scene} scene @param {number[][]} points @param {Float32Array} pixels */
function drawHull(g, { recording, box, theme }, points, pixels) {
  if (recording.d === 2) drawFlatHull(g, theme, points, pixels);
  else
    drawDeepHull(
      g,
      theme,
      points.map((p) => p.map((value, c) => (value - box.centre[c]) / box.half[c])),
      pixels,
    );
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {ArrayLike<number>} leaders
 * @param {Float32Array} pixels
 * @param {number} radius
 * @param {number} base
 */
function drawTokens(g, scene, leaders, pixels, radius, base) {
  const { theme, colours, kind, quality, selected } = scene,
    isDeep = kind === 'space' || kind === 'sphere';
  const followers = countFollowers(leaders),
    order = Array.from({ length: pixels.length / 4 }, (_, i) => i);
  if (isDeep) order.sort((i, j) => pixels[4 * j + 2] - pixels[4 * i + 2]);
  for (const i of order) {
    const x = pixels[4 * i],
      y = pixels[4 * i + 1],
      depth = pixels[4 * i + 2];
    const r = radius * (isDeep ? pixels[4 * i + 3] ** 1.4 : 1),
      colour = colourOf(theme, colours[i]);
    g.globalAlpha = base * emphasis(scene, i) * (kind === 'sphere' && depth > 0.1 ? 0.26 : isDeep ? fogOf(depth) : 1);
    if (followers[i] > 0) {
      g.strokeStyle = theme.ink;
      g.lineWidth = 1.3;
      drawRing(g, x, y, r + 4.2);
    }
    if (theme.glow && quality.glow) drawGlow(g, x, y, r, colour);
    drawToken(g, theme, x, y, r, colour, shapeOf(colours[i], scene.show.has('shapes')));
    if (selected.includes(i)) {
      g.strokeStyle = theme.accent;
      g.lineWidth = 2;
      drawRing(g, x, y, r + 7);
    }
  }
  g.globalAlpha = 1;
}
