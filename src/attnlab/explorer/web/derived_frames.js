// The frames of a run that are not recorded: x and z, from the limit frame.

/** @typedef {import('./types.js').Recording} Recording */

/**
 * The tokens as x (of the equation) or as z = e^{-tV} x. In the limit frame a growing eigen-coordinate is already divided by its
 * growth and turned back; the others are not.
 * @param {Recording} recording
 * @param {'z' | 'x'} frame
 * @param {number[][]} inverse   of the recording's basis
 * @returns {Float32Array}       (T, n, 3)
 */
export function deriveFrames(recording, frame, inverse) {
  const { n, d, T, times, basis, growth, turn, frames } = recording,
    ready = frames[frame];
  if (ready) return ready;
  if (recording.geometry === 'sphere') return frames.limit;
  const result = new Float32Array(frames.limit.length),
    own = new Float64Array(d);
  for (let k = 0; k < T; k++) {
    const factors = growth.map((value) =>
      value > 0 === (frame === 'x') ? Math.exp((frame === 'x' ? value : -value) * times[k]) : 1,
    );
    for (let p = k * n * 3; p < (k + 1) * n * 3; p += 3) {
      for (let a = 0; a < d; a++) {
        own[a] = 0;
        for (let c = 0; c < d; c++) own[a] += inverse[a][c] * frames.limit[p + c];
        own[a] *= factors[a];
      }
      turnPairs(own, growth, turn, frame, times[k]);
      for (let c = 0; c < d; c++) for (let a = 0; a < d; a++) result[p + c] += basis[c][a] * own[a];
    }
  }
  return result;
}

/**
 * Turn the coordinates of complex pairs: growing ones forward for x, the others back for z.
 * @param {Float64Array} own
 * @param {number[]} growth
 * @param {number[]} turn
 * @param {'z' | 'x'} frame
 * @param {number} t
 */
function turnPairs(own, growth, turn, frame, t) {
  turn.forEach((rate, a) => {
    if (!rate || growth[a] > 0 !== (frame === 'x')) return;
    const angle = (frame === 'x' ? rate : -rate) * t,
      cos = Math.cos(angle),
      sin = Math.sin(angle),
      [u, v] = [own[a], own[a + 1]];
    own[a] = cos * u + sin * v;
    own[a + 1] = -sin * u + cos * v;
  });
}
