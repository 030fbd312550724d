// How a run ended: the sentences of attnlab.types.Status, and one sentence of the page itself.

/** @type {{[status in import('./types.js').Status]: string}} */
export const SENTENCES = {
  OK: 'The run reached its end.',
  MAX_STEPS: 'The run used up max_steps before its end: raise max_steps, loosen rtol, or shorten t_end.',
  STALLED: 'The step size fell to rounding level: the flow blows up, or switches faster than double resolves. Shorten t_end.',
  NON_FINITE: 'A token left the range of double precision (overflow, underflow, NaN). Shorten t_end or scale the weights down.',
  PAST_DOUBLE_PRECISION: 'Double precision can no longer distinguish the tokens of one cluster, so its leader and the attention '
    + 'inside it are unknown from here on (usually at lambda_1 t of 28 to 36). The run ends before that.',
  INTERRUPTED: 'The run was interrupted; it ends at the last computed time.',
};

/**
 * The sentence for a recording that ended at t.
 * @param {import('./types.js').Status} status
 * @param {number} t
 * @returns {string}
 */
export function sentenceOf(status, t) {
  if (status !== 'MAX_STEPS') return SENTENCES[status];
  return `The page stopped at t = ${+t.toPrecision(3)}: its work for one run is used up. Choose fewer tokens, or use Python.`;
}
