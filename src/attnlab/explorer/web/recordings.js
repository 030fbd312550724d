// The recordings of a page: its own one, or one per preset. Each is unpacked when it is first shown.

import { unpackRecording } from './embedded.js';

/** @typedef {import('./types.js').Payload} Payload */
/** @typedef {import('./types.js').Recording} Recording */

const unpacked = /** @type {WeakMap<object, Promise<Recording>>} */ (new WeakMap());

/**
 * The packed recording that a page shows under a preset's name; undefined if the page integrates the run itself.
 * @param {Payload} payload
 * @param {string} [preset]
 */
export function findRecording(payload, preset = payload.state.preset) {
  return (payload.presets ?? []).find((one) => one.id === preset)?.recording ?? payload.recording;
}

/**
 * @param {import('./types.js').EmbeddedRecording} packed
 * @returns {Promise<Recording>}
 */
export function takeRecording(packed) {
  const known = unpacked.get(packed);
  if (known) return known;
  const coming = unpackRecording(packed);
  if (typeof packed === 'object' && packed) unpacked.set(packed, coming); // what is no table is refused in a sentence
  return coming;
}
