// The controls: number of tokens, sharpness, length, start, kernel, mask, geometry, frame.

import { element, fill, formatNumber, glyph } from './dom.js';

/** @typedef {import('./types.js').Spec} Spec */

/**
 * @typedef {object} ControlsView
 * @property {Spec} spec
 * @property {number} d
 * @property {number} n                   tokens of the run; the Spec need not name it
 * @property {number} fastest             the largest growth of V, which decides the longest useful time
 * @property {'limit' | 'z' | 'x'} frame
 */

/** Names under which a control may be locked, besides its own: keys of the Spec. @type {{[name: string]: string}} */
const LOCK_NAMES = { eigenvalues: 'spectrum', weights: 'spectrum', seed: 'rng', moved: 'drag' };

/**
 * The controls that are locked, by their own names: "dynamics.beta" is "beta".
 * @param {string[]} lock
 */
export function readLocks(lock) {
  return new Set(lock.map((name) => name.split('.').pop() ?? '').map((name) => LOCK_NAMES[name] ?? name));
}

/**
 * Sliders: the place on the slider runs from 0 to 1.
 * @type {{key: string, label: string, low: number, high: (view: ControlsView) => number, most: number, isLog: boolean,
 *   digits: number,
 *   get: (view: ControlsView) => number, set: (spec: Spec, value: number) => void}[]}
 */
const SLIDERS = [
  {
    key: 'n',
    label: 'tokens n',
    low: 2,
    high: () => 300,
    most: 2000,
    isLog: true,
    digits: 0,
    get: ({ spec, n }) => spec.start.n ?? n,
    set: (spec, value) => {
      spec.start.n = value;
    },
  },
  {
    key: 'beta',
    label: 'sharpness β',
    low: 0.1,
    high: () => 100,
    most: 1e4,
    isLog: true,
    digits: 2,
    get: ({ spec }) => spec.dynamics?.beta ?? 1,
    set: (spec, value) => {
      spec.dynamics = { ...spec.dynamics, beta: value };
    },
  },
  {
    key: 't_end',
    label: 'until t',
    low: 1,
    most: 1e4,
    isLog: false,
    digits: 1,
    high: ({ fastest, spec }) => Math.max(fastest > 0 ? Math.ceil(28 / fastest) : 200, spec.solve.t_end ?? 1),
    get: ({ spec }) => spec.solve.t_end ?? 1,
    set: (spec, value) => {
      spec.solve.t_end = value;
    },
  },
];

/** Start laws with the parameters that a picture needs. @type {{[law: string]: (isSphere: boolean) => {[key: string]: any}}} */
const LAWS = {
  uniform_cube: () => ({ low: -5, high: 5 }),
  normal: () => ({ scale: 2.5 }),
  sphere: (isSphere) => (isSphere ? {} : { radius: 4 }),
  circle: (isSphere) => (isSphere ? {} : { radius: 4 }),
  planted: () => ({ clusters: 4, spread: 0.4, separation: 4 }),
};
const LAW_WORDS = /** @type {{[law: string]: string}} */ ({
  uniform_cube: 'uniform in a cube',
  normal: 'normal',
  sphere: 'on a sphere',
  circle: 'on a circle',
  planted: 'planted groups',
  given: 'given',
});

/** Choices: what a value is called. @type {{key: string, options: {[value: string]: string}}[]} */
const CHOICES = [
  { key: 'kernel', options: { softmax: 'softmax', hardmax: 'hardmax', exp_mean: 'exp, mean' } },
  { key: 'mask', options: { full: 'full', causal: 'causal' } },
  { key: 'geometry', options: { euclidean: 'space', sphere: 'sphere' } },
  { key: 'frame', options: { limit: 'limit', z: 'z', x: 'x' } },
];

/**
 * @param {object} events
 * @param {(change: (spec: Spec) => void, isDone: boolean, isNewStart: boolean) => void} events.onSpec
 * @param {(frame: 'limit' | 'z' | 'x') => void} events.onFrame
 * @param {Set<string>} locks
 */
export function createControls({ onSpec, onFrame }, locks) {
  const isLocked = (/** @type {string} */ name) => locks.has(name) || locks.has('controls');
  let /** @type {ControlsView | null} */ shown = null;
  const sliders = SLIDERS.map((slider) => {
    const range = element('input', {
      type: 'range',
      min: 0,
      max: 1,
      step: 0.001,
      'aria-label': slider.label,
      disabled: isLocked(slider.key),
    });
    const number = element('input', {
      type: 'number',
      min: slider.low,
      max: slider.most,
      step: 'any',
      'aria-label': `${slider.label}, as a number`,
      disabled: isLocked(slider.key),
    });
    const valueOf = () => {
      const high = shown ? slider.high(shown) : 1,
        place = Number(range.value);
      const value = slider.isLog ? slider.low * (high / slider.low) ** place : slider.low + place * (high - slider.low);
      return slider.digits ? Number(value.toPrecision(2)) : Math.round(value);
    };
    const set = (/** @type {number} */ value, /** @type {boolean} */ isDone) =>
      onSpec((spec) => slider.set(spec, value), isDone, slider.key === 'n');
    range.addEventListener('input', () => {
      number.value = String(valueOf());
      set(valueOf(), false);
    });
    range.addEventListener('change', () => set(valueOf(), true));
    range.addEventListener('keydown', (event) => stepSlider(event, range, slider, set, () => shown));
    number.addEventListener('change', () => {
      const value = Math.min(slider.most, Math.max(slider.low, Number(number.value) || slider.low));
      set(slider.digits ? value : Math.round(value), true);
    });
    return {
      slider,
      range,
      number,
      label: element('span', { class: 'label' }, slider.label, isLocked(slider.key) && glyph('lock')),
    };
  });

  const law = element('select', { 'aria-label': 'Start law', disabled: isLocked('law') || isLocked('start') });
  law.addEventListener('change', () => onSpec((spec) => setLaw(spec, law.value, shown?.d ?? 2), true, true));
  const seed = element('input', {
    type: 'number',
    min: 0,
    step: 1,
    'aria-label': 'Seed of the start',
    disabled: isLocked('rng') || isLocked('start'),
  });
  seed.addEventListener('change', () =>
    onSpec(
      (spec) => {
        spec.start.rng = Math.max(0, Math.floor(Number(seed.value) || 0));
      },
      true,
      true,
    ),
  );
  const again = element(
    'button',
    {
      class: 'chip again',
      type: 'button',
      'aria-label': 'Next start',
      title: 'Next start (R)',
      disabled: isLocked('rng') || isLocked('start'),
      onclick: () =>
        onSpec(
          (spec) => {
            spec.start.rng = (spec.start.rng ?? 0) + 1;
          },
          true,
          true,
        ),
    },
    glyph('again'),
  );

  const choices = CHOICES.map(({ key, options }) => {
    const select = element(
      'select',
      { 'aria-label': key, disabled: isLocked(key) },
      ...Object.entries(options).map(([value, text]) => element('option', { value }, text)),
    );
    select.addEventListener('change', () => {
      if (key === 'frame') onFrame(/** @type {'limit' | 'z' | 'x'} */ (select.value));
      else onSpec((spec) => setDynamics(spec, key, select.value, shown?.d ?? 2), true, key === 'geometry');
    });
    return {
      key,
      select,
      usual: Object.keys(options)[0],
      node: element('label', { class: 'choice' }, element('span', {}, key), select),
    };
  });

  const setup = element(
    'section',
    { class: 'card controls', 'aria-label': 'Set up' },
    element('div', { class: 'rows' }, ...sliders.flatMap(({ label, range, number }) => [label, range, number])),
    element('div', { class: 'start' }, element('span', { class: 'label' }, 'start'), law, seed, again),
    element('div', { class: 'choices' }, ...choices.map(({ node }) => node)),
  );
  return {
    setup,
    /** @param {ControlsView} view */
    draw(view) {
      shown = view;
      const { spec } = view,
        { activeElement } = /** @type {Document | ShadowRoot} */ (setup.getRootNode());
      for (const { slider, range, number } of sliders) {
        const value = slider.get(view),
          high = slider.high(view),
          inside = Math.min(high, Math.max(slider.low, value));
        const place = slider.isLog
          ? Math.log(inside / slider.low) / Math.log(high / slider.low)
          : (inside - slider.low) / (high - slider.low);
        if (activeElement !== range) range.value = String(place);
        if (activeElement !== number) number.value = String(Number(value.toFixed(slider.digits)));
        range.style.setProperty('--part', `${100 * Number(range.value)}%`);
        range.setAttribute('aria-valuetext', formatNumber(value, slider.digits));
        if (slider.key === 'n') range.disabled = number.disabled = isLocked('n') || spec.start.law === 'given';
      }
      const laws = spec.start.law === 'given' ? ['given'] : Object.keys(LAWS).filter((name) => name !== 'circle' || view.d === 2);
      if (law.options.length !== laws.length)
        fill(law, ...laws.map((name) => element('option', { value: name }, LAW_WORDS[name])));
      law.value = spec.start.law;
      if (activeElement !== seed) seed.value = String(spec.start.rng ?? 0);
      for (const { key, select, usual } of choices) {
        select.value = key === 'frame' ? view.frame : String(spec.dynamics?.[key] ?? usual);
        if (key === 'frame') select.disabled = isLocked('frame') || spec.dynamics?.geometry === 'sphere';
        if (key === 'geometry') select.disabled = isLocked('geometry') || view.d < 2 || spec.start.law === 'given';
      }
    },
  };
}

/**
 * Arrow keys on a slider change its value by one token, or by a tenth.
 * @param {KeyboardEvent} event
 * @param {HTMLInputElement} range
 * @param {typeof SLIDERS[number]} slider
 * @param {(value: number, isDone: boolean) => void} set
 * @param {() => ControlsView | null} viewOf
 */
function stepSlider(event, range, slider, set, viewOf) {
  const sign = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key],
    view = viewOf();
  if (!sign || !view) return;
  event.preventDefault();
  event.stopPropagation();
  const value = slider.get(view),
    step = slider.digits && slider.isLog ? Math.max(0.01, Number((value / 10).toPrecision(1))) : 1;
  range.blur();
  set(Math.min(slider.most, Math.max(slider.low, Number((value + sign * step).toPrecision(3)))), true);
  range.focus();
}

/** @param {Spec} spec @param {string} law @param {number} d */
function setLaw(spec, law, d) {
  const { n, rng } = spec.start,
    isSphere = spec.dynamics?.geometry === 'sphere';
  spec.start = { law, n, d, ...LAWS[law](isSphere), rng: rng ?? 0 };
}

/**
 * Change the equation. The sphere needs tokens of length 1 and more time.
 * @param {Spec} spec
 * @param {string} key
 * @param {string} value
 * @param {number} d
 */
function setDynamics(spec, key, value, d) {
  spec.dynamics = { ...spec.dynamics, [key]: value };
  if (key !== 'geometry') return;
  setLaw(spec, value === 'sphere' ? (d === 2 ? 'circle' : 'sphere') : 'uniform_cube', d);
  spec.solve.t_end = value === 'sphere' ? 40 : 12;
}
