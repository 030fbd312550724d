// From the coordinates of tokens to pixels and back. The picture's box is fixed while the clock runs.

/**
 * The kind of picture for a run.
 * @typedef {'lines' | 'plane' | 'space' | 'circle' | 'sphere'} Kind
 */

/**
 * The box of a picture: per axis its centre and half its length.
 * @typedef {{centre: number[], half: number[]}} Box
 */

/**
 * @typedef {object} Camera
 * @property {(x: number, y: number, z: number, out: Float32Array | number[], at?: number) => void} project
 *           writes pixel x, pixel y, depth (positive is far) and scale at out[at ...]
 * @property {(moved: number[], dx: number, dy: number) => number[]} shift   a point moved by pixels, in the plane of the screen
 * @property {number} scale        pixels per half of the box
 * @property {[number, number]} middle
 * @property {boolean} isDeep
 */

/** @type {[number, number, number]} */
export const DEFAULT_CAMERA = [-0.62, 0.34, 1];
export const ZOOMS = [0.5, 8];
const DISTANCE = 7.5; // of the eye, in halves of the box: some perspective, little distortion
const STEEPEST = 1.45;

/**
 * @param {import('./types.js').Recording} recording
 * @returns {Kind}
 */
export function kindOf(recording) {
  if (recording.d === 1) return 'lines';
  if (recording.geometry === 'sphere') return recording.d === 2 ? 'circle' : 'sphere';
  return recording.d === 2 ? 'plane' : 'space';
}

/**
 * The box of all frames, or of the frames `from` to `to`: symmetric around the origin unless the tokens are far to one side.
 * @param {import('./types.js').Recording} recording
 * @param {Float32Array} frames   (T, n, 3)
 * @param {number} [from]
 * @param {number} [to]
 * @returns {Box}
 */
export function fitBox(recording, frames, from = 0, to = recording.T - 1) {
  if (recording.geometry === 'sphere' && recording.d > 1) return { centre: [0, 0, 0], half: [1, 1, 1] };
  const low = [0, 0, 0],
    high = [0, 0, 0],
    step = to - from > 60 ? 5 : 1,
    { n, d } = recording;
  low.fill(Infinity);
  high.fill(-Infinity);
  for (let k = from; k <= to; k += step) {
    for (let p = k * n * 3; p < (k + 1) * n * 3; p += 3) {
      for (let c = 0; c < Math.min(d, 3); c++) {
        const value = frames[p + c];
        if (value < low[c]) low[c] = value;
        if (value > high[c]) high[c] = value;
      }
    }
  }
  const centre = [0, 0, 0],
    half = [1, 1, 1];
  for (let c = 0; c < Math.min(d, 3); c++) {
    const middle = (low[c] + high[c]) / 2,
      length = (high[c] - low[c]) / 2;
    const isAside = Math.abs(middle) > 0.6 * length;
    centre[c] = isAside ? middle : 0;
    half[c] = (isAside ? length : Math.max(Math.abs(low[c]), Math.abs(high[c]))) || Math.abs(middle) || 1;
    if (!Number.isFinite(half[c])) half[c] = 1;
  }
  if (d === 2) half[0] = half[1] = Math.max(half[0], half[1]); // the plane keeps its angles
  return { centre, half };
}

/**
 * @param {Kind} kind
 * @param {Box} box
 * @param {{width: number, height: number, top: number, bottom: number}} area   pixels; top and bottom are kept free
 * @param {[number, number, number]} view    yaw, pitch, zoom; in the plane, yaw and pitch shift a picture that is zoomed in
 * @returns {Camera}
 */
export function makeCamera(kind, box, area, view) {
  const [yaw, pitch, zoom] = view;
  const middle = /** @type {[number, number]} */ ([area.width / 2, area.top + (area.height - area.top - area.bottom) / 2]);
  const free = Math.min(area.width - 28, area.height - area.top - area.bottom);
  return kind === 'space' || kind === 'sphere'
    ? makeDeepCamera(kind, box, area, middle, free, yaw, pitch, zoom)
    : makeFlatCamera(kind, box, middle, free, yaw, pitch, zoom);
}

/**
 * @param {Kind} kind
 * @param {Box} box
 * @param {[number, number]} middle
 * @param {number} free
 * @param {number} yaw
 * @param {number} pitch
 * @param {number} zoom
 * @returns {Camera}
 */
function makeFlatCamera(kind, { centre, half }, middle, free, yaw, pitch, zoom) {
  const scale = (kind === 'circle' ? 0.44 : 0.47) * free * zoom;
  const room = Math.max(0, 1 - 1 / zoom),
    shiftX = clamp(yaw, room) * scale,
    shiftY = clamp(pitch, room) * scale;
  return {
    scale,
    middle,
    isDeep: false,
    project(x, y, z, out, at = 0) {
      out[at] = middle[0] - shiftX + (scale * (x - centre[0])) / half[0];
      out[at + 1] = middle[1] + shiftY - (scale * (y - centre[1])) / half[1];
      out[at + 2] = 0;
      out[at + 3] = 1;
    },
    shift: (point, dx, dy) => [point[0] + (dx / scale) * half[0], point[1] - (dy / scale) * half[1], ...point.slice(2)],
  };
}

/**
 * @param {Kind} kind
 * @param {Box} box
 * @param {{width: number, height: number, top: number, bottom: number}} area
 * @param {[number, number]} middle
 * @param {number} free
 * @param {number} yaw
 * @param {number} pitch
 * @param {number} zoom
 * @returns {Camera}
 */
function makeDeepCamera(kind, { centre, half }, area, middle, free, yaw, pitch, zoom) {
  const cosYaw = Math.cos(yaw),
    sinYaw = Math.sin(yaw),
    cosPitch = Math.cos(pitch),
    sinPitch = Math.sin(pitch);
  const room = Math.min(area.width * 0.98, (area.height - area.top - area.bottom) * 1.1);
  const scale = (kind === 'sphere' ? 0.44 * free : 0.292 * room) * zoom;
  if (kind === 'space') middle = [middle[0], middle[1] + scale * offsetOf(cosYaw, sinYaw, cosPitch, sinPitch)];
  return {
    scale,
    middle,
    isDeep: true,
    project(x, y, z, out, at = 0) {
      const a = (x - centre[0]) / half[0],
        b = (y - centre[1]) / half[1],
        c = (z - centre[2]) / half[2];
      const right = cosYaw * a + sinYaw * b,
        away = -sinYaw * a + cosYaw * b;
      const depth = away * cosPitch - c * sinPitch,
        factor = DISTANCE / (DISTANCE + depth);
      out[at] = middle[0] + scale * right * factor;
      out[at + 1] = middle[1] - scale * (c * cosPitch + away * sinPitch) * factor;
      out[at + 2] = depth;
      out[at + 3] = factor;
    },
    shift(point, dx, dy) {
      const at = [0, 0, 0, 0];
      this.project(point[0], point[1], point[2], at);
      const across = dx / (scale * at[3]),
        up = -dy / (scale * at[3]);
      return [
        point[0] + (cosYaw * across - sinYaw * sinPitch * up) * half[0],
        point[1] + (sinYaw * across + cosYaw * sinPitch * up) * half[1],
        point[2] + cosPitch * up * half[2],
      ];
    },
  };
}

/**
 * How far the picture of the box must be shifted down so that its highest and its lowest corner are equally far from the middle.
 * @param {number} cosYaw
 * @param {number} sinYaw
 * @param {number} cosPitch
 * @param {number} sinPitch
 */
function offsetOf(cosYaw, sinYaw, cosPitch, sinPitch) {
  const heights = [];
  for (const a of [-1, 1]) {
    for (const b of [-1, 1]) {
      for (const c of [-1, 1]) {
        const away = -sinYaw * a + cosYaw * b,
          depth = away * cosPitch - c * sinPitch;
        heights.push(((c * cosPitch + away * sinPitch) * DISTANCE) / (DISTANCE + depth));
      }
    }
  }
  return (Math.max(...heights) + Math.min(...heights)) / 2;
}

/** The radius of a sphere's outline: perspective shows a little less than half of it. @param {Camera} camera */
export function outlineRadius(camera) {
  return (camera.scale * DISTANCE) / Math.sqrt(DISTANCE ** 2 - 1);
}

/**
 * A point dragged on the circle or the sphere: back to length 1.
 * @param {number[]} point
 */
export function ontoSphere(point) {
  const length = Math.hypot(...point);
  return length > 0 ? point.map((value) => value / length) : [1, ...point.slice(1)];
}

/**
 * Turn the camera by pixels.
 * @param {[number, number, number]} view
 * @param {Kind} kind
 * @param {number} dx
 * @param {number} dy
 * @param {number} scale   of the camera
 * @returns {[number, number, number]}
 */
export function turn([yaw, pitch, zoom], kind, dx, dy, scale) {
  if (kind === 'space' || kind === 'sphere') return [wrap(yaw + dx * 0.008), clamp(pitch + dy * 0.006, STEEPEST), zoom];
  const room = Math.max(0, 1 - 1 / zoom);
  return [clamp(clamp(yaw, room) - dx / scale, room), clamp(clamp(pitch, room) + dy / scale, room), zoom];
}

/**
 * @param {[number, number, number]} view
 * @param {number} factor
 * @returns {[number, number, number]}
 */
export function zoomBy([yaw, pitch, zoom], factor) {
  return [yaw, pitch, Math.min(ZOOMS[1], Math.max(ZOOMS[0], zoom * factor))];
}

/** @param {number} value @param {number} most */
function clamp(value, most) {
  return Math.min(most, Math.max(-most, value));
}

/** @param {number} angle */
function wrap(angle) {
  return Math.atan2(Math.sin(angle), Math.cos(angle));
}
