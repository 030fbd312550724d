// Answers requests for numbers, in a worker or in slices on the main thread. Other tasks can run every few milliseconds.
import { Refusal } from './refusal.js';
import { Recorder } from './record.js';
import { runSpec } from './run.js';
import { sweep } from './sweep_runs.js';
import { attentionRows } from './attention.js';
import { buffersOf, cutPiece } from './pieces.js';

/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').ResolvedWeights} ResolvedWeights */

/**
 * A request: id and kind, and the data that the kind needs. The two stops have no answer.
 * @typedef {object} Request
 * @property {number} id
 * @property {'record' | 'attention' | 'row' | 'sweep' | 'run' | 'stop' | 'stop_sweep'} kind
 * @property {Spec} [spec]
 * @property {import('./types.js').RecordOptions} [options]
 * @property {import('./types.js').SweepRequest} [request]
 * @property {number | 'end'} [t]
 * @property {number} [head]
 * @property {number} [token]
 * @property {ResolvedWeights | null} [resolved]
 */

/**
 * An answer: pieces and points on the way, then one 'done' or 'failed'.
 * @typedef {{id: number, kind: 'piece' | 'point' | 'done' | 'failed', [key: string]: any}} Answer
 */

const SLICE = 8;                      // milliseconds of work at a time
const BETWEEN_PIECES = 60;            // milliseconds

/** Thrown if a newer request has replaced the present one. */
class Superseded extends Error {}

/**
 * Resolves after other tasks had a chance to run. It uses a message to itself, because timers wait at least 4 ms.
 * @returns {Promise<void>}
 */
function pause() {
  return new Promise(resolve => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

/**
 * Drive a generator to its end in slices.
 * @template Y, R
 * @param {Generator<Y, R, void>} work
 * @param {() => boolean} isStopped
 * @param {(value: Y) => void} [onValue]      for what it yields on the way
 * @param {() => void} [onPause]
 * @returns {Promise<R>}
 */
async function drive(work, isStopped, onValue, onPause) {
  let until = performance.now() + SLICE;
  for (;;) {
    const next = work.next();
    if (next.done) return next.value;
    if (next.value !== undefined) onValue?.(next.value);
    if (performance.now() < until) continue;
    onPause?.();
    await pause();
    if (isStopped()) throw new Superseded('superseded');
    until = performance.now() + SLICE;
  }
}

/** A handler has at most one recording and one sweep at a time: the newest ones. */
export class RequestHandler {
  /**
   * @param {(answer: Answer, buffers?: ArrayBuffer[]) => void} send
   * @param {number} [mostTokens]         on the main thread, where the reader would notice a long step
   */
  constructor(send, mostTokens = Infinity) {
    this.send = send;
    this.mostTokens = mostTokens;
    this.recording = -1;
    this.sweeping = -1;
    this.isClosed = false;
    /** @type {{key: string, recorder: Recorder}[]} */
    this.kept = []; // the present recording, and the last complete one, which is drawn meanwhile
  }

  /** End the present recording and sweep. */
  close() {
    this.recording = this.sweeping = -1;
    this.isClosed = true;
  }

  /** @param {Request} request */
  async handle(request) {
    const { id, kind } = request;
    if (kind === 'stop') this.recording = -1;
    if (kind === 'stop' || kind === 'stop_sweep') {
      this.sweeping = -1;
      return;
    }
    try {
      this.send({ id, kind: 'done', ...await this.#answer(request) });
    } catch (problem) {
      const words = problem instanceof Error ? problem.message : String(problem);
      const isRefusal = problem instanceof Refusal, isSuperseded = problem instanceof Superseded;
      this.send({ id, kind: 'failed', sentence: words, isRefusal, isSuperseded });
    }
  }

  /**
   * @param {Request} request
   * @returns {Promise<object>}
   */
  async #answer({ id, kind, spec, options, request, t, head = 0, token = 0, resolved = null }) {
    if (kind === 'record') return this.#record(id, /** @type {Spec} */ (spec), options ?? {}, resolved);
    if (kind === 'sweep' && request) {
      this.sweeping = id;
      this.#checkTokens(Math.max(request.n ?? request.spec.start.n, ...(request.path === 'start.n' ? request.values : [])));
      await drive(sweep(request, resolved), () => this.sweeping !== id, point => this.send({ id, kind: 'point', point }));
      return {};
    }
    if (kind === 'run') {
      this.#checkTokens(spec?.start?.law === 'given' ? spec.start.x?.length : spec?.start?.n);
      return { result: await drive(runSpec(/** @type {Spec} */ (spec), resolved), () => this.isClosed) };
    }
    if (kind === 'attention' || kind === 'row') {
      const recorder = await this.#recorderOf(/** @type {Spec} */ (spec), resolved), { n } = recorder.problem;
      const P = attentionRows(recorder, t ?? 'end', head, kind === 'row' ? [token] : Array.from({ length: n }, (_, i) => i));
      return { P, n };
    }
    throw new Refusal(`There is no request ${String(kind).slice(0, 40)}.`);
  }

  /**
   * @param {number} id
   * @param {Spec} spec
   * @param {import('./types.js').RecordOptions} options
   * @param {ResolvedWeights | null} resolved
   */
  async #record(id, spec, options, resolved) {
    this.recording = id;
    const began = performance.now(), recorder = new Recorder(spec, options, resolved);
    this.#checkTokens(recorder.problem.n);
    const own = { key: JSON.stringify(spec), recorder };
    this.kept = [own, ...this.kept.filter(one => one.recorder.isDone).slice(0, 1)];
    let sent = 0, last = began;
    const cut = (/** @type {number | null} */ milliseconds) => {
      const piece = cutPiece(recorder, sent, milliseconds);
      sent = piece.to;
      last = performance.now();
      this.send({ id, kind: 'piece', piece }, buffersOf(piece));
    };
    const onPause = () => { if (recorder.T > sent && performance.now() - last > (sent === 0 ? 0 : BETWEEN_PIECES)) cut(null); };
    await drive(recorder.run(), () => this.recording !== id, undefined, onPause);
    this.kept = [own];
    cut(performance.now() - began);
    return {};
  }

  /**
   * The Recorder of a Spec: the present one if it is for this Spec, else a new one.
   * @param {Spec} spec
   * @param {ResolvedWeights | null} resolved
   */
  async #recorderOf(spec, resolved) {
    const key = JSON.stringify(spec);
    const known = this.kept.find(one => one.key === key && one.recorder.T > 0);
    if (known) return known.recorder;
    const recorder = new Recorder(spec, {}, resolved);
    this.#checkTokens(recorder.problem.n);
    await drive(recorder.run(), () => this.isClosed);
    if (!this.kept.length) this.kept = [{ key, recorder }];
    return recorder;
  }

  /** @param {unknown} n */
  #checkTokens(n) {
    if (typeof n === 'number' && n > this.mostTokens) {
      throw new Refusal(`Without a worker the page computes up to ${this.mostTokens} tokens, got ${n}. Choose a smaller n.`);
    }
  }
}
