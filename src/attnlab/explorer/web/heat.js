// The attention matrix: rows and columns in the order of the final groups, with the groups' colours at its edges.

import { element, positionIn, prepareCanvas } from './dom.js';
import { hatch } from './marks.js';
import { SANS, attentionStops, colourOf, mixStops } from './theme.js';

const EDGE = 5,
  GAP = 3,
  BAR = 26; // pixels: strip of colours, its distance, room for the scale
const MOST_TOKENS = 250; // above this, blocks of groups
const UNKNOWN_BLOCKS = 60;

/**
 * @typedef {object} HeatView
 * @property {Float32Array | null} P        (n, n)
 * @property {number} n
 * @property {number[]} order               tokens as rows and columns
 * @property {Int32Array} colours
 * @property {import('./theme.js').Theme} theme
 * @property {number} hover
 * @property {string} spoken
 */

/** @typedef {{size: number, values: Float32Array, starts: number[]}} Cells   starts: (size + 1) rows where a cell begins */

/**
 * The cells of the picture: one per token. For many tokens, one per group: the mean attention of its rows to a group of columns.
 * @param {HeatView} view
 * @returns {Cells}
 */
export function makeCells({ P, n, order, colours }) {
  if (n <= MOST_TOKENS) {
    const values = new Float32Array(n * n);
    if (P) for (let a = 0; a < n; a++) for (let b = 0; b < n; b++) values[a * n + b] = P[order[a] * n + order[b]];
    return { size: n, values, starts: Array.from({ length: n + 1 }, (_, k) => k) };
  }
  const most = Math.ceil(n / UNKNOWN_BLOCKS); // tokens of a block while groups are unknown
  const starts = order.flatMap((token, k) =>
    k === 0 || colours[token] !== colours[order[k - 1]] || (colours[token] < 0 && k % most === 0) ? [k] : [],
  );
  const size = starts.length,
    values = new Float32Array(size * size),
    group = new Int32Array(n);
  starts.push(n);
  for (let k = 0, cell = 0; k < n; k++) {
    if (k === starts[cell + 1]) cell++;
    group[order[k]] = cell;
  }
  if (P) for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) values[group[i] * size + group[j]] += P[i * n + j];
  for (let a = 0; a < size; a++) for (let b = 0; b < size; b++) values[a * size + b] /= starts[a + 1] - starts[a];
  return { size, values, starts };
}

/**
 * @param {{onHover: (token: number) => void, onSelect: (token: number) => void}} events   -1: none
 */
export function createHeat({ onHover, onSelect }) {
  const canvas = element('canvas', { class: 'heat', role: 'img', 'aria-label': 'Attention matrix' });
  const small = document.createElement('canvas');
  let /** @type {HeatView | null} */ shown = null;
  /** @param {PointerEvent} event */
  const tokenAt = (event) => {
    if (!shown) return -1;
    const [, y] = positionIn(event, canvas),
      side = sideOf(canvas.clientWidth, canvas.clientHeight),
      row = Math.floor((y / side) * shown.n);
    return row >= 0 && row < shown.n ? shown.order[row] : -1;
  };
  canvas.addEventListener('pointermove', (event) => onHover(tokenAt(event)));
  canvas.addEventListener('pointerleave', () => onHover(-1));
  canvas.addEventListener('pointerdown', (event) => onSelect(tokenAt(event)));
  return {
    node: canvas,
    /** @param {HeatView} view */
    draw(view) {
      shown = view;
      canvas.setAttribute('aria-label', view.spoken);
      const { g, width, height } = prepareCanvas(canvas);
      if (width) drawHeat(g, width, height, view, small);
    },
  };
}

/** @param {number} width @param {number} height */
function sideOf(width, height) {
  return Math.max(10, Math.min(width - EDGE - GAP - BAR, height - EDGE - GAP));
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {number} width
 * @param {number} height
 * @param {HeatView} view
 * @param {HTMLCanvasElement} small     where the cells are painted, one pixel each
 */
function drawHeat(g, width, height, view, small) {
  const { n, order, colours, theme, hover } = view,
    { size, values, starts } = makeCells(view),
    stops = attentionStops(theme);
  const side = sideOf(width, height),
    left = EDGE + GAP;
  if (view.P) {
    paint(small, size, values, stops);
    g.imageSmoothingEnabled = size > side; // fewer pixels than cells: mean, do not drop
    if (size === n) {
      g.drawImage(small, left, 0, side, side);
    } else {
      for (let a = 0; a < size; a++) {
        for (let b = 0; b < size; b++) {
          const [x, y, u, v] = [starts[b], starts[a], starts[b + 1], starts[a + 1]].map((k) => (k / n) * side);
          g.drawImage(small, b, a, 1, 1, left + x, y, u - x, v - y);
        }
      }
    }
  } else hatch(g, left, 0, side, side, theme.grid, 7);
  g.strokeStyle = theme.rule;
  g.lineWidth = 1;
  g.strokeRect(left - 0.5, 0.5, side + 1, side - 1);
  for (let k = 0; k < n; k++) {
    const from = (side * k) / n,
      length = side / n + 0.5;
    g.fillStyle = colourOf(theme, colours[order[k]]);
    g.fillRect(0, from, EDGE, length);
    g.fillRect(left + from, side + GAP, length, EDGE);
  }
  drawScale(g, theme, left + side + 7, side, stops);
  if (hover >= 0) {
    const row = order.indexOf(hover),
      height = Math.max(2, side / n);
    g.strokeStyle = theme.accent;
    g.lineWidth = 1.5;
    g.strokeRect(left - 0.5, (side * (row + 0.5)) / n - height / 2 - 0.5, side + 1, height + 1);
  }
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {number} size
 * @param {Float32Array} values
 * @param {number[][]} stops
 */
function paint(canvas, size, values, stops) {
  canvas.width = canvas.height = size;
  const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')),
    image = g.createImageData(size, size);
  for (let k = 0; k < size * size; k++) {
    const [red, green, blue] = mixStops(stops, Math.sqrt(values[k])); // the root shows small weights
    image.data.set([red, green, blue, 255], 4 * k);
  }
  g.putImageData(image, 0, 0);
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {import('./theme.js').Theme} theme
 * @param {number} x
 * @param {number} side
 * @param {number[][]} stops
 */
function drawScale(g, theme, x, side, stops) {
  const steps = 48;
  for (let k = 0; k < steps; k++) {
    g.fillStyle = `rgb(${mixStops(stops, Math.sqrt(1 - k / (steps - 1)))
      .map(Math.round)
      .join()})`;
    g.fillRect(x, (side * k) / steps, 6, side / steps + 0.6);
  }
  g.strokeStyle = theme.rule;
  g.lineWidth = 1;
  g.strokeRect(x - 0.5, 0.5, 7, side - 1);
  g.fillStyle = theme.note;
  g.font = `10px ${SANS}`;
  g.textAlign = 'left';
  g.textBaseline = 'alphabetic';
  g.fillText('1', x + 10, 9);
  g.fillText('0', x + 10, side);
}
