// Elements without innerHTML: text is always inserted as text, so untrusted words cannot become markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Set attributes of an element. A function is a listener (`onclick`), true is an empty attribute, null and false are left out.
 * @param {Element} node
 * @param {{[name: string]: any}} attributes
 */
function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
}

/**
 * Build an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {{[name: string]: any}} [attributes]
 * @param {...Child} children   strings and numbers become text; null, undefined and false are left out
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  setAttributes(node, attributes);
  append(node, children);
  return node;
}

/**
 * @param {Element} node
 * @param {Child[]} children
 */
function append(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replace everything inside a node.
 * @param {Element} node
 * @param {...Child} children
 */
export function fill(node, ...children) {
  node.replaceChildren();
  append(node, children);
}

/**
 * Set the text of a node if it differs: a live region speaks only when something changes.
 * @param {Element} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Small pictures on buttons and in the legend: paths in a box of 16.
 * @type {{[name: string]: {d: string, solid?: boolean, dash?: string}}}
 */
const GLYPHS = {
  play: { d: 'M4 2.2 14 8 4 13.8Z', solid: true },
  pause: { d: 'M3.5 2.5h3.2v11H3.5zM9.3 2.5h3.2v11H9.3z', solid: true },
  ring: { d: 'M2.2 8a5.8 5.8 0 1 0 11.6 0a5.8 5.8 0 1 0-11.6 0M6 8a2 2 0 1 0 4 0a2 2 0 1 0-4 0' },
  limits: { d: 'M8 1.6 14.4 8 8 14.4 1.6 8Z' },
  threads: { d: 'M1.8 13.4 14.2 2.6M1.8 8.6 14.2 2.6M6.6 14.2 14.2 2.6' },
  trails: { d: 'M1.5 13.5C5 12.5 8.5 9.5 10.2 6.3M9.4 4.6a2.3 2.3 0 1 0 4.6 0a2.3 2.3 0 1 0-4.6 0' },
  hull: { d: 'M5 2 13.6 4.6 14 11 7.4 14.2 1.8 8.6Z' },
  drag: { d: 'M8 1.5v13M1.5 8h13M6 3.5l2-2 2 2M6 12.5l2 2 2-2M3.5 6l-2 2 2 2M12.5 6l2 2-2 2' },
  again: { d: 'M13.4 8a5.4 5.4 0 1 1-1.7-3.9M13.6 1.8v3.4h-3.4' },
  theme: { d: 'M8 1.8a6.2 6.2 0 0 1 0 12.4zM1.8 8a6.2 6.2 0 1 0 12.4 0a6.2 6.2 0 1 0-12.4 0', solid: true },
  lock: { d: 'M3.5 7h9v6.5h-9zM5.3 7V5a2.7 2.7 0 0 1 5.4 0v2' },
  close: { d: 'M3.5 3.5l9 9M12.5 3.5l-9 9' },
  reset: { d: 'M2.6 8a5.4 5.4 0 1 0 1.7-3.9M2.4 1.8v3.4h3.4' },
};

/**
 * A small picture. It is hidden from screen readers: the button around it has a name.
 * @param {string} name   of GLYPHS
 * @returns {SVGSVGElement}
 */
export function glyph(name) {
  const { d, solid, dash } = GLYPHS[name];
  const picture = document.createElementNS(SVG, 'svg'),
    path = document.createElementNS(SVG, 'path');
  setAttributes(picture, { viewBox: '0 0 16 16', class: 'glyph', 'aria-hidden': 'true', focusable: 'false' });
  const isHalf = name === 'theme';
  setAttributes(path, {
    d,
    fill: solid ? 'currentColor' : 'none',
    stroke: solid && !isHalf ? 'none' : 'currentColor',
    'stroke-width': 1.4,
    'stroke-linecap': 'round',
    'stroke-linejoin': 'round',
    'stroke-dasharray': dash,
    'fill-rule': 'evenodd',
  });
  picture.append(path);
  return picture;
}

/**
 * Fit a canvas to its box at the screen's resolution (at most 2), clear it, and return its pen and size in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @returns {{g: CanvasRenderingContext2D, width: number, height: number}}
 */
export function prepareCanvas(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const columns = Math.round(width * ratio),
    rows = Math.round(height * ratio);
  if (canvas.width !== columns || canvas.height !== rows) Object.assign(canvas, { width: columns, height: rows });
  const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return { g, width, height };
}

/**
 * Where a pointer is inside an element, in CSS pixels.
 * @param {PointerEvent | WheelEvent | MouseEvent} event
 * @param {Element} node
 * @returns {[number, number]}
 */
export function positionIn(event, node) {
  const box = node.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/**
 * A number for readers: a real minus sign, no trailing zeros.
 * @param {number} value
 * @param {number} [digits]   decimals at most
 */
export function formatNumber(value, digits = 2) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? '–' : value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  if (size >= 1e5 || (size > 0 && size < 10 ** -digits / 2)) {
    const [mantissa, exponent] = value.toExponential(1).split('e');
    return `${mantissa.replace('.0', '').replace('-', '−')}·10${toSuperscript(Number(exponent))}`;
  }
  return String(Number(value.toFixed(digits))).replace('-', '−');
}

/** @param {number} value */
export function toSuperscript(value) {
  return [...String(value)].map((c) => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(c)])).join('');
}

/** @param {number} value */
export function toSubscript(value) {
  return [...String(value)].map((c) => '₀₁₂₃₄₅₆₇₈₉'[Number(c)]).join('');
}

/**
 * @param {number} count
 * @param {string} noun   singular
 */
export function countOf(count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
