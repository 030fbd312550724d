// The panel of words: what to watch, what the theory says, what is known at t = infinity; and the question of guess mode.

import { countOf, element, fill, formatNumber, glyph } from './dom.js';
import { openDialog } from './table.js';
import { describeOutcome, glue, listChanges, nameShape } from './words.js';

/** @typedef {import('./session.js').Session} Session */

/**
 * @typedef {object} PanelView
 * @property {Session} session
 * @property {import('./types.js').Preset | null} preset
 * @property {boolean} isOwn              the run is the preset, unchanged
 * @property {string} title               of the page, if there is no preset
 * @property {boolean} isSecret           the reader must guess first
 * @property {number | null} guess
 * @property {(guess: number) => void} onGuess
 * @property {() => void} onReset         back to the preset
 */

/**
 * @param {import('./layout.js').Layout} layout
 * @param {PanelView} view
 */
export function writePanel(layout, view) {
  const { session, preset, isOwn } = view,
    { recording, theory } = session;
  if (!recording) return;
  const shape = theory && session.engine ? nameShape(theory, recording) : view.title || 'Recording';
  fill(
    layout.heading,
    element('span', {}, glue(preset && isOwn ? preset.name : shape)),
    element('small', {}, theory?.cite === 'open' ? 'no theorem' : theory?.cite),
  );
  if (preset && !isOwn) {
    const changes = listChanges(session.spec, preset.spec);
    fill(
      layout.watch,
      glue(`Changed from ${[preset.name, changes.join(', ')].filter(Boolean).join(': ')}. The text below is about your run. `),
      element(
        'button',
        { class: 'chip inline', type: 'button', onclick: view.onReset },
        glyph('reset'),
        `back to ${preset.name}`,
      ),
    );
  } else {
    fill(layout.watch, glue(preset?.watch ?? (session.engine ? view.title : '')));
  }
  layout.watch.hidden = !layout.watch.textContent;
  fill(
    layout.verdict,
    ...(theory ? [element('dt', {}, 'Theory'), element('dd', {}, glue(theory.says))] : []),
    element('dt', {}, recording.until === undefined ? 't\u00a0=\u00a0∞' : 'End'),
    view.isSecret ? askGuess(view) : recording.ending ? sayEnding(recording.ending) : sayOutcome(layout, view),
  );
}

/** @param {import('./layout.js').Layout} layout @param {PanelView} view */
function sayOutcome(layout, { session, guess }) {
  const { outcome, recording } = session;
  if (!recording) return element('dd', {});
  const isWaiting = session.isBusy && outcome.kind === 'open';
  const { mark, text } = isWaiting ? { mark: '', text: 'The run is being computed.' } : describeOutcome(outcome, recording);
  const said =
    guess === null
      ? ''
      : outcome.kind === 'open'
        ? ` You said ${guess}.`
        : guess === outcome.count
          ? ` You said ${guess}: right.`
          : ` You said ${guess}.`;
  const how = element('button', { class: 'link', type: 'button', onclick: () => explain(layout.dialog, session) }, 'Details');
  return element('dd', {}, element('span', { class: `mark ${outcome.kind}` }, mark), glue(`${text}${said} `), how);
}

/** What Python knows about the end of a recording. @param {{kind: string, mark: string, text: string}} ending */
function sayEnding({ kind, mark, text }) {
  return element('dd', {}, element('span', { class: `mark ${kind}` }, mark), glue(`${kind === 'open' ? ': ' : ' '}${text}`));
}

/** @param {PanelView} view */
function askGuess({ onGuess }) {
  const input = element('input', {
    type: 'number',
    min: 0,
    max: 2000,
    step: 1,
    required: true,
    'aria-label': 'How many limits will there be?',
  });
  const form = element(
    'form',
    { class: 'guess' },
    element('label', {}, 'How many limits will there be?'),
    input,
    element('button', { class: 'chip go' }, 'Show'),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (input.value !== '') onGuess(Math.max(0, Math.round(Number(input.value))));
  });
  return element('dd', {}, form);
}

/**
 * @param {HTMLDialogElement} dialog
 * @param {Session} session
 */
function explain(dialog, { outcome, recording }) {
  const { limit } = outcome,
    end = recording ? formatNumber(recording.times[recording.T - 1]) : '';
  const words = {
    certified:
      'Certified: attnlab integrated this run, with bounds on every error, until no token can change its leader any more. '
      + 'The limits follow from that. attnlab repeats the computation with two perturbed replicas. '
      + 'The limits hold only for this start and this V. If you move a token, the certificate no longer applies.',
    estimated:
      recording?.estimate?.isStill
        ? 'V = 0: the equation says that no token moves.'
        : `Estimated: at t = ${end} this page compares the leader of every token with all other tokens, for all later times. `
      + 'No other token can take its place. '
      + 'The test is right in exact arithmetic, but the page has no bounds on its rounding errors. '
      + 'Copy the run as Python: al.limit decides it.',
    open:
      'Open: this page does not know where these tokens end. Copy the run as Python: al.limit may decide it. '
      + 'A run that looks settled may still change: '
      + 'groups can merge, and leaders can change, long after the clock of this run ends.',
  };
  openDialog(
    dialog,
    outcome.kind === 'open'
      ? 'Open'
      : recording?.estimate?.isStill
        ? 'Nothing moves'
        : `${countOf(outcome.count, outcome.isPlaces ? 'point' : 'limit')}, ${outcome.kind}`,
    element('p', {}, glue(words[outcome.kind])),
    ...(outcome.why ? [element('p', {}, glue(outcome.why))] : []),
    ...(limit?.certificate ? [element('pre', { tabindex: 0 }, limit.certificate)] : []),
  );
}
