// The words of the screen that change with the run but not with time.

import { choosePreset, putBack } from './actions.js';
import { countOf, element, fill, formatNumber, glyph, setText } from './dom.js';
import { makeScene } from './drawing.js';
import { isSameSpec } from './equal.js';
import { writePanel } from './panel.js';
import { canHaveHull } from './scene.js';
import { writeEquation, writeNumbers } from './words.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/**
 * Write the words that change with the run, not with time.
 * @param {Viewer} viewer
 */
export function writeWords(viewer) {
  const { session, layout, payload } = viewer,
    { recording, spec, weights, spectrum } = session;
  if (!recording) return;
  fill(layout.equation, ...writeEquation(spec, weights, recording));
  setText(layout.numbers, writeNumbers(spec, recording, spectrum.values, weights?.heads.length ?? 1));
  const isOwn = Boolean(viewer.preset && isSameSpec(viewer.preset.spec, spec));
  writePanel(layout, {
    session,
    preset: viewer.preset,
    isOwn,
    title: payload.title ?? '',
    isSecret: viewer.isSecret,
    guess: viewer.guess,
    onGuess: (guess) => {
      viewer.guess = guess;
      viewer.isSecret = false;
      viewer.describe();
    },
    onReset: () => viewer.preset && choosePreset(viewer, viewer.preset.id),
  });
  for (const button of layout.presets.querySelectorAll('button')) {
    const isThis = button.dataset.preset === viewer.preset?.id;
    button.setAttribute('aria-current', String(isThis));
    button.classList.toggle('changed', isThis && !isOwn);
    if (isThis && viewer.preset !== viewer.shownPreset) showInRow(layout.presets, button);
  }
  viewer.shownPreset = viewer.preset;
  const { steps, evaluations, milliseconds } = recording,
    time = milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds);
  setText(
    layout.statistics,
    recording.isEmbedded
      ? 'recorded by attnlab'
      : `${countOf(steps, 'step')}, ${evaluations} evaluations, ${time} ms`
          + (session.engine?.mode === 'slices' ? ', without a worker' : ''),
  );
  for (const button of layout.copies.querySelectorAll('[data-copy="toml"]'))
    button.toggleAttribute('hidden', recording.python !== undefined); // the weights of a trained model have no Spec
  layout.spectrumPart.hidden = !spectrum.values.length;
  layout.leader.hidden = recording.geometry === 'sphere';
  writeHint(viewer);
  writeHeads(viewer);
  const offered = new Set([
    'trails',
    ...(recording.ending ? [] : ['limits']), // a recording of a trained model has no points at its end
    'shapes',
    ...(session.engine ? ['drag'] : []),
    ...(recording.d > 1 ? ['threads'] : []),
  ]);
  const scene = makeScene(viewer);
  if (scene && canHaveHull(scene)) offered.add('hull');
  viewer.controls.draw({
    spec,
    d: recording.d,
    n: recording.n,
    fastest: recording.geometry === 'sphere' ? 0 : Math.max(0, ...recording.growth),
    frame: viewer.view.frame,
  });
  viewer.switches.draw(viewer.show, offered);
  viewer.sweep.refresh();
  viewer.touch();
}

/** Scroll a row so that one of its buttons is whole. @param {HTMLElement} row @param {HTMLElement} button */
function showInRow(row, button) {
  const left = button.offsetLeft - row.offsetLeft,
    right = left + button.offsetWidth;
  if (left < row.scrollLeft + 24) row.scrollLeft = left - 24;
  else if (right > row.scrollLeft + row.clientWidth - 24) row.scrollLeft = right - row.clientWidth + 24;
}

/** The hint of drag mode, with a way back. @param {Viewer} viewer */
function writeHint(viewer) {
  const moved = Object.keys(viewer.session.spec.start.moved ?? {}),
    { hint } = viewer.layout;
  if (!moved.length) {
    fill(
      hint,
      glyph('drag'),
      viewer.session.recording?.d === 1
        ? ' Drag the start of a token, at the left end.'
        : ' Drag the start of a token: a hollow ring.',
    );
    return;
  }
  const place = viewer.session.spec.start.moved?.[moved[0]] ?? [];
  const what =
    moved.length === 1
      ? `token ${moved[0]} starts at (${place.map((/** @type {number} */ value) => formatNumber(value, 2)).join(', ')})`
      : `${moved.length} tokens moved`;
  fill(
    hint,
    glyph('drag'),
    ` ${what} `,
    element('button', { class: 'chip inline', type: 'button', onclick: () => putBack(viewer) }, glyph('reset'), 'put back'),
  );
}

/** The choice of the head whose attention is shown. @param {Viewer} viewer */
function writeHeads({ layout, session }) {
  const count = session.weights?.heads.length ?? 1,
    { head } = layout;
  head.hidden = count < 2;
  if (head.options.length !== count)
    fill(head, ...Array.from({ length: count }, (_, h) => element('option', { value: h }, `head ${h + 1}`)));
  if (session.head >= count) session.head = 0;
  head.value = String(session.head);
}
