// Pointers on the stage: hover, choose, turn, pinch, wheel, and drag the start of a token.

import { kindOf, ontoSphere, turn, zoomBy } from './camera.js';
import { positionIn } from './dom.js';
import { pickToken } from './scene.js';
import { makeLineMap } from './worldlines.js';

const GRAB = 16; // pixels within which a start is taken
const SNAP = 3; // pixels within which a start falls back to its home
const CLICK = 4; // pixels that a click may move

/**
 * What is on the screen.
 * @typedef {object} Seen
 * @property {import('./scene.js').Scene} scene
 * @property {import('./scene.js').Area} area
 * @property {import('./scene.js').Drawn} drawn
 */

/**
 * @typedef {object} Hands
 * @property {() => Seen | null} look
 * @property {() => number[][]} homes          starts before anything was moved
 * @property {() => boolean} canDrag
 * @property {(token: number, x: number, y: number) => void} onHover
 * @property {(token: number) => void} onSelect
 * @property {(view: [number, number, number], isDone: boolean) => void} onView
 * @property {(token: number, place: number[] | null, isDone: boolean) => void} onMove    null: back to its home
 */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Hands} hands
 */
export function watchPointer(canvas, hands) {
  const /** @type {Map<number, [number, number]>} */ fingers = new Map();
  let /** @type {{token: number, from: number[], x: number, y: number} | null} */ held = null;
  let /** @type {{x: number, y: number} | null} */ pressed = null,
    hasMoved = false,
    spread = 0;

  canvas.addEventListener('pointerdown', (event) => {
    const seen = hands.look(),
      [x, y] = positionIn(event, canvas);
    if (!seen || event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [x, y]);
    pressed = { x, y };
    hasMoved = false;
    if (fingers.size === 2) {
      held = null;
      spread = spreadOf(fingers);
      return;
    }
    const token = hands.canDrag() ? startAt(seen, x, y) : -1;
    held = token < 0 ? null : { token, from: seen.scene.recording.x0[token].slice(), x, y };
    canvas.classList.toggle('grabbing', true);
  });

  canvas.addEventListener('pointermove', (event) => {
    const seen = hands.look(),
      [x, y] = positionIn(event, canvas),
      before = fingers.get(event.pointerId);
    if (!seen) return;
    if (!before) {
      const start = hands.canDrag() ? startAt(seen, x, y) : -1;
      canvas.classList.toggle('near', start >= 0);
      if (event.pointerType !== 'touch') hands.onHover(start >= 0 ? start : pickToken(seen.drawn.pixels, x, y), x, y);
      return;
    }
    fingers.set(event.pointerId, [x, y]);
    if (pressed && Math.hypot(x - pressed.x, y - pressed.y) > CLICK) hasMoved = true;
    if (fingers.size === 2) {
      const now = spreadOf(fingers);
      if (spread > 0) hands.onView(zoomBy(seen.scene.view, now / spread), false);
      spread = now;
    } else if (held) {
      hands.onMove(held.token, placeOf(seen, held, x, y, hands.homes()[held.token]), false);
      hands.onHover(held.token, x, y);
    } else if (hasMoved) {
      hands.onHover(-1, x, y);
      const scale = seen.drawn.camera?.scale ?? 1;
      hands.onView(turn(seen.scene.view, seen.scene.kind, x - before[0], y - before[1], scale), false);
    }
  });

  const letGo = (/** @type {PointerEvent} */ event) => {
    const seen = hands.look(),
      [x, y] = positionIn(event, canvas);
    if (!fingers.delete(event.pointerId) || !seen) return;
    canvas.classList.toggle('grabbing', false);
    if (held) hands.onMove(held.token, hasMoved ? placeOf(seen, held, x, y, hands.homes()[held.token]) : held.from, true);
    else if (!hasMoved && fingers.size === 0)
      hands.onSelect(pickToken(seen.drawn.pixels, x, y, event.pointerType === 'touch' ? 26 : 16));
    else hands.onView(seen.scene.view, true);
    held = null;
  };
  canvas.addEventListener('pointerup', letGo);
  canvas.addEventListener('pointercancel', letGo);
  canvas.addEventListener('pointerleave', () => {
    if (!fingers.size) hands.onHover(-1, 0, 0);
  });
  canvas.addEventListener(
    'wheel',
    (event) => {
      const seen = hands.look(),
        root = /** @type {Document | ShadowRoot} */ (canvas.getRootNode());
      if (!seen || (!event.ctrlKey && root.activeElement !== canvas)) return; // else the page scrolls
      event.preventDefault();
      hands.onView(zoomBy(seen.scene.view, Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015))), true);
    },
    { passive: false },
  );
  return { isHolding: () => held !== null, token: () => held?.token ?? -1 };
}

/** @param {Map<number, [number, number]>} fingers */
function spreadOf(fingers) {
  const [[a, b], [c, d]] = fingers.values();
  return Math.hypot(a - c, b - d);
}

/**
 * Where a start is on the screen.
 * @param {Seen} seen
 * @param {number[]} place
 */
export function pixelOfStart({ scene, area, drawn }, place) {
  if (scene.kind === 'lines') return [area.left, makeLineMap(scene, area).yOf(place[0])];
  const at = [0, 0, 0, 0],
    [x, y = 0, z = 0] = place;
  drawn.camera?.project(x, y, z, at);
  return at;
}

/**
 * The token whose start is under a pixel, or -1.
 * @param {Seen} seen
 * @param {number} x
 * @param {number} y
 */
function startAt(seen, x, y) {
  const pixels = new Float32Array(4 * seen.scene.recording.n);
  seen.scene.recording.x0.forEach((place, i) => pixels.set(pixelOfStart(seen, place).slice(0, 3), 4 * i));
  return pickToken(pixels, x, y, GRAB);
}

/**
 * The place to which a start is dragged; null if that is its home. Positions are rounded, so that a link stays short and exact.
 * @param {Seen} seen
 * @param {{from: number[], x: number, y: number}} held
 * @param {number} x
 * @param {number} y
 * @param {number[] | undefined} home
 */
function placeOf(seen, held, x, y, home) {
  const { scene, area, drawn } = seen;
  if (home) {
    const [u, v] = pixelOfStart(seen, home),
      [a, b] = pixelOfStart(seen, held.from);
    const along = scene.kind === 'lines' ? 0 : u - (a + x - held.x);
    if (Math.hypot(along, v - (b + y - held.y)) < SNAP) return null;
  }
  if (scene.kind === 'lines') {
    const map = makeLineMap(scene, area);
    return [round(map.valueAt(map.yOf(held.from[0]) + y - held.y), 3)];
  }
  const moved = drawn.camera ? drawn.camera.shift(held.from, x - held.x, y - held.y) : held.from;
  const isBall = kindOf(scene.recording) === 'circle' || kindOf(scene.recording) === 'sphere';
  return (isBall ? ontoSphere(moved) : moved).slice(0, scene.recording.d).map((value) => round(value, isBall ? 9 : 3));
}

/** @param {number} value @param {number} digits */
function round(value, digits) {
  const rounded = Number(value.toFixed(digits));
  return rounded === 0 ? 0 : rounded;
}
