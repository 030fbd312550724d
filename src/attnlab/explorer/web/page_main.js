// The page: it reads the payload and the address, mounts the viewer, and offers window.attnlab to other scripts.

import { readAddress } from './address.js';
import { createEngine } from './engine.js';
import { findRecording, takeRecording } from './recordings.js';
import { drawStart } from './starts.js';
import { VERSION } from './types.js';
import { mount } from './viewer.js';
import { resolveWeights } from './weights.js';

/** @typedef {import('./types.js').Payload} Payload */
/** @typedef {import('./types.js').Spec} Spec */

/** The worker runs the script of this page: join.py starts another module of it there. */
const workerSource = document.currentScript?.textContent ?? '';
const QUIET = 400;      // milliseconds without a change before the address is written: browsers limit how often it may change

/**
 * The payload that Python wrote into the page, or a sentence that says why there is none.
 * @returns {Payload}
 */
function readPayload() {
  const text = document.getElementById('attnlab-payload')?.textContent ?? '';
  const payload = JSON.parse(text);
  if (payload?.version !== VERSION) {
    const version = String(payload?.version).slice(0, 20);
    throw new Error(`This page holds a record of version ${version}, and its script reads version ${VERSION}.`);
  }
  if (typeof payload.state?.spec !== 'object') throw new Error('The record in this page has no Spec.');
  return payload;
}

/**
 * What an address asks for after its question mark: ?hide=sweep,footer&lock=beta&guess=1&embed=1. It adds to the payload.
 * @param {Payload} payload
 */
function readQuery(payload) {
  const query = new URLSearchParams(location.search);
  /** @param {string} key */
  const words = (key) => (query.get(key) ?? '').split(',', 40).filter((word) => /^[\w.-]{1,40}$/.test(word));
  return {
    payload: {
      ...payload, hide: [...(payload.hide ?? []), ...words('hide')], lock: [...(payload.lock ?? []), ...words('lock')],
      guess: Boolean(payload.guess) || query.get('guess') === '1',
    },
    isEmbedded: query.get('embed') === '1',
    preset: words('preset')[0],
  };
}

/**
 * Throw a sentence if the page cannot run a Spec.
 * @param {Payload} payload
 * @returns {(spec: Spec) => void}
 */
function specCheck(payload) {
  return (spec) => { drawStart(spec.start, resolveWeights(spec, payload.resolved).d); };
}

/** @param {HTMLElement} host */
async function start(host) {
  const { payload, isEmbedded, preset } = readQuery(readPayload());
  const isRecording = findRecording(payload) !== undefined, check = isRecording ? () => {} : specCheck(payload);
  const asked = location.hash.length > 1 || preset === undefined ? location.hash : `#preset=${preset}`;
  const read = () => readAddress(location.hash.length > 1 ? location.hash : asked, payload.state, payload.presets, check);
  const { state, complaints } = read();
  const recording = isRecording ? await takeRecording(findRecording(payload, state.preset) ?? {}) : undefined;
  if (isRecording) state.spec = (payload.presets ?? []).find((one) => one.id === state.preset)?.spec ?? payload.state.spec;
  const engine = isRecording ? null : createEngine({ workerSource, resolved: payload.resolved });
  const viewer = mount(host, { ...payload, state }, { engine, recording, isPage: true, isEmbedded, complaints });
  window.attnlab.viewers.push(viewer);
  keepAddress(viewer, read);
}

/**
 * Write every change of the state into the address, and follow an address that the reader changes.
 * @param {import('./viewer.js').Viewer} viewer
 * @param {() => {state: import('./types.js').State, complaints: string[]}} read
 */
function keepAddress(viewer, read) {
  let /** @type {number | undefined} */ waiting, written = location.hash;
  viewer.on('state', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      written = `#${viewer.address()}`;
      try {
        history.replaceState(null, '', written);
      } catch {
        // inside a notebook or a frame without its own address; the copied link is still complete
      }
    }, QUIET);
  });
  addEventListener('hashchange', () => {
    if (location.hash === written) return;
    const { state, complaints } = read();
    viewer.setState(state);
    if (complaints.length) viewer.say(complaints.join(' '));
  });
}

/**
 * Integrate a Spec in this page: times are those of al.simulate, x is (T, n, d) in the Spec's coordinates.
 * @param {Spec} spec
 */
function run(spec) {
  const engine = own ?? createEngine({ workerSource });
  own = engine;
  return engine.run(spec);
}

let /** @type {import('./types.js').Engine | null} */ own = null;
window.attnlab = { run, version: VERSION, viewers: [] };
const host = document.getElementById('attnlab') ?? document.body.appendChild(document.createElement('div'));
start(host).catch((problem) => {
  const words = document.createElement('p');
  words.className = 'attnlab-problem';
  words.setAttribute('role', 'alert');
  words.textContent = `attnlab: this page cannot be shown. ${problem instanceof Error ? problem.message : String(problem)}`;
  host.replaceChildren(words);
});
