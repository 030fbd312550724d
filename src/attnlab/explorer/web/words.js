// The words of the screen: heading, theory, verdict, equation, and the words for screen readers. All are text or elements.

import { countOf, element, formatNumber, toSubscript } from './dom.js';
import { gatherEigenvalues } from './eigenvalues.js';
import { letterOf } from './limits.js';

/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').Recording} Recording */
/** @typedef {import('./outcome.js').Outcome} Outcome */
/** @typedef {import('./theory.js').Theory} Theory */

/** Keep "t = 2" on one line. @param {string} text */
export function glue(text) {
  return text.replace(/(\S) = (\S)/g, '$1\u00a0=\u00a0$2');
}

/**
 * The heading of a run that is not a preset: its expected shape, by the theory of its spectrum.
 * @param {Theory} theory
 * @param {Recording} recording
 */
export function nameShape(theory, { d, geometry }) {
  if (geometry === 'sphere') return d === 2 ? 'On the circle' : 'On the sphere';
  return (
    {
      ends: 'Two ends',
      polytope: d === 2 ? 'Polygon' : 'Polytope',
      hyperplanes: d === 2 ? 'Parallel lines' : 'Hyperplanes',
      columns: d === 2 ? 'Parallel lines' : 'Polygon × line',
      origin: 'Collapse',
      point: 'One point',
      still: 'Nothing moves',
      none: 'No theorem here',
    }[theory.shape] ?? 'Your own run'
  );
}

/** @param {any} value */
function formatEigenvalue(value) {
  return Array.isArray(value) ? `${formatNumber(value[0])} ± ${formatNumber(Math.abs(value[1]))}i` : formatNumber(value, 3);
}

/** The equation of a Spec with its defaults. @param {Spec} spec @returns {import('./types.js').Table} */
function equationOf({ dynamics }) {
  return { kernel: 'softmax', mask: 'full', geometry: 'euclidean', beta: 1, ...dynamics };
}

/**
 * What a reader changed, in short phrases.
 * @param {Spec} spec
 * @param {Spec} before
 * @returns {string[]}
 */
export function listChanges(spec, before) {
  const /** @type {string[]} */ changes = [],
    [now, old] = [spec, before].map(equationOf);
  const values = spec.weights.eigenvalues,
    first = before.weights.eigenvalues;
  if (JSON.stringify(spec.weights) !== JSON.stringify(before.weights)) {
    changes.push(
      Array.isArray(values) && Array.isArray(first) && values.length === first.length
        ? values
            .flatMap((value, k) =>
              String(value) === String(first[k]) ? [] : [`λ${toSubscript(k + 1)} = ${formatEigenvalue(value)}`],
            )
            .join(', ')
        : Array.isArray(values)
          ? `eigenvalues ${values.map(formatEigenvalue).join(', ')}`
          : 'another V',
    );
  }
  if (now.beta !== old.beta) changes.push(`β = ${formatNumber(now.beta, 3)}`);
  if (spec.start.n !== before.start.n) changes.push(`n = ${spec.start.n}`);
  if (spec.start.law !== before.start.law) changes.push('another start law');
  else if (spec.start.rng !== before.start.rng) changes.push(`start ${spec.start.rng ?? 0}`);
  const moved = Object.keys(spec.start.moved ?? {});
  if (moved.length) changes.push(moved.length === 1 ? `token ${moved[0]} moved` : `${moved.length} tokens moved`);
  for (const key of ['kernel', 'mask', 'geometry']) if (now[key] !== old[key]) changes.push(`${key} ${now[key]}`);
  if (spec.solve.t_end !== before.solve.t_end) changes.push(`until t = ${formatNumber(spec.solve.t_end)}`);
  return changes.filter(Boolean);
}

/**
 * What is known at t = infinity: a few words in bold, and a sentence that explains them.
 * @param {Outcome} outcome
 * @param {Recording} recording
 * @returns {{mark: string, text: string}}
 */
export function describeOutcome(outcome, recording) {
  const { limit, count } = outcome,
    noun = outcome.isPlaces ? 'point' : 'limit';
  if (outcome.kind === 'certified' && limit) {
    const last = limit.lastEvent ? `, the last at t = ${formatNumber(limit.lastEvent, 1)}` : '';
    const isFrozen = limit.grade === 'exact' && !outcome.isPlaces; // tokens still move towards their limits
    const since = limit.t > 0 ? ` ${isFrozen ? 'No leader changes after' : 'Decided at'} t = ${formatNumber(limit.t)}` : '';
    const after = limit.events ? `. Before that there were ${countOf(limit.events, 'change')} of leader${last}` : '';
    return {
      mark: `${countOf(count, noun)}, certified`,
      text: glue(`: attnlab computed it with error bounds.${since ? `${since}${after}.` : ''}`),
    };
  }
  if (recording.estimate?.isStill && outcome.kind === 'estimated') {
    return { mark: countOf(count, noun), text: glue(': V = 0, so every token stays where it starts.') };
  }
  if (outcome.kind === 'estimated') {
    return {
      mark: `${countOf(count, noun)}, estimated`,
      text: ': a test in this page says that no leader can change any more. It has no error bounds and is not a proof.',
    };
  }
  if (!recording.complete) return { mark: '', text: 'The run is still being computed.' };
  const end = recording.times[recording.T - 1];
  return {
    mark: 'Open',
    text: glue(
      `: ${outcome.why || 'nothing is known.'} The run ends at t = ${formatNumber(end)} in ${countOf(recording.count, 'group')}.`
        + (recording.status === 'OK' ? '' : ` ${recording.sentence}`),
    ),
  };
}

/**
 * The sentence on the stage if no tokens can be shown, or if they are unreliable; else empty.
 * @param {Recording} recording
 * @param {Outcome} outcome
 * @param {'run' | 'gap' | 'infinity'} moment
 * @param {number} t
 */
export function describeMoment(recording, outcome, moment, t) {
  const end = recording.times[recording.T - 1],
    hasEnded = recording.complete && recording.status !== 'OK';
  if (moment === 'infinity' && outcome.kind === 'open') {
    return glue(`This page does not know where the tokens are at t = ∞. ${outcome.why}`.trim());
  }
  if (moment === 'gap')
    return glue(
      hasEnded ? recording.sentence : `The run ends at t = ${formatNumber(end)}. Nothing is computed between there and ∞.`,
    );
  if (moment === 'run' && hasEnded && t >= end * 0.999) return recording.sentence;
  if (moment === 'run' && t > recording.trusted * 1.0001) {
    return glue(`Do not trust double precision after t = ${formatNumber(recording.trusted, 1)}: rounding decides the leaders.`);
  }
  return '';
}

/**
 * The line under the time: how many groups, leaders, and tokens that a row attends to. Before groups form, their number is
 * left out.
 * @param {Recording} recording
 * @param {{groups: number, leaders: number, listened: number}} numbers
 */
export function describeNow({ n, geometry }, { groups, leaders, listened }) {
  const attends =
    listened >= 1
      ? `a row attends to ${formatNumber(listened, listened < 10 ? 1 : 0)} ${listened < 1.05 ? 'token' : 'tokens'}`
      : '';
  const leads = geometry === 'sphere' || !leaders ? '' : countOf(leaders, 'leader');
  const parts = groups <= 0.7 * n ? [countOf(groups, 'group'), leads || attends] : [leads, attends];
  return parts.filter(Boolean).join(', ');
}

/** @param {number} t */
export function formatTime(t) {
  return t === Infinity ? '∞' : t < 10 ? t.toFixed(2) : t.toFixed(1);
}

/** How many layers are done, with a fraction between two of them. @param {number} t */
export function formatLayer(t) {
  return Math.abs(t - Math.round(t)) < 0.005 ? String(Math.round(t)) : t.toFixed(1);
}

/**
 * "token 17 attends to token 4 (98 %)".
 * @param {Recording} recording
 * @param {number} token
 * @param {ArrayLike<number>} row
 */
export function describeRow(recording, token, row) {
  let most = 0;
  for (let j = 0; j < row.length; j++) if (row[j] > row[most]) most = j;
  /** @param {number} i */
  const name = (i) => (recording.words ? `“${recording.words[i].trim()}”` : `token ${i}`);
  return `${name(token)} attends to ${most === token ? 'itself' : name(most)} (${formatShare(row[most])})`;
}

/** @param {number} share */
function formatShare(share) {
  const percent = 100 * share;
  return `${percent > 99.5 && percent < 100 ? '> 99' : percent < 1 ? '< 1' : String(Math.round(percent))} %`;
}

/**
 * The same for a recording, which has only the largest entry of a row: "“river” attends most to “bank” (43 %)".
 * @param {Recording} recording
 * @param {number} token
 * @param {number} leader             -1: not known
 * @param {number | undefined} share  of its attention
 */
export function describeLeader({ words }, token, leader, share) {
  /** @param {number} i */
  const name = (i) => (words ? `“${words[i].trim()}”` : `token ${i}`);
  if (leader < 0) return name(token);
  const text = `${name(token)} attends most to ${leader === token ? 'itself' : name(leader)}`;
  return share === undefined ? text : `${text} (${formatShare(share)})`;
}

/**
 * The words for a screen reader about a token: what it attends to, and its group.
 * @param {string} text
 * @param {number} colour    of its group; -1 is not known
 */
export function speakToken(text, colour) {
  return colour < 0 ? text : `${text}, group ${letterOf(colour)}`;
}

/** @param {...(Node | string)} children */
const sub = (...children) => element('sub', {}, ...children);
/** @param {string} text */
const upright = (text) => element('span', { class: 'rm' }, text);

/**
 * The equation as elements.
 * @param {Spec} spec
 * @param {import('./types.js').ResolvedMatrices | null} weights
 * @param {{heads?: number, equation?: string}} [about]   what a recording says about itself
 * @returns {(Node | string)[]}
 */
export function writeEquation(spec, weights, { heads: known = 1, equation } = {}) {
  if (equation !== undefined) return [equation];
  const { kernel = 'softmax', mask = 'full', geometry = 'euclidean', feedforward } = spec.dynamics ?? {};
  const heads = weights ? weights.heads.length : known,
    h = () => (heads > 1 ? sub('h') : ''); // a node can be in one place only
  const isPlain =
    weights !== null && weights.heads.every(({ M }) => M.every((row, i) => row.every((value, j) => value === Number(i === j))));
  const scores = isPlain ? ['⟨x', sub('i'), ', x', sub('j'), '⟩'] : ['⟨Q', h(), 'x', sub('i'), ', K', h(), 'x', sub('j'), '⟩'];
  const range = mask === 'causal' ? sub('j ≤ i') : sub('j');
  const left = [
    'ẋ',
    sub('i'),
    ' = ',
    ...(geometry === 'sphere' ? [upright('P'), sub('x', sub('i')), ' '] : []),
    ...(heads > 1 ? ['∑', sub('h'), ' '] : []),
  ];
  const tail = [' V', h(), '\u00a0x', sub('j'), feedforward ? ' + …' : ''];
  if (kernel === 'exp_mean')
    return [
      ...left,
      element('span', {}, '1/', mask === 'causal' ? 'i' : 'n'),
      ' ∑',
      range,
      ' ',
      upright('exp'),
      '(β',
      ...scores,
      ')',
      ...tail,
    ];
  if (kernel === 'hardmax') return [...left, upright('mean'), sub('j ∈ ', upright('argmax'), ' ', ...scores), ...tail];
  return [...left, '∑', range, ' ', upright('softmax'), sub('j'), '(β', ...scores, ')', ...tail];
}

/**
 * The line under the equation: V, beta, n.
 * @param {Spec} spec
 * @param {Recording} recording
 * @param {import('./eigenvalues.js').Eigenvalue[]} values
 * @param {number} heads
 */
export function writeNumbers(spec, recording, values, heads) {
  if (recording.numbers !== undefined) return glue(recording.numbers);
  const isDiagonal = recording.basis.every((row, i) => row.every((value, k) => value === Number(i === k)));
  const list = values.map(formatEigenvalue).join(', '),
    beta = spec.dynamics?.beta ?? 1,
    name = heads > 1 ? '∑ V' : 'V';
  const V = !values.length
    ? ''
    : isDiagonal && values.every((value) => !Array.isArray(value))
      ? `${name} = diag(${list})`
      : `${name}: eigenvalues ${list}`;
  const where =
    recording.geometry === 'sphere' ? (recording.d === 2 ? 'on the circle' : recording.d === 3 ? 'on the sphere' : '') : '';
  return glue(
    [V, spec.dynamics?.kernel === 'hardmax' ? '' : `β = ${formatNumber(beta, 3)}`, `n = ${recording.n}`, where]
      .filter(Boolean)
      .join(',\u2002'),
  );
}

/**
 * A spectrum in words, for the live region.
 * @param {import('./eigenvalues.js').Eigenvalue[]} values
 */
export function speakSpectrum(values) {
  return `eigenvalues ${gatherEigenvalues(values)
    .map(({ re, im, count }) => formatEigenvalue(im ? [re, im] : re) + (count > 1 ? ` ${count} times` : ''))
    .join(', ')}`;
}
