// The groups as a table, for screen readers and all other readers; and the dialog for it.

import { element, fill, formatNumber, glyph } from './dom.js';
import { letterOf } from './limits.js';
import { describeMark } from './theme.js';

/**
 * Open a dialog. Escape, its button or a click outside closes it.
 * @param {HTMLDialogElement} dialog
 * @param {string} title
 * @param {...(Node | string)} children
 */
export function openDialog(dialog, title, ...children) {
  const close = element(
    'button',
    { class: 'chip close', type: 'button', 'aria-label': 'Close', onclick: () => dialog.close() },
    glyph('close'),
  );
  fill(dialog, element('h2', {}, title, close), ...children);
  dialog.setAttribute('aria-label', title);
  dialog.onclick = (event) => {
    if (event.target === dialog) dialog.close();
  };
  dialog.showModal();
}

/**
 * One row per group: its mark, its tokens, its leader, its limit.
 * @param {import('./types.js').Recording} recording
 * @param {import('./outcome.js').Outcome} outcome
 * @param {Int32Array} colours
 * @param {boolean} isDistinct     shapes differ between neighbouring groups
 */
export function makeTable(recording, outcome, colours, isDistinct) {
  const /** @type {Map<number, number[]>} */ groups = new Map();
  colours.forEach((colour, i) => groups.set(colour, [...(groups.get(colour) ?? []), i]));
  const isKnown = outcome.kind !== 'open',
    { words } = recording;
  /** @param {number} i */
  const name = (i) => (words ? words[i].trim() : String(i));
  const rows = [...groups]
    .sort(([a], [b]) => a - b)
    .map(([colour, tokens]) => {
      const leaders = [...new Set(isKnown ? tokens.map((i) => outcome.leaders[i] ?? -1) : [])].filter((leader) => leader >= 0);
      const point = isKnown ? outcome.points[outcome.labels[tokens[0]]] : null;
      return element(
        'tr',
        {},
        element('th', { scope: 'row' }, letterOf(colour)),
        element('td', {}, describeMark(colour, isDistinct)),
        element('td', { class: 'number' }, tokens.length),
        element('td', {}, leaders.length ? leaders.map(name).join(', ') : '–'),
        element('td', { class: 'limit' }, point ? `(${point.map((value) => formatNumber(value, 3)).join(', ')})` : '–'),
        element('td', { class: 'tokens' }, tokens.map(name).join(', ')),
      );
    });
  const what =
    outcome.kind === 'certified'
      ? 'certified limits'
      : outcome.kind === 'estimated'
        ? 'estimated limits'
        : 'groups at the end of the run';
  return element(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Table of groups' },
    element(
      'table',
      {},
      element('caption', {}, `One row per group: ${what}. Coordinates are those of the Spec.`),
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          ...['group', 'mark', 'tokens', 'leader', outcome.isPlaces ? 'place' : 'limit', 'members'].map((word) =>
            element('th', { scope: 'col' }, word),
          ),
        ),
      ),
      element('tbody', {}, ...rows),
    ),
  );
}
