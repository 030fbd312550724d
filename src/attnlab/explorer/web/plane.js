// The spectrum of V in the complex plane, with eigenvalues to drag: by mouse, finger or arrow keys.

import { element, formatNumber, positionIn, prepareCanvas } from './dom.js';
import { GRID, clampIndex, gatherEigenvalues, imaginaryPart, moveEigenvalue, realPart } from './eigenvalues.js';
import { drawLine } from './marks.js';
import { SANS } from './theme.js';

const FULL = 2 * Math.PI;

/** @typedef {import('./eigenvalues.js').Eigenvalue} Eigenvalue */

/**
 * @typedef {object} PlaneView
 * @property {Eigenvalue[]} values
 * @property {string} lock               why they cannot be dragged; empty: they can
 * @property {boolean} isSphere          nothing grows or decays there
 * @property {import('./theme.js').Theme} theme
 */

/**
 * @param {{onMove: (values: Eigenvalue[], isDone: boolean) => void, onHold: (isHeld: boolean) => void}} events
 */
export function createPlane({ onMove, onHold }) {
  const canvas = element('canvas', { class: 'spectrum', 'aria-hidden': 'true' });
  const node = element('div', { class: 'plane', role: 'group', 'aria-label': 'Eigenvalues of V' }, canvas);
  const /** @type {HTMLElement[]} */ handles = [];
  let /** @type {PlaneView | null} */ shown = null,
    map = makeMap(1, 1, []);
  let /** @type {{index: number, values: Eigenvalue[], origin: DOMRect} | null} */ held = null;

  node.addEventListener('pointerdown', (event) => {
    if (!shown || shown.lock) return;
    const index = nearest(shown.values, map, positionIn(event, canvas));
    if (index < 0) return;
    held = { index, values: shown.values, origin: canvas.getBoundingClientRect() };
    node.setPointerCapture(event.pointerId);
    onHold(true);
    event.preventDefault();
    handleOf(index)?.focus({ preventScroll: true });
  });
  node.addEventListener('pointermove', (event) => {
    if (!held) {
      if (shown) node.classList.toggle('near', !shown.lock && nearest(shown.values, map, positionIn(event, canvas)) >= 0);
      return;
    }
    const { left, top } = held.origin,
      [re, im] = map.valueAt([event.clientX - left, event.clientY - top]);
    onMove(moveEigenvalue(held.values, held.index, re, im), false);
  });
  const letGo = () => {
    if (!held || !shown) return;
    held = null;
    onHold(false);
    onMove(shown.values, true);
  };
  node.addEventListener('pointerup', letGo);
  node.addEventListener('pointercancel', letGo);

  /** @param {number} index   of an eigenvalue @returns {HTMLElement | undefined} */
  const handleOf = (index) => handles.find((handle) => Number(handle.dataset.index) === index);

  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const steps = /** @type {{[key: string]: [number, number]}} */ ({
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    })[event.key];
    if (!steps || !shown || shown.lock || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const index = Number(/** @type {HTMLElement} */ (event.currentTarget).dataset.index),
      value = shown.values[index];
    const factor = GRID * (event.shiftKey ? 4 : 1),
      im = imaginaryPart(value) + steps[1] * factor;
    const values = moveEigenvalue(
      shown.values,
      index,
      realPart(value) + steps[0] * factor,
      steps[1] > 0 ? Math.max(im, 0.15) : im,
    );
    shown = { ...shown, values }; // the next key may come before the next picture
    placeHandles(shown);
    onMove(values, true);
    const place = clampIndex(values, index);
    (handleOf(place) ?? handles[0])?.focus({ preventScroll: true });
  };

  /** Put one handle on every place where eigenvalues are. @param {PlaneView} view */
  const placeHandles = (view) => {
    const places = gatherEigenvalues(view.values),
      total = view.values.length;
    while (handles.length > places.length) handles.pop()?.remove();
    while (handles.length < places.length) {
      const handle = element('div', { class: 'handle', role: 'slider', tabindex: 0, onkeydown: onKey });
      handles.push(handle);
      node.append(handle);
    }
    places.forEach((place, k) => {
      const [x, y] = map.pixelOf(place.re, place.im),
        handle = handles[k];
      Object.assign(handle.style, { left: `${x}px`, top: `${y}px` });
      handle.dataset.index = String(place.index);
      handle.setAttribute('aria-label', `Eigenvalue ${place.index + 1} of ${total}`);
      handle.setAttribute('aria-valuenow', String(place.re));
      handle.setAttribute('aria-valuemin', '-1.6');
      handle.setAttribute('aria-valuemax', '1.6');
      handle.setAttribute('aria-valuetext', describe(place, view));
      if (view.lock) handle.setAttribute('aria-disabled', 'true');
      else handle.removeAttribute('aria-disabled');
    });
  };

  return {
    node,
    /** @param {PlaneView} view */
    draw(view) {
      shown = view;
      const { g, width, height } = prepareCanvas(canvas);
      if (!width) return;
      map = makeMap(width, height, view.values);
      drawPlane(g, width, height, view, map);
      placeHandles(view);
      node.classList.toggle('locked', Boolean(view.lock));
    },
  };
}

/**
 * @param {{re: number, im: number, count: number}} place
 * @param {PlaneView} view
 */
function describe({ re, im, count }, { isSphere }) {
  const value = im ? `${formatNumber(re)} ± ${formatNumber(im)} i` : formatNumber(re);
  const often = count === 1 ? '' : count === 2 ? ', twice' : `, ${count} times`;
  return `${value}${often}${isSphere ? '' : re > 0 ? ', grows' : re < 0 ? ', decays' : ', neither grows nor decays'}`;
}

/**
 * @param {number} width
 * @param {number} height
 * @param {Eigenvalue[]} values
 */
function makeMap(width, height, values) {
  const most = Math.max(1.5, ...values.map((value) => Math.hypot(realPart(value), imaginaryPart(value))));
  const scale = Math.min(width, height) / 2 / (most * 1.17),
    x0 = width / 2,
    y0 = height / 2;
  return {
    scale,
    x0,
    y0,
    pixelOf: (/** @type {number} */ re, /** @type {number} */ im) => [x0 + scale * re, y0 - scale * im],
    valueAt: (/** @type {[number, number]} */ [x, y]) => [(x - x0) / scale, (y0 - y) / scale],
  };
}

/**
 * The eigenvalue under a pixel: the last of equal ones; -1 if there is none near enough for a finger.
 * @param {Eigenvalue[]} values
 * @param {ReturnType<typeof makeMap>} map
 * @param {[number, number]} pixel
 */
function nearest(values, map, [x, y]) {
  let best = -1,
    least = 22;
  values.forEach((value, k) => {
    for (const sign of [1, -1]) {
      const [u, v] = map.pixelOf(realPart(value), sign * imaginaryPart(value)),
        distance = Math.hypot(u - x, v - y);
      if (distance <= least) {
        least = distance;
        best = k;
      }
    }
  });
  return best;
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {number} width
 * @param {number} height
 * @param {PlaneView} view
 * @param {ReturnType<typeof makeMap>} map
 */
function drawPlane(g, width, height, view, map) {
  const { theme, values, isSphere } = view,
    { x0, y0, scale } = map;
  if (!isSphere) {
    g.fillStyle = theme.grow;
    g.fillRect(x0, 0, width - x0, height);
  }
  g.strokeStyle = theme.grid;
  g.lineWidth = 1;
  drawLine(g, [0, y0], [width, y0]);
  drawLine(g, [x0, 0], [x0, height]);
  const lead = Math.max(0, ...values.map((value) => Math.hypot(realPart(value), imaginaryPart(value))));
  g.setLineDash([3, 4]);
  g.strokeStyle = theme.note;
  g.globalAlpha = 0.55;
  g.beginPath();
  g.arc(x0, y0, scale * lead, 0, FULL);
  g.stroke();
  g.setLineDash([]);
  g.globalAlpha = 1;
  g.fillStyle = theme.note;
  g.font = `10.5px ${SANS}`;
  g.textBaseline = 'alphabetic';
  if (!isSphere) {
    g.textAlign = 'left';
    g.fillText('decays', 7, height - 7);
    g.textAlign = 'right';
    g.fillText('grows', width - 7, height - 7);
  }
  g.textAlign = 'center';
  g.strokeStyle = theme.note;
  for (const unit of [-1, 1]) {
    const [x, y] = map.pixelOf(unit, 0);
    drawLine(g, [x, y - 3], [x, y + 3]);
    if (!values.some((value) => !imaginaryPart(value) && Math.abs(realPart(value) - unit) < 0.3))
      g.fillText(formatNumber(unit), x, y + 15);
  }
  drawValues(g, width, view, map, lead);
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {number} width
 * @param {PlaneView} view
 * @param {ReturnType<typeof makeMap>} map
 * @param {number} lead
 */
function drawValues(g, width, { values, theme }, map, lead) {
  const places = gatherEigenvalues(values);
  let before = -Infinity,
    isBelow = false;
  g.textBaseline = 'middle';
  for (const { re, im, count } of places) {
    const isLeading = Math.abs(Math.hypot(re, im) - lead) < 1e-9;
    for (const sign of im ? [1, -1] : [1]) {
      const [x, y] = map.pixelOf(re, sign * im);
      g.fillStyle = isLeading ? theme.accent : theme.note;
      g.strokeStyle = theme.panel;
      g.lineWidth = 2;
      g.beginPath();
      g.arc(x, y, count > 1 ? 10 : 7, 0, FULL);
      g.fill();
      g.stroke();
      if (count > 1) {
        g.fillStyle = theme.panel;
        g.font = `700 11px ${SANS}`;
        g.fillText(`×${count}`, x, y + 0.5);
      }
    }
    const [x, y] = map.pixelOf(re, im),
      text = im ? `${formatNumber(re)} ± ${formatNumber(im)}i` : formatNumber(re);
    g.font = `600 11.5px ${SANS}`;
    isBelow = !im && x - before < 34 ? !isBelow : false;
    if (!im) before = x;
    const half = g.measureText(text).width / 2 + 4;
    g.fillStyle = theme.ink;
    g.fillText(text, Math.min(width - half, Math.max(half, x)), y < 30 ? y + 20 : y + (isBelow ? 20 : -20));
  }
}
