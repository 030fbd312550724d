// The parts of the screen as elements, in the order of the tab key. Other modules decide what they show.

import { element, glyph } from './dom.js';

/** Names that `hide` understands, and the parts that they hide. */
export const PANELS = [
  'presets',
  'verdict',
  'spectrum',
  'attention',
  'controls',
  'sweep',
  'footer',
  'legend',
  'equation',
  'theme',
];

/** Tabs of a narrow screen: [word, the classes of the cards that it shows]. */
const TABS = /** @type {const} */ ([
  ['Watch', 'watch'],
  ['V and attention', 'matrices'],
  ['Set up', 'controls'],
  ['Sweep', 'sweep'],
]);

/** Copies in the footer: [word, name, title]. */
const COPIES = /** @type {const} */ ([
  ['Copy link', 'link', 'Copy an address that contains everything you see'],
  ['Python', 'python', 'Copy Python code that computes this run'],
  ['TOML', 'toml', 'Copy this run as a file for attnlab'],
  ['PNG', 'png', 'Save the picture, twice its size on the screen'],
  ['SVG', 'svg', 'Save the picture as vectors'],
  ['Film', 'film', 'Play from the start and save a film'],
  ['Data', 'data', 'Show the groups as a table'],
]);

/**
 * @param {object} parts
 * @param {HTMLElement} parts.clock
 * @param {HTMLElement} parts.plane
 * @param {HTMLElement} parts.heat
 * @param {HTMLElement} parts.setup
 * @param {HTMLElement} parts.chips
 * @param {HTMLElement} parts.sweep
 * @param {string[]} hide
 */
export function createLayout(parts, hide) {
  const scene = element('canvas', {
    class: 'scene',
    tabindex: 0,
    role: 'application',
    'aria-roledescription': 'picture of tokens',
    'aria-label':
      'Tokens. Enter, then tab goes through them; escape leaves. Shift and arrow keys turn the picture, plus and minus zoom.',
  });
  const equation = element('div', { class: 'equation', 'aria-hidden': 'true' }),
    numbers = element('div', { class: 'numbers' });
  const letter = element('i', {}, 't'),
    time = element('span', {}),
    counts = element('div', { class: 'counts' });
  const veil = element('p', { class: 'veil', hidden: true }),
    tip = element('div', { class: 'tip', role: 'presentation', hidden: true });
  const hint = element('p', { class: 'hint', hidden: true });
  const play = element('button', { class: 'play', type: 'button', 'aria-label': 'Play' }, glyph('play'));
  const speed = element(
    'select',
    { class: 'speed', 'aria-label': 'Speed' },
    ...[0.25, 0.5, 1, 2, 4].map((factor) => element('option', { value: factor }, `${factor}×`)),
  );
  const leader = element('span', {}, glyph('ring'), 'leader');
  const key = element(
    'div',
    { class: 'key', 'aria-hidden': 'true' },
    leader,
    element('span', {}, element('i', {}), 'groups'),
    element('span', {}, element('i', { class: 'dashed' }), 'tokens a row attends to'),
  );
  const under = element('div', { class: 'under' }, parts.chips, key);
  const paint = element(
    'div',
    { class: 'paint' },
    scene,
    element('div', { class: 'title' }, equation, numbers),
    element('div', { class: 'now' }, element('b', {}, letter, time), counts),
    tip,
    element('div', { class: 'notes' }, hint, veil),
    under,
  );
  const transport = element('div', { class: 'transport' }, element('div', { class: 'playbox' }, play, speed), parts.clock);
  const stage = element('section', { class: 'stage', 'aria-label': 'Stage' }, paint, transport);

  const heading = element('h1', {}),
    watch = element('p', { class: 'sentence' }),
    verdict = element('dl', { class: 'verdict' });
  const watchCard = element('section', { class: 'card watch', 'aria-label': 'Verdict' }, heading, watch, verdict);
  const lead = element('small', {}),
    head = element('select', { class: 'head', 'aria-label': 'Head', hidden: true }),
    dragWord = element('small', {});
  const spectrumPart = element('div', { class: 'part spectrum-part' }, element('h2', {}, 'Spectrum of V', dragWord), parts.plane);
  const heatPart = element(
    'div',
    { class: 'part heat-part' },
    element('h2', {}, element('span', { class: 'row' }, 'Attention', head), lead),
    parts.heat,
  );
  const matrices = element('section', { class: 'card matrices', 'aria-label': 'V and attention' }, spectrumPart, heatPart);
  const aside = element('aside', { 'data-tab': 'watch' }, watchCard, matrices, parts.setup, parts.sweep);
  const tabs = element(
    'div',
    { class: 'tabs', role: 'group', 'aria-label': 'Panels' },
    ...TABS.map(([word, name]) =>
      element('button', { type: 'button', 'data-tab': name, 'aria-pressed': String(name === 'watch') }, word),
    ),
  );
  tabs.addEventListener('click', (event) => {
    const name = event.target instanceof HTMLElement ? event.target.dataset.tab : undefined;
    if (!name) return;
    aside.dataset.tab = name;
    for (const button of tabs.querySelectorAll('button'))
      button.setAttribute('aria-pressed', String(button.dataset.tab === name));
    aside.dispatchEvent(new Event('tab'));
  });

  const presets = element('nav', { class: 'presets', 'aria-label': 'Presets' });
  const theme = element(
    'button',
    { class: 'chip theme', type: 'button', 'aria-label': 'Light or dark', title: 'Light or dark (T)' },
    glyph('theme'),
  );
  const header = element(
    'header',
    {},
    element('div', { class: 'brand' }, 'attnlab', element('span', {}, ' explore')),
    presets,
    theme,
  );
  const notice = element('div', { class: 'notice', role: 'status', hidden: true });
  const copies = element(
    'div',
    { class: 'copies' },
    ...COPIES.map(([word, name, title]) => element('button', { class: 'chip', type: 'button', 'data-copy': name, title }, word)),
  );
  const statistics = element('span', { class: 'statistics' });
  const keysHelp = element('span', { class: 'keys' });
  const footer = element('footer', {}, copies, element('span', { class: 'grow' }), keysHelp, statistics);
  const live = element('div', { class: 'quiet', role: 'status', 'aria-live': 'polite' });
  const dialog = element('dialog', { class: 'dialog' });
  const main = element('main', {}, stage, tabs, aside);
  const root = element('div', { class: 'al' }, element('div', { class: 'frame' }, header, notice, main, footer), live, dialog);

  const hidden = /** @type {{[name: string]: HTMLElement[]}} */ ({
    presets: [presets],
    verdict: [watchCard],
    spectrum: [spectrumPart],
    attention: [heatPart],
    controls: [parts.setup],
    sweep: [parts.sweep],
    footer: [footer],
    legend: [parts.chips],
    equation: [equation, numbers],
    theme: [theme],
  });
  for (const name of hide) for (const node of hidden[name] ?? []) node.remove();
  if (hide.includes('presets') && hide.includes('theme')) header.remove();
  if (!spectrumPart.isConnected && !matrices.contains(spectrumPart) && !matrices.contains(heatPart)) matrices.remove();
  removeEmptyTabs(tabs, aside);
  root.classList.toggle('alone', aside.childElementCount === 0);
  return {
    root,
    scene,
    equation,
    numbers,
    letter,
    time,
    counts,
    veil,
    hint,
    tip,
    play,
    speed,
    paint,
    heading,
    watch,
    verdict,
    lead,
    head,
    dragWord,
    matrices,
    aside,
    presets,
    theme,
    notice,
    under,
    leader,
    copies,
    statistics,
    keysHelp,
    live,
    dialog,
    transport,
    heatPart,
    spectrumPart,
    watchCard,
    footer,
  };
}

/** @typedef {ReturnType<typeof createLayout>} Layout */

/**
 * A tab without its card is hidden too; the first remaining tab is open.
 * @param {HTMLElement} tabs
 * @param {HTMLElement} aside
 */
function removeEmptyTabs(tabs, aside) {
  for (const button of tabs.querySelectorAll('button')) if (!aside.querySelector(`.card.${button.dataset.tab}`)) button.remove();
  const first = tabs.querySelector('button');
  if (!first) tabs.remove();
  else {
    aside.dataset.tab = first.dataset.tab;
    first.setAttribute('aria-pressed', 'true');
  }
}
