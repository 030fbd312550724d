// Lines between tokens and their past: trails, threads to leaders, arcs of attention, and the handles of starts.

import { drawArc, drawRing } from './marks.js';
import { emphasis, fogOf, radiusOf } from './scene.js';
import { colourOf } from './theme.js';

/** @typedef {import('./scene.js').Scene} Scene */
/** @typedef {import('./scene.js').Area} Area */

/**
 * The past of each token: a trail in five pieces that fade.
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {import('./camera.js').Camera} camera
 * @param {Float32Array} pixels
 */
export function drawTrails(g, scene, camera, pixels) {
  const {
    recording: { n, T },
    frames,
    position,
    theme,
    quality,
    colours,
    kind,
  } = scene;
  const now = Math.min(Math.floor(position), T - 1),
    length = Math.min(now, Math.round(quality.trail * T));
  if (length < 2) return;
  const pieces = 5,
    step = Math.max(1, Math.round(T / (n > 250 ? 120 : 240))),
    base = n > 250 ? 0.9 : n > 120 ? 1.2 : 1.7;
  const at = [0, 0, 0, 0];
  g.lineCap = 'round';
  g.lineJoin = 'round';
  for (let i = 0; i < n; i++) {
    const isFar = kind === 'sphere' && pixels[4 * i + 2] > 0.1;
    const dim = emphasis(scene, i) * (isFar ? 0.25 : camera.isDeep ? fogOf(pixels[4 * i + 2]) : 1);
    g.strokeStyle = colourOf(theme, colours[i]);
    let high = now;
    for (let piece = 0; piece < pieces && high > 0; piece++) {
      const low = Math.max(0, Math.round(now - length * ((piece + 1) / pieces) ** 1.2));
      g.globalAlpha = theme.trail * (1 - piece / pieces) ** 1.5 * dim;
      g.lineWidth = base * (1.2 - 0.19 * piece);
      g.beginPath();
      if (piece === 0) g.moveTo(pixels[4 * i], pixels[4 * i + 1]);
      for (let k = high, isFirst = piece > 0; k >= low; k = k > low ? Math.max(low, k - step) : low - 1) {
        const o = (k * n + i) * 3;
        camera.project(frames[o], frames[o + 1], frames[o + 2], at);
        if (isFirst) g.moveTo(at[0], at[1]);
        else g.lineTo(at[0], at[1]);
        isFirst = false;
      }
      g.stroke();
      high = low;
    }
  }
  g.globalAlpha = 1;
}

/**
 * From every token a line to the one that it attends to most.
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {ArrayLike<number>} leaders
 * @param {Float32Array} pixels
 * @param {number} base
 */
export function drawThreads(g, scene, leaders, pixels, base) {
  const { theme, colours, hover } = scene,
    n = leaders.length;
  const crowd = n > 60 ? Math.max(0.35, Math.sqrt(60 / n)) : 1;
  g.lineWidth = 0.9;
  for (let i = 0; i < n; i++) {
    const leader = leaders[i];
    if (leader < 0 || leader === i) continue;
    const fog = scene.kind === 'space' ? fogOf(pixels[4 * i + 2]) : 1;
    g.globalAlpha = base * theme.thread * fog * crowd * (hover >= 0 ? 0.2 : 1);
    g.strokeStyle = colourOf(theme, colours[i]);
    g.beginPath();
    g.moveTo(pixels[4 * i], pixels[4 * i + 1]);
    g.lineTo(pixels[4 * leader], pixels[4 * leader + 1]);
    g.stroke();
  }
  g.globalAlpha = 1;
}

/**
 * The attention row of one token as arcs, as wide as their weight.
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {Float32Array} pixels
 */
export function drawRow(g, { theme, hover, selected, row }, pixels) {
  const from = hover >= 0 ? hover : selected[selected.length - 1];
  if (!row || from === undefined) return;
  g.strokeStyle = theme.accent;
  g.lineCap = 'round';
  for (let j = 0; j < row.length; j++) {
    if (row[j] < 0.004 || j === from || 4 * j >= pixels.length) continue;
    g.globalAlpha = Math.min(1, 0.15 + row[j]);
    g.lineWidth = 0.8 + 2.6 * row[j];
    drawArc(g, pixels[4 * from], pixels[4 * from + 1], pixels[4 * j], pixels[4 * j + 1]);
  }
  g.globalAlpha = 1;
}

/**
 * The starts, as handles to drag.
 * @param {CanvasRenderingContext2D} g
 * @param {Scene} scene
 * @param {import('./camera.js').Camera} camera
 * @param {Area} area
 */
export function drawStarts(g, scene, camera, area) {
  const {
      recording: { x0, n },
      theme,
      colours,
    } = scene,
    at = [0, 0, 0, 0],
    radius = radiusOf(scene, area);
  for (let i = 0; i < n; i++) {
    const [x, y = 0, z = 0] = x0[i];
    camera.project(x, y, z, at);
    g.globalAlpha = scene.kind === 'sphere' && at[2] > 0.1 ? 0.2 : 0.75;
    g.strokeStyle = colourOf(theme, colours[i]);
    g.lineWidth = 1.2;
    drawRing(g, at[0], at[1], radius * 0.85);
  }
  g.globalAlpha = 1;
}
