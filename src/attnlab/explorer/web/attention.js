// Attention matrices of the tokens of a Recorder, from its states in double precision.
import { Refusal } from './refusal.js';

/** @typedef {import('./record.js').Recorder} Recorder */

const LARGEST_FACTOR = 2 ** 700;

/**
 * Some rows of the attention matrix of one head at the frame nearest to t, (rows, n).
 * @param {Recorder} recorder
 * @param {number | 'end'} t
 * @param {number} head
 * @param {number[]} rows
 * @returns {Float32Array}
 */
export function attentionRows(recorder, t, head, rows) {
  const { field, problem } = recorder, { n, d } = problem, { kernel, isCausal, heads, beta } = field;
  if (!(head >= 0 && head < heads.length)) throw new Refusal(`Heads are numbered 0 to ${heads.length - 1}, got ${head}.`);
  if (rows.some(i => !(i >= 0 && i < n))) throw new Refusal(`Tokens are numbered 0 to ${n - 1}.`);
  const at = frameAt(recorder, t), y = recorder.states.subarray(at * n * d, (at + 1) * n * d), { M } = heads[head];
  const factor = Math.max(-LARGEST_FACTOR, Math.min(LARGEST_FACTOR, beta * 2 ** (2 * recorder.exponents[at])));
  const P = new Float32Array(rows.length * n), scores = new Float64Array(n);
  rows.forEach((i, row) => {
    const seen = isCausal ? i + 1 : n;
    let top = -Infinity, sum = 0;
    for (let j = 0; j < seen; j++) {
      scores[j] = 0;
      for (let a = 0; a < d; a++) for (let b = 0; b < d; b++) scores[j] += factor * y[a * n + i] * M[a * d + b] * y[b * n + j];
      top = Math.max(top, scores[j]);
    }
    for (let j = 0; j < seen; j++) {
      scores[j] = kernel === 'hardmax' ? Number(scores[j] === top) : Math.exp(scores[j] - top);
      sum += scores[j];
    }
    const share = kernel === 'exp_mean' ? Math.exp(top) / seen : 1 / sum;
    for (let j = 0; j < seen; j++) P[row * n + j] = scores[j] * share;
  });
  return P;
}

/**
 * The number of the frame nearest to t among the frames so far.
 * @param {Recorder} recorder
 * @param {number | 'end'} t
 * @returns {number}
 */
function frameAt({ times, T }, t) {
  if (T < 1) throw new Refusal('The run has no frame yet.');
  if (t === 'end') return T - 1;
  let low = 0, high = T - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle;
    else high = middle;
  }
  return Math.abs(times[high] - t) < Math.abs(t - times[low]) ? high : low;
}
