// The keyboard. Keys of a panel that is hidden do nothing.

import { turn, zoomBy } from './camera.js';
import { element, fill } from './dom.js';

/**
 * @typedef {object} Actions
 * @property {() => void} toggle              play or pause
 * @property {(frames: number) => void} step
 * @property {() => void} toStart
 * @property {() => void} toInfinity
 * @property {(index: number) => void} choosePreset
 * @property {() => void} nextStart
 * @property {() => void} nextTheme
 * @property {(step: number) => void} nextToken      0: leave the tokens
 * @property {(dx: number, dy: number) => boolean} nudge    move the start of the chosen token by pixels; false: not now
 * @property {() => import('./scene.js').Scene | null} scene
 * @property {(view: [number, number, number]) => void} setView
 */

const ARROWS = /** @type {{[key: string]: [number, number]}} */ ({
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
});

/** Elements that use keys themselves. @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && (['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName) || target.isContentEditable);
}

/**
 * @param {HTMLElement} root
 * @param {HTMLCanvasElement} stage
 * @param {Actions} actions
 * @param {string[]} hide
 * @param {AbortSignal} signal    ends it
 */
export function watchKeys(root, stage, actions, hide, signal) {
  root.addEventListener(
    'keydown',
    (event) => {
      const target = event.composedPath()[0] ?? null,
        isOnStage = target === stage;
      if (event.ctrlKey || event.metaKey || isTyping(target) || (target instanceof Element && target.closest('dialog'))) return;
      if (isOnStage && onStage(event, actions)) {
        event.preventDefault();
        return;
      }
      if (event.altKey) return;
      if (onScreen(event, actions, hide, target)) event.preventDefault();
    },
    { signal },
  );
}

/**
 * Keys that need the stage: turn, zoom, go through tokens, move a start. True where the key was used.
 * @param {KeyboardEvent} event
 * @param {Actions} actions
 */
function onStage(event, actions) {
  const scene = actions.scene(),
    arrow = ARROWS[event.key];
  if (!scene) return false;
  if (arrow && event.altKey) return actions.nudge(arrow[0] * 6, arrow[1] * 6);
  if (arrow && event.shiftKey) {
    actions.setView(turn(scene.view, scene.kind, arrow[0] * 24, arrow[1] * 24, 200));
  } else if (event.key === '+' || event.key === '=' || event.key === '-') {
    actions.setView(zoomBy(scene.view, event.key === '-' ? 1 / 1.2 : 1.2));
  } else if (event.key === 'Enter' && !scene.selected.length) {
    actions.nextToken(1);
  } else if (event.key === 'Tab' && scene.selected.length) {
    actions.nextToken(event.shiftKey ? -1 : 1);
  } else if (event.key === 'Escape' && scene.selected.length) {
    actions.nextToken(0);
  } else return false;
  return true;
}

/**
 * Keys of the whole screen. True where the key was used.
 * @param {KeyboardEvent} event
 * @param {Actions} actions
 * @param {string[]} hide
 * @param {EventTarget | null} target
 */
function onScreen(event, actions, hide, target) {
  const { key } = event,
    isButton = target instanceof HTMLButtonElement;
  if (key === ' ' && !isButton) actions.toggle();
  else if (key === 'ArrowLeft' || key === 'ArrowRight') actions.step((key === 'ArrowLeft' ? -1 : 1) * (event.shiftKey ? 16 : 4));
  else if (key === 'PageUp' || key === 'PageDown') {
    if (isButton) return false;
    actions.step(key === 'PageUp' ? 48 : -48);
  } else if (key === 'Home') actions.toStart();
  else if (key === 'End') actions.toInfinity();
  else if (/^[1-9]$/.test(key) && !hide.includes('presets')) actions.choosePreset(Number(key) - 1);
  else if (key.toLowerCase() === 'r' && !hide.includes('controls')) actions.nextStart();
  else if (key.toLowerCase() === 't' && !hide.includes('theme')) actions.nextTheme();
  else return false;
  return true;
}

/**
 * The keys in a line, for the footer.
 * @param {HTMLElement} node
 * @param {string[]} hide
 */
export function writeKeys(node, hide) {
  const list = [
    [['space'], 'play'],
    [['←', '→'], 'step'],
    [['end'], 't = ∞'],
    ...(hide.includes('presets') ? [] : [[['1–9'], 'presets']]),
    ...(hide.includes('controls') ? [] : [[['R'], 'next start']]),
  ];
  fill(node, ...list.map(([keys, word]) => element('span', {}, ...[...keys].map((key) => element('kbd', {}, key)), ` ${word}`)));
}
