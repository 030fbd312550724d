// The small marks of a picture: tokens, rings, diamonds, arcs, hatching. `g` is a canvas pen, or the pen that writes SVG.

const FULL = 2 * Math.PI;

/** Glows by colour. They are constants: two viewers may share them. @type {Map<string, HTMLCanvasElement>} */
const glows = new Map();

/**
 * A soft disc of light in a colour, drawn once.
 * @param {string} colour   #rrggbb
 */
function glowOf(colour) {
  const known = glows.get(colour);
  if (known) return known;
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 64;
  const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const light = g.createRadialGradient(32, 32, 2, 32, 32, 32);
  light.addColorStop(0, colour);
  light.addColorStop(0.35, `${colour}66`);
  light.addColorStop(1, `${colour}00`);
  g.fillStyle = light;
  g.fillRect(0, 0, 64, 64);
  glows.set(colour, canvas);
  return canvas;
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {number} x
 * @param {number} y
 * @param {number} radius   of the token; the glow is wider
 * @param {string} colour
 */
export function drawGlow(g, x, y, radius, colour) {
  const reach = radius * 3.1,
    alpha = g.globalAlpha;
  g.globalAlpha = alpha * 0.5;
  g.drawImage(glowOf(colour), x - reach, y - reach, 2 * reach, 2 * reach);
  g.globalAlpha = alpha;
}

/**
 * The outline of a token as a path. The shapes have about equal areas.
 * @param {CanvasRenderingContext2D} g
 * @param {number} x
 * @param {number} y
 * @param {number} r
 * @param {number} shape    index into SHAPES
 */
export function traceMark(g, x, y, r, shape) {
  g.beginPath();
  if (shape === 0) {
    g.arc(x, y, r, 0, FULL);
  } else if (shape === 1) {
    g.rect(x - r * 0.9, y - r * 0.9, 1.8 * r, 1.8 * r);
  } else if (shape === 2) {
    tracePolygon(g, [
      [x, y - r * 1.2],
      [x + r * 1.1, y + r * 0.75],
      [x - r * 1.1, y + r * 0.75],
    ]);
  } else if (shape === 3) {
    tracePolygon(g, [
      [x, y - r * 1.25],
      [x + r * 1.1, y],
      [x, y + r * 1.25],
      [x - r * 1.1, y],
    ]);
  } else if (shape === 4) {
    const a = r * 0.42,
      b = r * 1.15;
    tracePolygon(
      g,
      [
        [-a, -b],
        [a, -b],
        [a, -a],
        [b, -a],
        [b, a],
        [a, a],
        [a, b],
        [-a, b],
        [-a, a],
        [-b, a],
        [-b, -a],
        [-a, -a],
      ].map(([u, v]) => [x + u, y + v]),
    );
  } else {
    tracePolygon(
      g,
      [
        [-1.1, 0],
        [-0.55, -0.95],
        [0.55, -0.95],
        [1.1, 0],
        [0.55, 0.95],
        [-0.55, 0.95],
      ].map(([u, v]) => [x + u * r, y + v * r]),
    );
  }
}

/**
 * Add a closed polygon to the path.
 * @param {CanvasRenderingContext2D} g
 * @param {ArrayLike<number>[]} corners
 */
export function tracePolygon(g, corners) {
  corners.forEach((p, k) => (k ? g.lineTo(p[0], p[1]) : g.moveTo(p[0], p[1])));
  g.closePath();
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {ArrayLike<number>} from
 * @param {ArrayLike<number>} to
 */
export function drawLine(g, from, to) {
  g.beginPath();
  g.moveTo(from[0], from[1]);
  g.lineTo(to[0], to[1]);
  g.stroke();
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 */
export function drawRing(g, x, y, radius) {
  g.beginPath();
  g.arc(x, y, radius, 0, FULL);
  g.stroke();
}

/**
 * A limit: solid if it is certified, dashed if it is estimated.
 * @param {CanvasRenderingContext2D} g
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 * @param {boolean} isCertified
 */
export function drawDiamond(g, x, y, radius, isCertified) {
  g.setLineDash(isCertified ? [] : [3, 2.5]);
  g.beginPath();
  tracePolygon(g, [
    [x, y - radius],
    [x + radius, y],
    [x, y + radius],
    [x - radius, y],
  ]);
  g.stroke();
  g.setLineDash([]);
}

/**
 * An arc of attention from one token to another. It bends to its left, so two tokens that attend to each other have two arcs.
 * @param {CanvasRenderingContext2D} g
 * @param {number} x0
 * @param {number} y0
 * @param {number} x1
 * @param {number} y1
 */
export function drawArc(g, x0, y0, x1, y1) {
  const bend = 0.16;
  g.beginPath();
  g.moveTo(x0, y0);
  g.quadraticCurveTo((x0 + x1) / 2 + bend * (y1 - y0), (y0 + y1) / 2 - bend * (x1 - x0), x1, y1);
  g.stroke();
}

/**
 * Hatch a rectangle, where nothing is known.
 * @param {CanvasRenderingContext2D} g
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @param {string} colour
 * @param {number} [gap]
 */
export function hatch(g, x, y, width, height, colour, gap = 6) {
  if (width <= 0 || height <= 0) return;
  g.save();
  g.beginPath();
  g.rect(x, y, width, height);
  g.clip();
  g.strokeStyle = colour;
  g.lineWidth = 1;
  g.beginPath();
  for (let start = x - height; start < x + width; start += gap) {
    g.moveTo(start, y + height);
    g.lineTo(start + height, y);
  }
  g.stroke();
  g.restore();
}

/**
 * @param {CanvasRenderingContext2D} g
 * @param {import('./theme.js').Theme} theme
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 * @param {string} colour
 * @param {number} shape
 */
export function drawToken(g, theme, x, y, radius, colour, shape) {
  g.fillStyle = colour;
  g.strokeStyle = theme.panel;
  g.lineWidth = 1.2;
  traceMark(g, x, y, radius, shape);
  g.fill();
  g.stroke();
}
