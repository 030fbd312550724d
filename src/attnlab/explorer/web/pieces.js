// A recording is sent in pieces: the worker cuts them from a Recorder, and the page joins them into a growing Recording.
import { sentenceOf } from './statuses.js';

/** @typedef {import('./types.js').Recording} Recording */
/** @typedef {import('./record.js').Recorder} Recorder */

/**
 * @typedef {object} Piece
 * @property {number} from                frames before this one were sent
 * @property {number} to
 * @property {Float64Array} times
 * @property {{limit: Float32Array, x?: Float32Array, z?: Float32Array}} frames
 * @property {Int16Array} leaders
 * @property {Float32Array} groups
 * @property {Float32Array} listened
 * @property {number} sample              where the two series continue
 * @property {any} [head]                 with the first piece: the parts that do not change
 * @property {any} [tail]                 with the last piece: the facts about the end
 */

/**
 * The frames of a Recorder from `from` on, as copies that can be sent away.
 * @param {Recorder} recorder
 * @param {number} from
 * @param {number | null} milliseconds    how long it took: this is the last piece
 * @returns {Piece}
 */
export function cutPiece(recorder, from, milliseconds) {
  const { T: to, every, problem } = recorder, { n, d } = problem, first = Math.ceil(from / every), last = Math.ceil(to / every);
  /** @type {Piece} */
  const piece = {
    from, to, sample: first,
    times: recorder.times.slice(from, to),
    frames: { limit: recorder.frames.limit.slice(3 * n * from, 3 * n * to) },
    leaders: recorder.leaders.slice(n * from, n * to),
    groups: recorder.groups.slice(first, last),
    listened: recorder.listened.slice(first, last),
  };
  if (recorder.frames.x) piece.frames.x = recorder.frames.x.slice(3 * n * from, 3 * n * to);
  if (recorder.frames.z) piece.frames.z = recorder.frames.z.slice(3 * n * from, 3 * n * to);
  if (from === 0) {
    const { basis, growth, turn } = problem.weights, { geometry } = problem.dynamics;
    const isSphere = geometry === 'sphere', total = recorder.times.length;
    const { tau, trusted } = recorder, { x0 } = problem;
    piece.head = { n, d, total, tau, every, x0, basis, growth, turn, geometry, trusted, isSphere };
  }
  if (milliseconds !== null) {
    const { status, trusted, estimate, steps, evaluations } = recorder, { labels, count } = recorder.finalGroups();
    const sentence = sentenceOf(status, recorder.times[Math.max(to - 1, 0)]), changes = Float64Array.from(recorder.changes);
    piece.tail = { labels, count, changes, status, sentence, trusted, estimate, steps, evaluations, milliseconds };
    if (estimate === null) piece.tail.estimateWhy = recorder.why;
  }
  return piece;
}

/**
 * The buffers of a piece, to be transferred and not copied.
 * @param {Piece} piece
 * @returns {ArrayBuffer[]}
 */
export function buffersOf(piece) {
  const arrays = [piece.times, ...Object.values(piece.frames), piece.leaders, piece.groups, piece.listened];
  return arrays.map(array => /** @type {ArrayBuffer} */ (array.buffer));
}

/**
 * The recording with one more piece. Arrays have room for all frames until the recording is complete.
 * @param {Recording | null} recording
 * @param {Piece} piece
 * @returns {Recording}
 */
export function joinPiece(recording, piece) {
  const grown = recording ?? beginRecording(piece.head), { n } = grown;
  grown.times.set(piece.times, piece.from);
  grown.frames.limit.set(piece.frames.limit, 3 * n * piece.from);
  if (piece.frames.x) grown.frames.x?.set(piece.frames.x, 3 * n * piece.from);
  if (piece.frames.z) grown.frames.z?.set(piece.frames.z, 3 * n * piece.from);
  grown.leaders.set(piece.leaders, n * piece.from);
  grown.groups.set(piece.groups, piece.sample);
  grown.listened.set(piece.listened, piece.sample);
  grown.T = piece.to;
  if (piece.tail) {
    Object.assign(grown, piece.tail);
    trim(grown);
  }
  return { ...grown };                      // a new object for each piece, so that callers notice each new piece
}

/**
 * @param {any} head
 * @returns {Recording}
 */
function beginRecording(head) {
  const { n, d, total, tau, every, x0, basis, growth, turn, geometry, trusted, isSphere } = head, room = 3 * n * total;
  const samples = Math.ceil(total / every), frame = () => new Float32Array(room);
  return {
    n, d, T: 0, times: new Float64Array(total), tau, complete: false,
    frames: isSphere ? { limit: frame() } : { limit: frame(), x: frame(), z: frame() },
    leaders: new Int16Array(n * total), every, groups: new Float32Array(samples), listened: new Float32Array(samples),
    labels: new Int32Array(n), count: 0, changes: new Float64Array(0), x0, basis, growth, turn, geometry,
    status: 'INTERRUPTED', sentence: '', trusted, estimate: null, steps: 0, evaluations: 0, milliseconds: 0,
  };
}

/**
 * Cut the arrays of a complete recording to its number of frames.
 * @param {Recording} recording
 */
function trim(recording) {
  const { n, T, every, frames } = recording, samples = Math.ceil(T / every);
  recording.complete = true;
  recording.times = recording.times.subarray(0, T);
  recording.leaders = recording.leaders.subarray(0, n * T);
  recording.groups = recording.groups.subarray(0, samples);
  recording.listened = recording.listened.subarray(0, samples);
  recording.frames = { limit: frames.limit.subarray(0, 3 * n * T) };
  if (frames.x) recording.frames.x = frames.x.subarray(0, 3 * n * T);
  if (frames.z) recording.frames.z = frames.z.subarray(0, 3 * n * T);
}
