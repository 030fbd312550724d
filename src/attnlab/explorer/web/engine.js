// The numerics for the main thread: requests go to a worker or, if workers are forbidden, to a handler in this thread.
import { Refusal } from './refusal.js';
import { RequestHandler } from './request_handler.js';
import { joinPiece } from './pieces.js';

/** @typedef {import('./types.js').Engine} Engine */
/** @typedef {import('./types.js').Recording} Recording */
/** @typedef {import('./request_handler.js').Request} Request */
/** @typedef {import('./request_handler.js').Answer} Answer */

/** The most tokens of a run on the main thread, where the reader would notice a longer step. */
export const MOST_IN_SLICES = 200;

/**
 * @typedef {object} Pending
 * @property {Request} request
 * @property {(value: any) => void} resolve
 * @property {(problem: Error) => void} reject
 * @property {(answer: Answer) => void} [onAnswer]      pieces and points
 */

/**
 * @param {{workerSource?: string, resolved?: import('./types.js').ResolvedWeights | null}} options
 *        workerSource is the joined script of worker.js; resolved are weights that Python made
 * @returns {Engine}
 */
export function createEngine({ workerSource, resolved = null }) {
  /** @type {Map<number, Pending>} */
  const pending = new Map();
  /** @type {Worker | null} */
  let worker = null;
  /** @type {RequestHandler | null} */
  let handler = null;
  let number = 0, isReady = false, isDestroyed = false, recordingId = -1;

  /** @param {Answer} answer */
  function receive(answer) {
    const one = pending.get(answer.id);
    if (!one) return;                                      // superseded, or stopped
    if (answer.kind === 'piece' || answer.kind === 'point') {
      one.onAnswer?.(answer);
      return;
    }
    pending.delete(answer.id);
    if (answer.kind === 'done') one.resolve(answer);
    else if (answer.isSuperseded) one.reject(new Error('superseded'));
    else one.reject(answer.isRefusal ? new Refusal(answer.sentence) : new Error(answer.sentence));
  }

  /** Compute on the main thread from now on, and repeat the requests that have no answer yet. */
  function fallBack() {
    worker?.terminate();
    worker = null;
    handler = new RequestHandler(receive, MOST_IN_SLICES);
    for (const { request } of pending.values()) handler.handle(request);
  }

  try {
    if (!workerSource) throw new Error('no source');
    const address = URL.createObjectURL(new Blob([workerSource], { type: 'text/javascript' }));
    worker = new Worker(address);
    worker.onmessage = event => {
      if (!isReady) URL.revokeObjectURL(address);
      isReady = true;
      if (event.data.kind !== 'ready') receive(event.data);
    };
    worker.onerror = event => {
      event.preventDefault();
      if (!isReady && !isDestroyed) fallBack();            // some pages may make a worker, but not start it
    };
  } catch {
    fallBack();
  }

  /**
   * @param {Omit<Request, 'id'>} request
   * @param {(answer: Answer) => void} [onAnswer]
   * @returns {{id: number, promise: Promise<any>}}
   */
  function ask(request, onAnswer) {
    const id = ++number, whole = { ...request, id, resolved };
    const promise = new Promise((resolve, reject) => {
      if (isDestroyed) return reject(new Error('superseded'));
      if (worker) worker.postMessage(whole);               // throws if the Spec cannot be copied: the promise rejects
      pending.set(id, { request: whole, resolve, reject, onAnswer });
      handler?.handle(whole);
    });
    return { id, promise };
  }

  /** Ask for something that has no answer. @param {'stop' | 'stop_sweep'} kind */
  function tell(kind) {
    const request = { id: ++number, kind };
    if (worker) worker.postMessage(request);
    else handler?.handle(request);
  }

  /** @param {(id: number, one: Pending) => boolean} isDropped */
  function drop(isDropped) {
    for (const [id, one] of [...pending]) {
      if (!isDropped(id, one)) continue;
      pending.delete(id);
      one.reject(new Error('superseded'));
    }
  }

  return {
    get mode() { return worker ? 'worker' : 'slices'; },
    async record(spec, options = {}, onPiece = undefined) {
      drop(id => id === recordingId);
      /** @type {Recording | null} */
      let recording = null;
      const { id, promise } = ask({ kind: 'record', spec, options }, answer => {
        recording = joinPiece(recording, answer.piece);
        if (!recording.complete) onPiece?.(recording);
      });
      recordingId = id;
      await promise;
      return /** @type {Recording} */ (/** @type {unknown} */ (recording));
    },
    async attention(spec, t, head = 0) {
      const { P, n } = await ask({ kind: 'attention', spec, t, head }).promise;
      return { P, n };
    },
    async row(spec, token, t, head = 0) {
      return (await ask({ kind: 'row', spec, token, t, head }).promise).P;
    },
    async sweep(request, onPoint) {
      drop((_, one) => one.request.kind === 'sweep');
      await ask({ kind: 'sweep', request }, answer => onPoint(answer.point)).promise;
    },
    async run(spec) {
      return (await ask({ kind: 'run', spec }).promise).result;
    },
    stop() {
      drop((_, one) => one.request.kind === 'record' || one.request.kind === 'sweep');
      tell('stop');
    },
    stopSweep() {
      drop((_, one) => one.request.kind === 'sweep');
      tell('stop_sweep');
    },
    destroy() {
      isDestroyed = true;
      worker?.terminate();
      worker = null;
      handler?.close();
      handler = null;
      drop(() => true);
    },
  };
}
