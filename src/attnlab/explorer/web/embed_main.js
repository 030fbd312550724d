// Viewers inside another page. Each belongs to a still picture: a button opens it in place of the picture, and closes it again.
// A closed viewer computes nothing. A viewer that begins to play stops the others.

import { element, fill } from './dom.js';
import { createEngine } from './engine.js';
import { findRecording, takeRecording } from './recordings.js';
import { VERSION } from './types.js';
import { mount } from './viewer.js';

/** @typedef {import('./types.js').Payload} Payload */

/** The worker runs the script of this page: join.py starts another module of it there. */
const workerSource = document.currentScript?.textContent ?? '';

/** The note under an open viewer, because the words of the page around it were written for the picture. */
const NOTE = 'The viewer computes the run of the still picture. The text of this page describes the picture, so times, panels '
  + 'and colours may differ here.';

/**
 * Show a payload in an element.
 * @param {HTMLElement} host
 * @param {Payload} payload
 */
async function show(host, payload) {
  if (payload?.version !== VERSION) throw new Error(`This record must have the version ${VERSION}. Write the page again.`);
  const packed = findRecording(payload), recording = packed && (await takeRecording(packed));
  const engine = packed ? null : createEngine({ workerSource, resolved: payload.resolved });
  return mount(host, payload, { engine, recording, isEmbedded: true });
}

/**
 * A button under a still picture, which opens the viewer in its place.
 * @param {HTMLElement} place
 * @param {Payload} payload
 */
function prepare(place, payload) {
  const button = element('button', { type: 'button', 'aria-expanded': 'false' }),
    note = element('p', { class: 'attnlab-note', hidden: true }, NOTE);
  let /** @type {import('./viewer.js').Viewer | null} */ viewer = null, /** @type {HTMLElement | null} */ host = null;
  const write = () => {
    fill(button, host ? 'Close the viewer' : 'Play with it');
    button.setAttribute('aria-expanded', String(host !== null));
    place.classList.toggle('open', host !== null);
    note.hidden = host === null;
  };
  const close = () => {
    viewer?.destroy();
    window.attnlab.viewers = window.attnlab.viewers.filter((one) => one !== viewer);
    host?.remove();
    viewer = host = null;
  };
  const open = async () => {
    const own = element('div', { class: 'attnlab-live' });
    host = own;
    place.insertBefore(own, button);
    try {
      const made = await show(own, payload);
      if (host !== own) {
        made.destroy(); // the reader has closed it meanwhile
        return;
      }
      viewer = made;
      window.attnlab.viewers.push(made);
    } catch (problem) {
      fill(own, element('p', { role: 'alert' }, problem instanceof Error ? problem.message : String(problem)));
    }
  };
  button.addEventListener('click', () => {
    if (host) close();
    else open();
    write();
  });
  write();
  place.append(button, note);
}

/**
 * Integrate a Spec in this page: times are those of al.simulate, x is (T, n, d) in the Spec's coordinates.
 * @param {import('./types.js').Spec} spec
 */
function run(spec) {
  own ??= createEngine({ workerSource });
  return own.run(spec);
}

let /** @type {import('./types.js').Engine | null} */ own = null;
window.attnlab = { run, version: VERSION, viewers: [] };
const payloads = JSON.parse(document.getElementById('attnlab-payloads')?.textContent ?? '{}');
for (const place of document.querySelectorAll('[data-attnlab]')) {
  const name = place instanceof HTMLElement ? (place.dataset.attnlab ?? '') : '';
  if (place instanceof HTMLElement && Object.hasOwn(payloads, name)) prepare(place, payloads[name]);
}
