// Words next to tokens, without overlap: the token under the pointer, the chosen ones and, if tokens have words, a few more.

import { countFollowers, currentLeaders } from './scene.js';
import { SANS } from './theme.js';

const MOST = 24; // words at once: more is noise

/**
 * @param {CanvasRenderingContext2D} g
 * @param {import('./scene.js').Scene} scene
 * @param {Float32Array} pixels   (n, 4)
 * @param {import('./scene.js').Area} area
 */
export function drawLabels(g, scene, pixels, area) {
  const {
    recording: { words },
    hover,
    selected,
    theme,
    kind,
  } = scene;
  const wanted = [...new Set([...(hover >= 0 ? [hover] : []), ...selected, ...(words ? chooseTokens(scene) : [])])];
  const /** @type {number[][]} */ taken = [];
  g.font = `12px ${SANS}`;
  g.textAlign = 'left';
  g.textBaseline = 'middle';
  g.lineJoin = 'round';
  for (const i of wanted) {
    if (taken.length >= MOST || 4 * i >= pixels.length) break;
    const isChosen = i === hover || selected.includes(i),
      text = words ? words[i].trim() || '␣' : String(i);
    if (kind === 'sphere' && pixels[4 * i + 2] > 0.1 && !isChosen) continue;
    const width = g.measureText(text).width,
      x = pixels[4 * i],
      y = pixels[4 * i + 1];
    const places = [
      [x + 10, y],
      [x - 10 - width, y],
      [x - width / 2, y - 16],
      [x - width / 2, y + 16],
    ];
    const place = places.find(([u, v]) => isFree(taken, area, u, v, width)) ?? (isChosen ? places[0] : null);
    if (!place) continue;
    taken.push([place[0], place[1], width]);
    g.globalAlpha = 1;
    g.strokeStyle = theme.panel;
    g.lineWidth = 3.5;
    g.strokeText(text, place[0], place[1]);
    g.fillStyle = isChosen ? theme.ink : theme.note;
    g.fillText(text, place[0], place[1]);
  }
}

/**
 * @param {number[][]} taken   [x, y, width]
 * @param {import('./scene.js').Area} area
 * @param {number} x
 * @param {number} y
 * @param {number} width
 */
function isFree(taken, area, x, y, width) {
  if (x < 4 || x + width > area.width - 4 || y < area.top || y > area.height - area.bottom / 2) return false;
  return taken.every(([u, v, w]) => x > u + w + 4 || x + width + 4 < u || Math.abs(y - v) > 15);
}

/**
 * Tokens in the order in which they get a word: first those with most followers, then some spread over the sentence.
 * @param {import('./scene.js').Scene} scene
 */
function chooseTokens(scene) {
  const followers = countFollowers(currentLeaders(scene));
  return Array.from(followers, (_, i) => i).sort((a, b) => followers[b] - followers[a] || a - b);
}
