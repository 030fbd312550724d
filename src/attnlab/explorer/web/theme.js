// Colours, shapes and fonts. The palette is that of attnlab's figures (Okabe and Ito), brighter on a dark ground.

/**
 * @typedef {object} Theme
 * @property {'light' | 'dark'} name
 * @property {string[]} groups     colours of the first groups; the next ones repeat them with another shape
 * @property {string} ink
 * @property {string} note         text of less weight; 4.5 : 1 on the panel
 * @property {string} grid
 * @property {string} rule
 * @property {string} accent
 * @property {string} warm
 * @property {string} good
 * @property {string} bad
 * @property {string} panel
 * @property {[string, string]} ground   centre and edge of the stage
 * @property {number} trail        opacity
 * @property {number} thread       opacity
 * @property {string} edge         of the hull
 * @property {string} face         of the hull
 * @property {[string, string]} ball
 * @property {string} grow         tint of the growing half of the spectrum
 * @property {string} neutral      tokens whose end must not be shown yet
 * @property {boolean} glow
 */

export const SANS = 'Inter, system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif';
export const SERIF = '"STIX Two Text", "Cambria Math", Cambria, Georgia, "DejaVu Serif", serif';

/** Shapes of groups: the first six are discs, the next six squares, ...; if the reader wants shapes, one per group. */
export const SHAPES = ['disc', 'square', 'triangle', 'diamond', 'cross', 'hexagon'];

/** @type {{light: Theme, dark: Theme}} */
export const THEMES = {
  light: {
    name: 'light',
    groups: ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9'],
    ink: '#18202b',
    note: '#56616f',
    grid: '#dbe1e9',
    rule: '#c5cdd8',
    accent: '#0072b2',
    warm: '#b34a00',
    good: '#00704f',
    bad: '#a83f00',
    panel: '#ffffff',
    ground: ['#ffffff', '#f7f9fc'],
    trail: 0.72,
    thread: 0.36,
    edge: '#465873',
    face: '#5b7391',
    ball: ['#ffffff', '#e9eef5'],
    grow: 'rgba(0, 114, 178, 0.055)',
    neutral: '#5d6b7e',
    glow: false,
  },
  dark: {
    name: 'dark',
    groups: ['#3a94ea', '#ff7f3f', '#36d6a4', '#e792c5', '#f7b733', '#a3dcff'],
    ink: '#e9eef6',
    note: '#97a5b9',
    grid: '#212b3a',
    rule: '#2f3b4e',
    accent: '#5cb8ff',
    warm: '#ffb454',
    good: '#3ecf9b',
    bad: '#ff9a66',
    panel: '#0e131c',
    ground: ['#121926', '#0b1018'],
    trail: 0.95,
    thread: 0.4,
    edge: '#96b2d7',
    face: '#a9c6ee',
    ball: ['#1c2738', '#0c111a'],
    grow: 'rgba(92, 184, 255, 0.07)',
    neutral: '#9fb0c8',
    glow: true,
  },
};

/** Names of the colours, for readers who do not see them. */
export const COLOUR_NAMES = ['blue', 'orange', 'green', 'pink', 'yellow', 'light blue'];

/**
 * @param {Theme} theme
 * @param {number} group   0 is the largest; negative: not to be shown
 */
export function colourOf(theme, group) {
  return group < 0 ? theme.neutral : theme.groups[group % theme.groups.length];
}

/**
 * @param {number} group
 * @param {boolean} isDistinct   neighbouring groups have different shapes: for readers who do not see colours
 */
export function shapeOf(group, isDistinct) {
  if (group < 0) return 0;
  const round = Math.floor(group / COLOUR_NAMES.length);
  return (isDistinct ? group + round : round) % SHAPES.length;
}

/**
 * The colour and shape of a group in words: "orange square".
 * @param {number} group
 * @param {boolean} isDistinct
 */
export function describeMark(group, isDistinct) {
  return `${COLOUR_NAMES[group % COLOUR_NAMES.length]} ${SHAPES[shapeOf(group, isDistinct)]}`;
}

/** Magma, from its light end: the colours of attention in attnlab's figures. */
const MAGMA = [
  [252, 253, 191],
  [254, 187, 129],
  [248, 118, 92],
  [211, 67, 110],
  [150, 44, 128],
  [91, 22, 126],
  [29, 17, 71],
  [0, 0, 4],
];

/**
 * The colours of attention from 0 to 1. No attention is the ground itself.
 * @param {Theme} theme
 * @returns {number[][]}
 */
export function attentionStops(theme) {
  return theme.name === 'dark' ? [[14, 19, 28], ...MAGMA.slice(0, -1).reverse()] : [[255, 255, 255], ...MAGMA];
}

/**
 * @param {number[][]} stops
 * @param {number} value     0 to 1
 * @returns {[number, number, number]}
 */
export function mixStops(stops, value) {
  const place = Math.min(1, Math.max(0, value)) * (stops.length - 1);
  const below = Math.min(stops.length - 2, Math.floor(place)),
    part = place - below;
  const [a, b] = [stops[below], stops[below + 1]];
  return [a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1]), a[2] + part * (b[2] - a[2])];
}

/**
 * The theme that a word means.
 * @param {'auto' | 'light' | 'dark'} word
 * @returns {Theme}
 */
export function themeOf(word) {
  if (word === 'light' || word === 'dark') return THEMES[word];
  return matchMedia('(prefers-color-scheme: dark)').matches ? THEMES.dark : THEMES.light;
}
