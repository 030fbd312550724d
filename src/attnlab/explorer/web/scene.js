// The data for a picture of the tokens, and facts that follow from them without drawing.

import { growingOf } from './outcome.js';

/**
 * Everything a picture needs.
 * @typedef {object} Scene
 * @property {import('./camera.js').Kind} kind
 * @property {import('./types.js').Recording} recording
 * @property {Float32Array} frames          (T, n, 3), of the frame that is shown
 * @property {'limit' | 'z' | 'x'} frame
 * @property {import('./camera.js').Box} box
 * @property {[number, number, number]} view     yaw, pitch, zoom
 * @property {number} position              frame number, with a fraction
 * @property {'run' | 'gap' | 'infinity'} moment    gap: after the end of the run, before infinity
 * @property {import('./outcome.js').Outcome} outcome
 * @property {Float32Array | null} places   (n, 3) at infinity, where known
 * @property {Int32Array} colours           group of every token; -1 keeps it secret
 * @property {import('./theme.js').Theme} theme
 * @property {Set<string>} show             trails, threads, hull, limits, shapes, drag
 * @property {number} hover                 a token or -1
 * @property {number[]} selected
 * @property {ArrayLike<number> | null} row attention of the hovered or selected token
 * @property {{trail: number, glow: boolean}} quality    trail: share of the clock
 */

/** @typedef {{width: number, height: number, top: number, bottom: number, left: number, right: number}} Area
 *  Pixels. top and bottom are kept free for text; left and right are where the clock begins and ends. */

/**
 * What was drawn where: pixels is (n, 4) x, y, depth, scale; yOf is the height of a coordinate in a picture of world-lines.
 * @typedef {{pixels: Float32Array, camera: import('./camera.js').Camera | null, yOf?: (value: number) => number}} Drawn
 */

/** A hull is shown where every direction grows: then z stays inside of its first hull. @param {Scene} scene */
export function canHaveHull({ recording, frame }) {
  return recording.geometry !== 'sphere' && recording.d > 1 && frame !== 'x' && growingOf(recording).every(Boolean);
}

/** @param {Scene} scene @param {Area} area */
export function radiusOf({ recording: { n } }, area) {
  const size = n > 300 ? 2.6 : n > 120 ? 3.6 : n > 60 ? 4.6 : 5.4;
  return size * Math.min(1.2, Math.max(0.8, Math.min(area.width, area.height) / 560));
}

/**
 * The present places of the tokens, between two frames.
 * @param {Scene} scene
 * @returns {number[][]}
 */
export function findPoints({ recording: { n, T }, frames, position, places }) {
  const below = Math.min(Math.floor(position), T - 1),
    above = Math.min(below + 1, T - 1),
    part = position - below;
  return Array.from({ length: n }, (_, i) => {
    if (places) return [places[3 * i], places[3 * i + 1], places[3 * i + 2]];
    const a = (below * n + i) * 3,
      b = (above * n + i) * 3;
    return [0, 1, 2].map((c) => frames[a + c] + part * (frames[b + c] - frames[a + c]));
  });
}

/**
 * The token to which each token attends most now; -1 if there is none.
 * @param {Scene} scene
 * @returns {ArrayLike<number>}
 */
export function currentLeaders({ recording, frames, position, places, outcome }) {
  const { n, T, leaders, geometry } = recording;
  if (places) return outcome.leaders.length ? outcome.leaders : new Int16Array(n).fill(-1);
  const k = Math.min(Math.round(position), T - 1);
  const now = leaders.subarray(k * n, (k + 1) * n);
  if (geometry !== 'sphere') return now;
  return now.map((leader, i) => {
    // on the sphere the best match of a token is itself, up to the rounding errors inside of a cluster
    const [a, b] = [(k * n + i) * 3, (k * n + leader) * 3];
    return leader < 0 || Math.hypot(...[0, 1, 2].map((c) => frames[a + c] - frames[b + c])) < 1e-3 ? -1 : leader;
  });
}

/**
 * The share of its attention that each token gives to its leader now; null if it is not recorded.
 * @param {Scene} scene
 * @returns {ArrayLike<number> | null}
 */
export function currentShares({ recording, position, places }) {
  const { n, T, shares } = recording,
    k = Math.min(Math.round(position), T - 1);
  return places || !shares ? null : shares.subarray(k * n, (k + 1) * n);
}

/**
 * How many other tokens attend most to each token.
 * @param {ArrayLike<number>} leaders
 * @returns {Uint16Array}
 */
export function countFollowers(leaders) {
  const followers = new Uint16Array(leaders.length);
  for (let i = 0; i < leaders.length; i++) if (leaders[i] >= 0 && leaders[i] !== i) followers[leaders[i]]++;
  return followers;
}

/** How strongly a token is drawn while the reader looks at another one. @param {Scene} scene @param {number} i */
export function emphasis({ hover, selected, row }, i) {
  const looked = hover >= 0 ? hover : selected.length ? selected[selected.length - 1] : -1;
  if (looked < 0 || looked === i || selected.includes(i)) return 1;
  return row && row[i] > 0.05 ? 0.9 : 0.4;
}

/**
 * The token under a pixel, or -1. In space, of tokens about equally near to the pixel, the one nearest to the eye is chosen.
 * @param {Float32Array} pixels
 * @param {number} x
 * @param {number} y
 * @param {number} [reach]
 */
export function pickToken(pixels, x, y, reach = 16) {
  let best = -1,
    least = Infinity;
  for (let i = 0; i < pixels.length / 4; i++) {
    const distance = Math.hypot(pixels[4 * i] - x, pixels[4 * i + 1] - y);
    const cost = distance + 2 * pixels[4 * i + 2];
    if (distance < reach && cost < least) {
      least = cost;
      best = i;
    }
  }
  return best;
}

/** @param {number} depth   -1.7 (near) to 1.7 (far) */
export const fogOf = (depth) => Math.min(1, Math.max(0.34, 0.84 - 0.4 * depth));
