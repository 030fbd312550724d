// A pen that writes SVG: it has the part of a canvas pen that the stage uses, so that the same code draws both.

/** @typedef {{[name: string]: string | number}} Attributes */

/** @param {string} text */
function escape(text) {
  return text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c] ?? c);
}

/** Pixels to a hundredth: small files, nothing lost on paper. @param {number} value */
const short = (value) => String(Number(value.toFixed(2)));

/** A colour that SVG 1.1 programs understand: rgba() is written as its parts. @param {string} colour */
function splitColour(colour) {
  const match = /^rgba\(\s*(\d+),\s*(\d+),\s*(\d+),\s*([\d.]+)\s*\)$/.exec(colour);
  return match ? { colour: `rgb(${match[1]},${match[2]},${match[3]})`, opacity: Number(match[4]) } : { colour, opacity: 1 };
}

class Gradient {
  /** @param {string} id @param {number[]} circle   x, y, radius, and the focus x, y */
  constructor(id, circle) {
    this.id = id;
    this.circle = circle;
    this.stops = /** @type {string[]} */ ([]);
  }

  /** @param {number} offset @param {string} colour */
  addColorStop(offset, colour) {
    const split = splitColour(colour);
    this.stops.push(`<stop offset="${offset}" stop-color="${escape(split.colour)}" stop-opacity="${split.opacity}"/>`);
  }

  toString() {
    return `url(#${this.id})`;
  }
}

export class SvgPen {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.parts = /** @type {string[]} */ ([]);
    this.gradients = /** @type {Gradient[]} */ ([]);
    this.clips = /** @type {string[]} */ ([]);
    this.stack = /** @type {any[]} */ ([]);
    this.path = '';
    this.dash = /** @type {number[]} */ ([]);
    this.clipName = '';
    Object.assign(this, {
      fillStyle: '#000',
      strokeStyle: '#000',
      lineWidth: 1,
      globalAlpha: 1,
      lineCap: 'butt',
      lineJoin: 'miter',
    });
    Object.assign(this, { font: '10px sans-serif', textAlign: 'left', textBaseline: 'alphabetic', imageSmoothingEnabled: true });
    /** @type {any} */ this.style = this;
    this.ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
  }

  beginPath() {
    this.path = '';
  }
  closePath() {
    this.path += 'Z';
  }
  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }
  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.path += `${this.path ? 'L' : 'M'}${short(x)} ${short(y)}`;
  }
  /** @param {number} u @param {number} v @param {number} x @param {number} y */
  quadraticCurveTo(u, v, x, y) {
    this.path += `Q${short(u)} ${short(v)} ${short(x)} ${short(y)}`;
  }
  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  rect(x, y, width, height) {
    this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}Z`;
  }

  /** Whole circles only: the stage draws no other arcs. @param {number} x @param {number} y @param {number} radius */
  arc(x, y, radius) {
    const r = short(radius),
      wide = short(2 * radius);
    this.path += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${wide} 0a${r} ${r} 0 1 0 -${wide} 0Z`;
  }

  /** @param {string} tag @param {Attributes} attributes @param {string} [text] */
  add(tag, attributes, text) {
    const clip = this.clipName ? ` clip-path="url(#${this.clipName})"` : '';
    const words = Object.entries(attributes)
      .map(([name, value]) => ` ${name}="${escape(String(value))}"`)
      .join('');
    this.parts.push(`<${tag}${words}${clip}${text === undefined ? '/>' : `>${escape(text)}</${tag}>`}`);
  }

  fill() {
    const { colour, opacity } = splitColour(String(this.style.fillStyle));
    this.add('path', { d: this.path, fill: colour, 'fill-opacity': short(opacity * this.style.globalAlpha) });
  }

  stroke() {
    if (this.path) this.add('path', { d: this.path, fill: 'none', ...this.strokeAttributes() });
  }

  strokeAttributes() {
    const { colour, opacity } = splitColour(String(this.style.strokeStyle));
    return /** @type {Attributes} */ ({
      stroke: colour,
      'stroke-opacity': short(opacity * this.style.globalAlpha),
      'stroke-width': short(this.style.lineWidth),
      'stroke-linecap': this.style.lineCap,
      'stroke-linejoin': this.style.lineJoin,
      ...(this.dash.length ? { 'stroke-dasharray': this.dash.join(' ') } : {}),
    });
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  fillRect(x, y, width, height) {
    const { colour, opacity } = splitColour(String(this.style.fillStyle));
    this.add('rect', {
      x: short(x),
      y: short(y),
      width: short(width),
      height: short(height),
      fill: colour,
      'fill-opacity': short(opacity * this.style.globalAlpha),
    });
  }

  /** @param {string} text @param {number} x @param {number} y @returns {Attributes} */
  textAttributes(text, x, y) {
    const match = /^(italic )?(?:(\d{3}) )?([\d.]+)px (.*)$/.exec(this.style.font) ?? ['', '', '', '12', 'sans-serif'];
    const size = Number(match[3]),
      drop = { middle: 0.35, top: 0.8 }[/** @type {string} */ (this.style.textBaseline)] ?? 0;
    return {
      x: short(x),
      y: short(y + drop * size),
      'font-family': match[4],
      'font-size': size,
      ...(match[1] ? { 'font-style': 'italic' } : {}),
      ...(match[2] ? { 'font-weight': match[2] } : {}),
      'text-anchor': { center: 'middle', right: 'end' }[/** @type {string} */ (this.style.textAlign)] ?? 'start',
    };
  }

  /** @param {string} text @param {number} x @param {number} y */
  fillText(text, x, y) {
    this.add(
      'text',
      { ...this.textAttributes(text, x, y), fill: String(this.style.fillStyle), 'fill-opacity': short(this.style.globalAlpha) },
      text,
    );
  }

  /** @param {string} text @param {number} x @param {number} y */
  strokeText(text, x, y) {
    this.add('text', { ...this.textAttributes(text, x, y), fill: 'none', ...this.strokeAttributes() }, text);
  }

  /** @param {string} text */
  measureText(text) {
    this.ruler.font = this.style.font;
    return this.ruler.measureText(text);
  }

  /** @param {number[]} dash */
  setLineDash(dash) {
    this.dash = dash;
  }
  save() {
    this.stack.push({ ...this.style, style: undefined });
  }
  restore() {
    const { fillStyle, strokeStyle, lineWidth, globalAlpha, clipName, dash, font } = this.stack.pop();
    Object.assign(this, { fillStyle, strokeStyle, lineWidth, globalAlpha, clipName, dash, font });
  }

  clip() {
    this.clipName = `clip${this.clips.length}`;
    this.clips.push(`<clipPath id="${this.clipName}"><path d="${this.path}"/></clipPath>`);
  }

  /** @param {number} fx @param {number} fy @param {number} inner @param {number} x @param {number} y @param {number} radius */
  createRadialGradient(fx, fy, inner, x, y, radius) {
    const gradient = new Gradient(`light${this.gradients.length}`, [x, y, radius, fx, fy]);
    this.gradients.push(gradient);
    return gradient;
  }

  /** Glows are left out: they are pictures, and print has none. */
  drawImage() {}

  /** @returns {string} the file */
  toString() {
    const gradients = this.gradients.map(
      ({ id, circle: [x, y, r, fx, fy], stops }) =>
        `<radialGradient id="${id}" gradientUnits="userSpaceOnUse" `
        + `cx="${short(x)}" cy="${short(y)}" r="${short(r)}" fx="${short(fx)}" fy="${short(fy)}">`
        + `${stops.join('')}</radialGradient>`,
    );
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" `
      + `viewBox="0 0 ${this.width} ${this.height}">`
      + `<defs>${gradients.join('')}${this.clips.join('')}</defs>\n${this.parts.join('\n')}\n</svg>\n`
    );
  }
}
