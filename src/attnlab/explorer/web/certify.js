// The button that asks Python for the certified limit of a run, with the progress and the answer of Python.

import { element, fill, glyph, setText } from './dom.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/**
 * @typedef {object} Certify
 * @property {HTMLElement} node
 * @property {() => void} draw                 after every run, and after every answer
 * @property {() => void} forget               the run is another one: words about the old run disappear
 * @property {(message: any) => void} hear     {kind: 'progress', fraction, doing} or {kind: 'done', sentence}
 */

/**
 * @param {{send: (content: any) => void}} model
 * @param {Viewer} viewer
 * @returns {Certify}
 */
export function createCertify(model, viewer) {
  const node = element('div', { class: 'certify' }),
    words = element('span', { role: 'status' }),
    bar = element('progress', { max: 1, 'aria-label': 'Progress of Python' });
  const ask = element('button', { class: 'chip go', type: 'button', title: 'Ask Python for the certified limit of this run' },
    glyph('limits'), 'Certify');
  const cancel = element('button', { class: 'chip', type: 'button' }, 'Cancel');
  let isBusy = false;

  ask.addEventListener('click', () => {
    isBusy = true;
    bar.removeAttribute('value');
    setText(words, 'Waiting for Python');
    draw();
    model.send({ kind: 'certify' });
  });
  cancel.addEventListener('click', () => {
    model.send({ kind: 'cancel' });
    setText(words, 'Stopping');
  });

  function draw() {
    const isKnown = viewer.session.outcome.kind === 'certified' || viewer.isSecret;
    node.hidden = isKnown && !isBusy;
    if (isBusy) fill(node, bar, words, cancel);
    else fill(node, ask, words);
  }

  draw();
  return {
    node,
    draw,
    forget() {
      if (!isBusy) setText(words, '');
    },
    hear(message) {
      if (message?.kind === 'progress') {
        isBusy = true; // also in a second view of the same model
        bar.value = Math.min(1, Math.max(0, Number(message.fraction) || 0));
        setText(words, String(message.doing ?? ''));
      } else if (message?.kind === 'done') {
        isBusy = false;
        setText(words, String(message.sentence ?? ''));
      }
      draw();
    },
  };
}
