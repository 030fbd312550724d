// The switches for the parts of the stage. They are also the legend.

import { element, glyph } from './dom.js';

/** @type {{name: string, glyph: string, title: string}[]} */
const SHOWS = [
  { name: 'drag', glyph: 'drag', title: 'Move the start of a token: the whole run follows' },
  { name: 'trails', glyph: 'trails', title: 'The past of each token' },
  { name: 'threads', glyph: 'threads', title: 'A line from every token to the one that it attends to most' },
  { name: 'hull', glyph: 'hull', title: 'The convex hull of the tokens, which can only shrink' },
  { name: 'limits', glyph: 'limits', title: 'Where tokens end at t = ∞' },
  { name: 'shapes', glyph: 'ring', title: 'A different shape for every group, for readers who do not see colours' },
];

/**
 * @param {(name: string) => void} onShow
 * @param {Set<string>} locks
 */
export function createSwitches(onShow, locks) {
  const isFixed = ['drag', 'start', 'controls'].some((name) => locks.has(name));
  const chips = SHOWS.map(({ name, glyph: picture, title }) =>
    element(
      'button',
      {
        class: 'chip',
        type: 'button',
        'data-show': name,
        title,
        disabled: name === 'drag' && isFixed,
        onclick: () => onShow(name),
      },
      glyph(picture),
      name,
    ),
  );
  return {
    node: element('div', { class: 'chips', role: 'group', 'aria-label': 'Show' }, ...chips),
    /**
     * @param {Set<string>} show
     * @param {Set<string>} offered     what can be shown in this picture
     */
    draw(show, offered) {
      for (const chip of chips) {
        const name = chip.dataset.show ?? '';
        chip.setAttribute('aria-pressed', String(show.has(name)));
        chip.hidden = !offered.has(name);
      }
    },
  };
}
