// Copies: text to the clipboard, the picture as PNG and SVG, and a film.

import { element } from './dom.js';
import { SvgPen } from './svg.js';
import { SANS, SERIF } from './theme.js';

/**
 * Draw something into a pen of that size.
 * @typedef {(g: CanvasRenderingContext2D, width: number, height: number) => void} Painter
 */

const FILMS = ['video/mp4;codecs=avc1.42E01E', 'video/webm;codecs=vp9', 'video/webm;codecs=vp8', 'video/webm'];
const FRAMES_PER_SECOND = 30;

/**
 * Copy text. Returns false if the browser does not allow it; then the caller shows the text.
 * @param {string} text
 * @returns {Promise<boolean>}
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
function download(blob, name) {
  const address = URL.createObjectURL(blob),
    link = element('a', { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/**
 * Save the picture at twice its size on the screen.
 * @param {Painter} paint
 * @param {number} width
 * @param {number} height
 * @param {string} name     of the file
 */
export async function savePng(paint, width, height, name) {
  const canvas = element('canvas', { width: 2 * Math.round(width), height: 2 * Math.round(height) });
  const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  g.scale(2, 2);
  paint(g, width, height);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
  if (!(blob instanceof Blob)) throw new Error('The browser could not write the picture. Make the window smaller.');
  download(blob, name);
}

/**
 * The picture as SVG text.
 * @param {Painter} paint
 * @param {number} width
 * @param {number} height
 */
export function writeSvg(paint, width, height) {
  const pen = new SvgPen(Math.round(width), Math.round(height));
  paint(/** @type {any} */ (pen), pen.width, pen.height);
  return pen.toString();
}

/**
 * @param {Painter} paint
 * @param {number} width
 * @param {number} height
 * @param {string} name
 */
export function saveSvg(paint, width, height, name) {
  download(new Blob([writeSvg(paint, width, height)], { type: 'image/svg+xml' }), name);
}

/** The kind of film that this browser writes, or empty. */
export function filmKind() {
  return typeof MediaRecorder === 'undefined' ? '' : (FILMS.find((kind) => MediaRecorder.isTypeSupported(kind)) ?? '');
}

/**
 * Record a film in real time. `next` moves the clock and says whether there is more.
 * @param {Painter} paint
 * @param {number} width
 * @param {number} height
 * @param {string} name      of the file, without its ending
 * @param {(seconds: number) => boolean} next
 * @returns {{stop: () => void, done: Promise<void>}}
 */
export function recordFilm(paint, width, height, name, next) {
  const kind = filmKind(),
    wide = 2 * Math.ceil(width / 2),
    high = 2 * Math.ceil(height / 2); // films have even sizes
  const canvas = element('canvas', { width: wide, height: high });
  const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  paint(g, wide, high);
  const recorder = new MediaRecorder(canvas.captureStream(FRAMES_PER_SECOND), { mimeType: kind, videoBitsPerSecond: 8e6 });
  const /** @type {Blob[]} */ pieces = [];
  recorder.addEventListener('dataavailable', (event) => pieces.push(event.data));
  const done = new Promise((resolve) => recorder.addEventListener('stop', resolve)).then(() => {
    download(new Blob(pieces, { type: kind }), `${name}.${kind.includes('mp4') ? 'mp4' : 'webm'}`);
  });
  recorder.start(250);
  let before = performance.now(),
    rest = 1; // a second of the last picture
  const turn = (/** @type {number} */ now) => {
    if (recorder.state !== 'recording') return;
    const seconds = Math.min(0.1, (now - before) / 1000);
    before = now;
    if (!next(seconds)) rest -= seconds;
    g.clearRect(0, 0, wide, high);
    paint(g, wide, high);
    if (rest > 0) requestAnimationFrame(turn);
    else recorder.stop();
  };
  requestAnimationFrame(turn);
  return {
    stop: () => {
      if (recorder.state === 'recording') recorder.stop();
    },
    done,
  };
}

/**
 * Write an equation made of text and sub elements with a pen.
 * @param {CanvasRenderingContext2D} g
 * @param {Node} node
 * @param {number} x
 * @param {number} y
 * @param {number} size
 * @param {boolean} [isUpright]
 * @returns {number} where it ends
 */
export function writeRuns(g, node, x, y, size, isUpright = false) {
  for (const child of node.childNodes) {
    if (child instanceof Text) {
      g.font = `${isUpright ? '' : 'italic '}${size}px ${SERIF}`;
      g.fillText(child.data, x, y);
      x += g.measureText(child.data).width;
    } else if (child instanceof HTMLElement) {
      const isSub = child.tagName === 'SUB';
      x = writeRuns(g, child, x, isSub ? y + size * 0.24 : y, isSub ? size * 0.7 : size, isUpright || child.className === 'rm');
    }
  }
  return x;
}

/**
 * The frame around an exported picture: ground, equation and time.
 * @param {CanvasRenderingContext2D} g
 * @param {object} about
 * @param {number} about.width
 * @param {number} about.height
 * @param {import('./theme.js').Theme} about.theme
 * @param {Node} about.equation
 * @param {string} about.numbers
 * @param {string} about.time
 * @param {string} about.counts
 */
export function paintFrame(g, { width, height, theme, equation, numbers, time, counts }) {
  g.globalAlpha = 1;
  g.fillStyle = theme.panel;
  g.fillRect(0, 0, width, height);
  g.textBaseline = 'alphabetic';
  g.textAlign = 'left';
  g.fillStyle = theme.ink;
  writeRuns(g, equation, 18, 34, 19);
  g.fillStyle = theme.note;
  g.font = `13px ${SERIF}`;
  g.fillText(numbers, 18, 58);
  g.textAlign = 'right';
  g.fillStyle = theme.ink;
  g.font = `28px ${SERIF}`;
  g.fillText(` = ${time}`, width - 18, 38);
  const after = g.measureText(` = ${time}`).width;
  g.font = `italic 28px ${SERIF}`;
  g.fillText('t', width - 18 - after, 38);
  g.fillStyle = theme.note;
  g.font = `12px ${SANS}`;
  g.fillText(counts, width - 18, 58);
}
