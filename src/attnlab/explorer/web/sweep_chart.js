// A sweep: the number of limits against beta, n or an eigenvalue. Full dots are settled; hollow dots are groups at the end.

import { countOf, element, fill, formatNumber, glyph, positionIn, prepareCanvas, toSubscript } from './dom.js';
import { drawLine, traceMark } from './marks.js';
import { SANS } from './theme.js';

const FULL = 2 * Math.PI;
const LEFT = 28,
  RIGHT = 12,
  TOP = 8,
  BOTTOM = 21;

/** @typedef {import('./types.js').SweepPoint} SweepPoint */
/**
 * One dot: runs with the same value, count and certainty.
 * @typedef {{value: number, count: number, settled: boolean, rngs: number[]}} Dot
 */

/**
 * @typedef {object} SweepView
 * @property {string} path
 * @property {string[]} paths             what can be swept here
 * @property {number[]} values
 * @property {SweepPoint[]} points
 * @property {number | null} now          the value of the present run
 * @property {number | null} most         the bound of the theorem
 * @property {boolean} isRunning
 * @property {boolean} isSphere
 * @property {import('./theme.js').Theme} theme
 */

/** @param {string} path */
export function symbolOf(path) {
  if (path === 'dynamics.beta') return 'β';
  if (path === 'start.n') return 'n';
  return `λ${toSubscript(Number(path.split('.').pop()) + 1)}`;
}

/**
 * The values that a sweep goes through.
 * @param {string} path
 */
export function valuesOf(path) {
  if (path === 'dynamics.beta') return Array.from({ length: 17 }, (_, k) => Number((2 ** (k / 2 - 3)).toPrecision(2)));
  if (path === 'start.n') return [4, 6, 8, 10, 14, 18, 22, 26, 30, 36, 42, 48, 56, 64];
  return Array.from({ length: 23 }, (_, k) => Number((k < 15 ? -0.8 + k * 0.1 : 0.65 + (k - 15) * 0.05).toFixed(2)));
}

/** @param {SweepPoint[]} points @returns {Dot[]} */
export function gatherDots(points) {
  const /** @type {Map<string, Dot>} */ dots = new Map();
  for (const { value, count, settled, rng } of points) {
    const key = `${value},${count},${settled}`,
      dot = dots.get(key);
    if (dot) dot.rngs.push(rng);
    else dots.set(key, { value, count, settled, rngs: [rng] });
  }
  return [...dots.values()].sort((a, b) => a.value - b.value || a.count - b.count);
}

/**
 * @param {object} events
 * @param {() => void} events.onRun
 * @param {(path: string) => void} events.onPath
 * @param {(value: number, rng: number) => void} events.onLoad
 * @param {(text: string) => void} events.onSay
 */
export function createSweep({ onRun, onPath, onLoad, onSay }) {
  const canvas = element('canvas', { class: 'phase', role: 'img', tabindex: 0 });
  const title = element('span', { class: 'what' }),
    choice = element('select', { 'aria-label': 'Sweep this quantity' });
  const button = element('button', { class: 'chip go', type: 'button', onclick: onRun });
  choice.addEventListener('change', () => onPath(choice.value));
  const node = element(
    'section',
    { class: 'card sweep', 'aria-label': 'Sweep' },
    element('h2', {}, element('span', { class: 'row' }, title, choice), button),
    canvas,
  );
  let /** @type {SweepView | null} */ shown = null,
    /** @type {Dot[]} */ dots = [],
    chosen = -1;

  /** @param {Dot} dot */
  const say = (dot) =>
    `${symbolOf(shown?.path ?? '')} = ${formatNumber(dot.value, 3)}: ${countOf(dot.rngs.length, 'start')} with `
    + `${dot.count} ${dot.settled ? 'limits, settled' : 'groups, not settled'}. Click or press enter to load one.`;
  /** @param {PointerEvent | MouseEvent} event */
  const dotAt = (event) => {
    if (!shown) return -1;
    const [x, y] = positionIn(event, canvas),
      map = makeMap(shown, canvas.clientWidth, canvas.clientHeight);
    let best = -1,
      least = 14;
    dots.forEach((dot, k) => {
      const distance = Math.hypot(map.xOf(dot.value) - x, map.yOf(dot.count) - y);
      if (distance < least) {
        least = distance;
        best = k;
      }
    });
    return best;
  };
  const redraw = () => {
    if (shown) draw(shown);
  };
  canvas.addEventListener('pointermove', (event) => {
    const k = dotAt(event);
    if (k === chosen) return;
    chosen = k;
    canvas.title = k < 0 ? '' : say(dots[k]);
    canvas.classList.toggle('near', k >= 0);
    redraw();
  });
  canvas.addEventListener('pointerleave', () => {
    chosen = -1;
    redraw();
  });
  canvas.addEventListener('click', (event) => {
    const k = dotAt(event);
    if (k >= 0) onLoad(dots[k].value, dots[k].rngs[0]);
  });
  canvas.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && dots.length) {
      chosen = (chosen + step + dots.length) % dots.length;
      onSay(say(dots[chosen]));
      redraw();
    } else if (event.key === 'Enter' && dots[chosen]) {
      onLoad(dots[chosen].value, dots[chosen].rngs[0]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  /** @param {SweepView} view */
  const draw = (view) => {
    const isNew = view.path !== shown?.path || view.paths.join() !== shown?.paths.join();
    shown = view;
    dots = gatherDots(view.points);
    if (chosen >= dots.length) chosen = -1;
    if (isNew) fill(choice, ...view.paths.map((path) => element('option', { value: path }, symbolOf(path))));
    choice.value = view.path;
    title.textContent = view.isSphere ? 'Groups against' : 'Limits against';
    const word = view.isRunning ? 'Stop' : 'Sweep';
    if (button.textContent !== word) fill(button, view.isRunning ? glyph('pause') : glyph('play'), word);
    canvas.setAttribute(
      'aria-label',
      view.points.length
        ? `Sweep of ${symbolOf(view.path)}: ${view.points.length} runs. Left and right arrows go through the dots.`
        : 'Sweep, not computed yet',
    );
    const { g, width, height } = prepareCanvas(canvas);
    if (width) drawSweep(g, width, height, view, dots, chosen);
  };
  return { node, draw };
}

/**
 * @param {SweepView} view
 * @param {number} width
 * @param {number} height
 */
function makeMap({ values, points, most, path }, width, height) {
  const sure = points.filter((point) => point.settled).map((point) => point.count);
  const highest = Math.max(5, most ? most + 1 : 0, ...sure.map((count) => count + 1)); // hollow dots above it stand at its edge
  const isLog = path === 'dynamics.beta',
    scale = (/** @type {number} */ v) => (isLog ? Math.log(v) : v);
  const low = scale(values[0]),
    high = scale(values[values.length - 1]),
    right = width - RIGHT,
    base = height - BOTTOM;
  return {
    highest,
    right,
    base,
    xOf: (/** @type {number} */ value) => LEFT + ((right - LEFT) * (scale(value) - low)) / (high - low),
    yOf: (/** @type {number} */ count) => base - 5 - ((base - 5 - TOP) * (Math.min(count, highest) - 1)) / (highest - 1),
  };
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {number} width
 * @param {number} height
 * @param {SweepView} view
 * @param {Dot[]} dots
 * @param {number} chosen
 */
function drawSweep(g, width, height, view, dots, chosen) {
  const { theme, path, most, now, values } = view,
    map = makeMap(view, width, height),
    { highest, right, base } = map;
  g.font = `10.5px ${SANS}`;
  g.textBaseline = 'middle';
  g.textAlign = 'right';
  g.lineWidth = 1;
  const room = Math.floor((map.yOf(1) - map.yOf(highest)) / 14),
    step = Math.max(1, Math.ceil((highest - 1) / Math.max(1, room)));
  const counts = Array.from({ length: Math.floor((highest - 1) / step) + 1 }, (_, k) => 1 + k * step);
  for (const count of counts) {
    g.strokeStyle = theme.grid;
    drawLine(g, [LEFT, map.yOf(count)], [right, map.yOf(count)]);
    g.fillStyle = theme.note;
    g.fillText(String(count), LEFT - 8, map.yOf(count));
  }
  g.textAlign = 'center';
  g.textBaseline = 'alphabetic';
  g.fillStyle = theme.note;
  const ticks =
    path === 'dynamics.beta' ? [0.125, 0.5, 2, 8, 32] : path === 'start.n' ? [10, 20, 30, 40, 50, 60] : [-0.5, 0, 0.5, 1];
  for (const tick of ticks) if (tick <= values[values.length - 1]) g.fillText(formatNumber(tick, 3), map.xOf(tick), height - 6);
  if (most) {
    g.strokeStyle = theme.good;
    g.lineWidth = 1.3;
    g.setLineDash([5, 4]);
    drawLine(g, [LEFT, map.yOf(most)], [right, map.yOf(most)]);
    g.setLineDash([]);
  }
  if (now !== null && now >= values[0] && now <= values[values.length - 1]) {
    g.strokeStyle = theme.ink;
    g.globalAlpha = 0.45;
    drawLine(g, [map.xOf(now), TOP - 4], [map.xOf(now), base]);
    g.globalAlpha = 1;
  }
  if (!view.points.length && !view.isRunning) {
    const words = `${values.length} values, 7 starts each: press Sweep`,
      half = g.measureText(words).width / 2 + 6;
    g.fillStyle = theme.panel;
    g.fillRect((LEFT + right) / 2 - half, (TOP + base) / 2 - 9, 2 * half, 18);
    g.fillStyle = theme.note;
    g.fillText(words, (LEFT + right) / 2, (TOP + base) / 2 + 4);
  }
  drawMedian(g, view, map);
  dots.forEach((dot, k) => drawDot(g, theme, map.xOf(dot.value), map.yOf(dot.count), dot, dot.count > highest, k === chosen));
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {import('./theme.js').Theme} theme
 * @param {number} x
 * @param {number} y
 * @param {Dot} dot
 * @param {boolean} isAbove    the picture: an arrow stands for it
 * @param {boolean} isChosen
 */
function drawDot(g, theme, x, y, dot, isAbove, isChosen) {
  const radius = isAbove ? 3.2 : 2 + 0.45 * Math.min(7, dot.rngs.length);
  if (isAbove) traceMark(g, x, y, radius, 2);
  else {
    g.beginPath();
    g.arc(x, y, radius, 0, FULL);
  }
  g.fillStyle = dot.settled ? theme.accent : theme.panel;
  g.strokeStyle = dot.settled ? theme.panel : theme.note;
  g.lineWidth = dot.settled ? 0.8 : 1.2;
  g.fill();
  g.stroke();
  if (!isChosen) return;
  g.beginPath();
  g.arc(x, y, radius + 3.5, 0, FULL);
  g.strokeStyle = theme.ink;
  g.lineWidth = 1.5;
  g.stroke();
}

/**
 * The median over starts: solid where most of them are settled.
 * @param {CanvasRenderingContext2D} g
 * @param {SweepView} view
 * @param {ReturnType<typeof makeMap>} map
 */
function drawMedian(g, { points, theme }, map) {
  const /** @type {Map<number, SweepPoint[]>} */ columns = new Map();
  for (const point of points) columns.set(point.value, [...(columns.get(point.value) ?? []), point]);
  const medians = [...columns]
    .sort(([a], [b]) => a - b)
    .map(([value, runs]) => {
      const counts = runs.map((run) => run.count).sort((a, b) => a - b);
      return {
        x: map.xOf(value),
        y: map.yOf(counts[counts.length >> 1]),
        isSettled: runs.filter((run) => run.settled).length * 2 > runs.length,
      };
    });
  g.strokeStyle = theme.accent;
  g.lineWidth = 1.8;
  for (let k = 1; k < medians.length; k++) {
    const [a, b] = [medians[k - 1], medians[k]],
      isSure = a.isSettled && b.isSettled;
    g.setLineDash(isSure ? [] : [2, 3]);
    g.globalAlpha = isSure ? 0.8 : 0.5;
    drawLine(g, [a.x, a.y], [b.x, b.y]);
  }
  g.setLineDash([]);
  g.globalAlpha = 1;
}
