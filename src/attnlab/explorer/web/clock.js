// The clock: both scrubber and chart. Its right end is t = infinity, with u = t / (t + tau).

import { element, formatNumber, positionIn, prepareCanvas } from './dom.js';
import { drawDiamond, drawLine, hatch } from './marks.js';
import { SANS, SERIF } from './theme.js';

const FULL = 2 * Math.PI;
const LEFT = 14,
  RIGHT = 26,
  TOP = 12,
  BOTTOM = 25; // pixels around the chart
const REACH = 11; // pixels before the right end that mean infinity

/**
 * @typedef {object} ClockView
 * @property {import('./types.js').Recording} recording
 * @property {import('./outcome.js').Outcome} outcome
 * @property {number} t                     may be Infinity
 * @property {import('./theme.js').Theme} theme
 * @property {boolean} isSecret             guess mode: the curves would give the answer away
 * @property {string} spoken                what a screen reader says
 */

/** The share of the clock; of a stack it is even up to `until`. @param {number} t @param {number} tau @param {number} [until] */
export function shareOf(t, tau, until) {
  if (until !== undefined) return Math.min(1, t / until);
  return t === Infinity ? 1 : t / (t + tau);
}

/** @param {number} share @param {number} tau @param {number} [until] */
export function timeOf(share, tau, until) {
  if (until !== undefined) return until * Math.min(1, Math.max(0, share));
  return share >= 1 ? Infinity : (tau * Math.max(0, share)) / (1 - Math.max(0, share));
}

/**
 * The left and right end of the chart inside a canvas of that width.
 * @param {number} width
 */
export function clockSpan(width) {
  return { left: LEFT, right: width - RIGHT };
}

/**
 * @param {{onSeek: (t: number, isDone: boolean) => void}} events   t may be Infinity
 */
export function createClock({ onSeek }) {
  const canvas = element('canvas', {
    class: 'clock',
    role: 'slider',
    tabindex: 0,
    'aria-label': 'Time',
    'aria-valuemin': 0,
    'aria-valuemax': 1,
  });
  let tau = 1,
    /** @type {number | undefined} */ until,
    isHeld = false;
  /** @param {PointerEvent} event @param {boolean} isDone */
  const seek = (event, isDone) => {
    const [x] = positionIn(event, canvas),
      { left, right } = clockSpan(canvas.clientWidth);
    const isEnd = until === undefined && x > right - REACH;
    onSeek(isEnd ? Infinity : timeOf((x - left) / (right - left), tau, until), isDone);
  };
  canvas.addEventListener('pointerdown', (event) => {
    isHeld = true;
    canvas.setPointerCapture(event.pointerId);
    seek(event, false);
  });
  canvas.addEventListener('pointermove', (event) => isHeld && seek(event, false));
  const letGo = (/** @type {PointerEvent} */ event) => {
    if (isHeld) seek(event, true);
    isHeld = false;
  };
  canvas.addEventListener('pointerup', letGo);
  canvas.addEventListener('pointercancel', () => (isHeld = false));
  return {
    node: canvas,
    /** @param {ClockView} view */
    draw(view) {
      ({ tau, until } = view.recording);
      canvas.setAttribute('aria-valuenow', shareOf(view.t, tau, until).toFixed(3));
      canvas.setAttribute('aria-valuetext', view.spoken);
      const { g, width, height } = prepareCanvas(canvas);
      if (width) drawClock(g, width, height, view);
    },
  };
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {number} width
 * @param {number} height
 * @param {ClockView} view
 */
export function drawClock(g, width, height, view) {
  const { recording, theme, isSecret } = view,
    { left, right } = clockSpan(width),
    base = height - BOTTOM;
  /** @param {number} t */
  const xOf = (t) => left + (right - left) * shareOf(t, recording.tau, recording.until);
  /** @param {number} count */
  const yOf = (count) => base - ((base - TOP) * Math.log(Math.max(count, 1))) / Math.log(Math.max(recording.n, 2));
  const end = recording.times[recording.T - 1],
    known = Math.min(end, recording.trusted);
  hatch(g, xOf(known), TOP, right - xOf(known), base - TOP, theme.rule);
  drawTicks(g, view, xOf, base, right, height);
  if (!isSecret) {
    drawStaircase(g, view, xOf, yOf, base);
    drawListened(g, view, xOf, yOf);
  }
  if (recording.geometry !== 'sphere') drawChanges(g, view, xOf, base);
  g.strokeStyle = theme.rule;
  g.lineWidth = 1;
  drawLine(g, [left, base], [right, base]);
  if (!isSecret) drawEnd(g, view, xOf, yOf, base, right);
  drawHead(g, theme, xOf(view.t), base);
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {ClockView} view
 * @param {(t: number) => number} xOf
 * @param {number} base
 * @param {number} right
 * @param {number} height
 */
function drawTicks(g, { recording, theme }, xOf, base, right, height) {
  const end = recording.times[recording.T - 1],
    unit = recording.layers?.dt ?? 1; // of layers the clock shows their numbers
  g.font = `11px ${SANS}`;
  g.textAlign = 'center';
  g.textBaseline = 'alphabetic';
  let before = -Infinity;
  const isStack = recording.until !== undefined,
    ticks = isStack ? Array.from({ length: Math.floor(end) + 1 }, (_, k) => k) : ticksUntil(end / unit);
  for (const tick of ticks) {
    const x = xOf(tick * unit),
      text = formatNumber(tick, 3);
    if (x - before < 16 + 7 * text.length || (!isStack && x > Math.min(right - 22, xOf(end) + 1))) continue;
    before = x;
    g.strokeStyle = theme.rule;
    g.lineWidth = 1;
    drawLine(g, [x, base], [x, base + 4]);
    g.fillStyle = theme.note;
    g.fillText(text, x, height - 7);
  }
  if (isStack) return;
  g.fillStyle = theme.ink;
  g.font = `17px ${SERIF}`;
  g.fillText('∞', right, height - 6);
}

/** 0, then 1, 2, 5 times powers of ten. @param {number} end */
function ticksUntil(end) {
  const ticks = [0];
  for (let power = -2; power < 5; power++) for (const digit of [1, 2, 5]) ticks.push(digit * 10 ** power);
  return ticks.filter((t) => t <= end * 1.0001 && (t === 0 || t >= end / 80));
}

/**
 * The series of a recording as [t, value]; not yet known numbers are left out.
 * @param {import('./types.js').Recording} recording
 * @param {Float32Array} values
 */
function seriesOf({ every, times, T }, values) {
  const /** @type {[number, number][]} */ series = [];
  for (let k = 0; k < values.length; k++) {
    const frame = Math.min(k * every, T - 1);
    if (values[k] > 0 && k * every < T + every) series.push([times[frame], values[k]]);
  }
  return series;
}

/**
 * The number of groups: a staircase.
 * @param {CanvasRenderingContext2D} g
 * @param {ClockView} view
 * @param {(t: number) => number} xOf
 * @param {(count: number) => number} yOf
 * @param {number} base
 */
function drawStaircase(g, { recording, theme }, xOf, yOf, base) {
  const series = seriesOf(recording, recording.groups);
  if (!series.length) return;
  const /** @type {number[][]} */ corners = [];
  series.forEach(([t, count], k) => {
    if (k) corners.push([xOf(t), yOf(series[k - 1][1])]);
    corners.push([xOf(t), yOf(count)]);
  });
  const last = corners[corners.length - 1];
  corners.push([xOf(recording.times[recording.T - 1]), last[1]]);
  g.beginPath();
  corners.forEach(([x, y], k) => (k ? g.lineTo(x, y) : g.moveTo(x, y)));
  g.strokeStyle = theme.accent;
  g.lineWidth = 2;
  g.lineJoin = 'round';
  g.stroke();
  g.lineTo(corners[corners.length - 1][0], base);
  g.lineTo(corners[0][0], base);
  g.closePath();
  g.fillStyle = theme.accent;
  g.globalAlpha = 0.1;
  g.fill();
  g.globalAlpha = 1;
}

/**
 * The number of tokens that a row attends to.
 * @param {CanvasRenderingContext2D} g
 * @param {ClockView} view
 * @param {(t: number) => number} xOf
 * @param {(count: number) => number} yOf
 */
function drawListened(g, { recording, theme }, xOf, yOf) {
  g.beginPath();
  seriesOf(recording, recording.listened).forEach(([t, count], k) =>
    k ? g.lineTo(xOf(t), yOf(count)) : g.moveTo(xOf(t), yOf(count)),
  );
  g.strokeStyle = theme.warm;
  g.lineWidth = 1.5;
  g.setLineDash([5, 3]);
  g.stroke();
  g.setLineDash([]);
}

/**
 * A tick for each change of a leader.
 * @param {CanvasRenderingContext2D} g
 * @param {ClockView} view
 * @param {(t: number) => number} xOf
 * @param {number} base
 */
function drawChanges(g, { recording, theme }, xOf, base) {
  g.strokeStyle = theme.ink;
  g.lineWidth = 1;
  g.globalAlpha = 0.45;
  let before = -Infinity;
  for (const t of recording.changes) {
    const x = xOf(t);
    if (x - before < 1.5) continue;
    before = x;
    drawLine(g, [x, base], [x, base - 5]);
  }
  g.globalAlpha = 1;
}

/**
 * What is known about infinity: a diamond at the number of limits, and a tick at the last change of a leader.
 * @param {CanvasRenderingContext2D} g
 * @param {ClockView} view
 * @param {(t: number) => number} xOf
 * @param {(count: number) => number} yOf
 * @param {number} base
 * @param {number} right
 */
function drawEnd(g, { recording, outcome, theme }, xOf, yOf, base, right) {
  if (recording.complete && recording.status !== 'OK') {
    const x = xOf(recording.times[recording.T - 1]);
    g.strokeStyle = theme.bad;
    g.lineWidth = 2;
    drawLine(g, [x, TOP], [x, base]);
  }
  if (outcome.kind === 'open') return;
  const isCertified = outcome.kind === 'certified',
    y = yOf(outcome.count),
    last = outcome.limit?.lastEvent;
  g.strokeStyle = isCertified ? theme.good : theme.note;
  g.fillStyle = theme.good;
  g.lineWidth = 1.5;
  drawDiamond(g, right, y, 6, isCertified);
  if (isCertified) g.fill();
  if (!last) return;
  g.strokeStyle = theme.good;
  g.lineWidth = 2;
  drawLine(g, [xOf(last), base], [xOf(last), base - 11]);
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {import('./theme.js').Theme} theme
 * @param {number} x
 * @param {number} base
 */
function drawHead(g, theme, x, base) {
  g.strokeStyle = theme.ink;
  g.lineWidth = 1.5;
  drawLine(g, [x, TOP - 7], [x, base]);
  for (const [colour, radius] of /** @type {[string, number][]} */ ([
    [theme.ink, 7.5],
    [theme.panel, 3],
  ])) {
    g.fillStyle = colour;
    g.beginPath();
    g.arc(x, base, radius, 0, FULL);
    g.fill();
  }
}
