// The result that applies to an equation, and what it says about t = infinity. The results are those of attnlab's `predict`,
// which decides them with margins. This table has the same hypotheses for matrices of at most three dimensions.

import {
  distanceToIdentity, identity, isPositiveDefinite, multiply, scale, sizeOf, subtract, trace, transpose,
} from './small_matrices.js';

/** @typedef {import('./types.js').Spec} Spec */
/** @typedef {import('./types.js').ResolvedMatrices} ResolvedMatrices */

/**
 * @typedef {object} Theory
 * @property {string} cite       the number of the result, such as "Theorem 3.1"; "open" if no result applies
 * @property {string} paper      its paper, such as "arXiv:2305.05465"; empty if no result applies
 * @property {string} theorem    its name in attnlab, such as "polytope"; empty if attnlab has none
 * @property {string} says       what it says, in one or two sentences
 * @property {number | null} most    the largest number of limits that the result allows, if it gives one
 * @property {boolean} isConjecture  whether the bound `most` is only conjectured
 * @property {boolean} isOpen    whether no theorem says where the tokens end
 * @property {Shape} shape       what the limits look like
 */

/** @typedef {'ends' | 'polytope' | 'hyperplanes' | 'columns' | 'origin' | 'point' | 'still' | 'none'} Shape */

/** An eigenvalue a + ib; of a pair both stand in a list. @typedef {{re: number, im: number, size: number}} Eigenvalue */

const EXACT = 1e-12;
const CLEAR = 1e-8;
const PAPER = 'arXiv:2305.05465';

const SAYS = {
  ends: 'Attention becomes Boolean, with rank at most 3: all tokens but at most one end up attending to the smallest or to the '
    + 'largest token. Almost every start has one or two limits.',
  polytope: 'The rescaled tokens go to finitely many points: the vertices of a convex polytope, and perhaps a few other points '
    + 'of its boundary or the origin.',
  origin: 'V is a negative multiple of the identity: every token tends to 0, and attention becomes uniform.',
  columns: 'Equal eigenvalues lead: in their directions the tokens go to the boundary of a polytope or to the origin. Nothing is '
    + 'said about the other directions.',
  generic: 'No theorem: QᵀK is not symmetric and positive definite. The conjecture for generic QᵀK: a polytope in the leading '
    + 'directions.',
  pair: 'A complex pair of eigenvalues leads: nothing is proved, and no clusters are expected.',
  turning: 'The eigenvalues of V of largest modulus are a complex pair, which does not grow fastest: nothing is proved.',
  several: 'Several different eigenvalues of V have the largest modulus: no theorem says where the tokens end.',
  negative: 'A negative eigenvalue of V leads: nothing is proved.',
  uniform: 'β = 0: every token attends to all tokens equally. No theorem of the paper is about this case.',
  defective: 'The leading eigenvalue of V lacks eigenvectors: no theorem says where the tokens end.',
  scores: 'Scores do not grow along the leading direction (⟨Qφ₁, Kφ₁⟩ is not positive): nothing is proved.',
  feedforward: 'A feed-forward part: no theorem says where the tokens end.',
  exp_mean: 'Attention without normalisation: no theorem, and tokens may reach infinity in finite time.',
  hardmax: 'Hardmax attention: no theorem of the paper says where the tokens end.',
  causal: 'A causal mask: no theorem says where the tokens end. The first token moves alone.',
  layers: 'Layers instead of continuous time: the theorems about t = ∞ are about the flow.',
};

/**
 * What is proved about an equation.
 * @param {Spec} spec
 * @param {ResolvedMatrices} weights
 * @returns {Theory}
 */
export function predict(spec, weights) {
  const dynamics = { beta: 1, geometry: 'euclidean', kernel: 'softmax', mask: 'full', ...spec.dynamics };
  if (weights.heads.every((head) => sizeOf(head.V) === 0)) return nothing('V = 0: nothing moves.', 'still');
  if (dynamics.geometry === 'sphere') return predictSphere(dynamics, weights, spec);
  const outside = reasonOutside(dynamics, weights, spec);
  return outside ? predictBounds(dynamics.kernel, weights, outside, spec) : predictPaper(dynamics.beta, weights, spec);
}

/**
 * The setting of the paper: softmax attention in R^d, one head, no mask, continuous time.
 * @param {number} beta
 * @param {ResolvedMatrices} weights
 * @param {Spec} spec
 * @returns {Theory}
 */
function predictPaper(beta, weights, spec) {
  const { d } = weights, { V, M } = weights.heads[0], values = eigenvaluesOf(weights), first = values[0];
  const isScalar = distanceToIdentity(V) <= EXACT, c = trace(V) / d, isDefinite = isPositiveDefinite(M, beta);
  if (d === 1 && c > 0 && beta * M[0][0] > 0) {
    return result('Theorem 2.1', 'low_rank_boolean', 'ends', SAYS.ends, 3);
  }
  if (isScalar && c > 0 && isDefinite) {
    return result('Theorem 3.1', 'polytope', 'polytope', SAYS.polytope, null);
  }
  if (isScalar && c < 0 && isDefinite) {
    return result('Section 8', 'collapse_to_origin', 'origin', SAYS.origin, 1);
  }
  const m = values.filter((value) => Math.hypot(value.re - first.re, value.im - first.im) <= CLEAR * first.size).length;
  const gap = m < d ? (first.size - values[m].size) / first.size : 1;
  const isReal = Math.abs(first.im) <= CLEAR * first.size;
  const found = isReal && first.re > 0 && gap > CLEAR ? predictLeading(beta, weights, values, m, isDefinite) : null;
  return found ?? predictBounds('softmax', weights, reasonOfSpectrum(beta, values), spec);
}

/**
 * A positive eigenvalue leads: alone (Theorem 4.2), or m equal ones (Theorem 5.2).
 * @param {number} beta
 * @param {ResolvedMatrices} weights
 * @param {Eigenvalue[]} values
 * @param {number} m
 * @param {boolean} isDefinite
 * @returns {Theory | null}
 */
function predictLeading(beta, weights, values, m, isDefinite) {
  const { d } = weights, { V, M } = weights.heads[0];
  const projector = leadingProjector(V, values, m), growing = values.filter(({ re }) => re > CLEAR * values[0].size).length;
  if (m === 1 && Math.sign(beta) * scoreAlong(M, projector) > CLEAR) {
    const plane = d === 1 ? 'points' : d === 2 ? 'parallel lines' : 'parallel planes';
    const says = `One positive eigenvalue leads: the rescaled tokens gather on at most three ${plane}.`;
    if (growing === 1) return result('Theorem 4.2', 'three_hyperplanes', 'hyperplanes', says, 3);
    const more = `${says} ${growing} directions grow. Conjecture 4.3: in all of them together there are at most three limits.`;
    return { ...result('Theorem 4.2', 'three_hyperplanes', 'hyperplanes', more, 3), isConjecture: true };
  }
  const defect = sizeOf(subtract(multiply(V, projector), scale(projector, values[0].re))) / (values[0].size * sizeOf(projector));
  if (defect > CLEAR || beta === 0 || sizeOf(M) === 0) return null;
  if (isDefinite) {
    return result('Theorem 5.2', 'polytope_times_subspace', 'columns', SAYS.columns, null);
  }
  const shape = m === d ? 'polytope' : 'columns';
  return { ...result('Section 12', 'generic_scores', shape, SAYS.generic, null), isOpen: true, isConjecture: true };
}

/**
 * If no theorem says how a run ends, one may still bound it on the way.
 * @param {string} kernel
 * @param {ResolvedMatrices} weights
 * @param {string} why
 * @param {Spec} spec
 * @returns {Theory}
 */
function predictBounds(kernel, weights, why, spec) {
  if (kernel === 'exp_mean' || spec.dynamics?.feedforward !== undefined) return nothing(why);
  const factors = weights.heads.map((head) => trace(head.V) / weights.d);
  const isScalar = weights.heads.every((head) => distanceToIdentity(head.V) <= EXACT);
  if (isScalar && factors.every((factor) => factor >= 0)) {
    const says = `${why} Still, the hull of the rescaled tokens never grows.`;
    return { ...nothing(says), cite: 'Section 8', paper: PAPER, theorem: 'hull_shrinks' };
  }
  const values = eigenvaluesOf(weights), dt = spec.solve.layers === undefined ? 0 : spec.solve.dt ?? 1;
  const isInvertible = values.every(({ re, im }) => Math.hypot(1 + dt * re, dt * im) > 1e-6);
  const rounding = EXACT * values[0].size, hasReal = values.some(({ re, im }) => re >= -rounding && Math.abs(im) <= rounding);
  if (weights.heads.length === 1 && isInvertible && hasReal) {
    const says = `${why} Still, along each real eigenvalue that is not negative the outermost rescaled tokens only move inwards.`;
    return { ...nothing(says), cite: 'Section 9', paper: PAPER, theorem: 'coordinate_extremes' };
  }
  return nothing(why);
}

/**
 * Why the equation is not one of the paper, or an empty text.
 * @param {{kernel: string, mask: string, feedforward?: any}} dynamics
 * @param {ResolvedMatrices} weights
 * @param {Spec} spec
 * @returns {string}
 */
function reasonOutside(dynamics, weights, spec) {
  if (dynamics.feedforward !== undefined) return SAYS.feedforward;
  if (dynamics.kernel === 'exp_mean') return SAYS.exp_mean;
  if (dynamics.kernel === 'hardmax') return SAYS.hardmax;
  if (dynamics.mask === 'causal') return SAYS.causal;
  if (spec.solve.layers !== undefined) return SAYS.layers;
  if (weights.heads.length > 1) return `${weights.heads.length} heads: it is open whether tokens gather.`;
  return '';
}

/**
 * @param {number} beta
 * @param {Eigenvalue[]} values
 * @returns {string}
 */
function reasonOfSpectrum(beta, values) {
  const first = values[0], allowed = CLEAR * first.size, ties = values.filter((value) => first.size - value.size <= allowed);
  const isAlike = ties.every(({ re, im }) => Math.hypot(re - first.re, Math.abs(im) - Math.abs(first.im)) <= allowed);
  if (!isAlike) return SAYS.several;
  const growsFastest = first.re > 0 && values.every(({ re }) => re <= first.re + allowed);
  if (Math.abs(first.im) > allowed) return growsFastest ? SAYS.pair : SAYS.turning;
  if (first.re < 0) return SAYS.negative;
  if (beta === 0) return SAYS.uniform;
  if (ties.length > 1) return SAYS.defective;
  return SAYS.scores;
}

/**
 * Tokens on the sphere: other papers.
 * @param {{beta: number, kernel: string, mask: string}} dynamics
 * @param {ResolvedMatrices} weights
 * @param {Spec} spec
 * @returns {Theory}
 */
function predictSphere(dynamics, weights, spec) {
  const { d, heads } = weights, isPlain = dynamics.kernel === 'softmax' && dynamics.mask === 'full' && heads.length === 1;
  const isFlow = spec.solve.layers === undefined, { V, M } = heads[0];
  const isScalar = distanceToIdentity(V) <= EXACT && trace(V) > 0 && distanceToIdentity(M) <= EXACT;
  if (isPlain && isFlow && d > 1 && isScalar && dynamics.beta * trace(M) >= 0) {
    const paper = d === 2 ? 'arXiv:2507.22857' : 'arXiv:2312.10794', where = d === 2 ? 'circle' : 'sphere';
    const says = `On the ${where} with V = QᵀK = I almost every start ends in one point. How long that takes is open.`;
    return { ...result(paper, '', 'point', says, 1), paper };
  }
  return nothing(`Tokens on the sphere: no theorem is about this ${isPlain ? 'V and QᵀK' : 'equation'}.`);
}

/**
 * @param {string} cite
 * @param {string} theorem
 * @param {Shape} shape
 * @param {string} says
 * @param {number | null} most
 * @returns {Theory}
 */
function result(cite, theorem, shape, says, most) {
  return { cite, paper: PAPER, theorem, says, most, isConjecture: false, isOpen: false, shape };
}

/**
 * @param {string} says
 * @param {Shape} shape
 * @returns {Theory}
 */
function nothing(says, shape = 'none') {
  return { cite: 'open', paper: '', theorem: '', says, most: null, isConjecture: false, isOpen: true, shape };
}

/**
 * Eigenvalues by decreasing modulus; among equal ones the larger real part first.
 * @param {ResolvedMatrices} weights
 * @returns {Eigenvalue[]}
 */
function eigenvaluesOf(weights) {
  const values = weights.growth.map((re, k) => {
    const im = turnOf(weights, k);
    return { re, im, size: Math.hypot(re, im) };
  });
  return values.sort((a, b) => b.size - a.size || b.re - a.re || b.im - a.im);
}

/**
 * The imaginary part of eigenvalue k; `turn` has it at the first of the two columns of a pair only.
 * @param {ResolvedMatrices} weights
 * @param {number} k
 */
function turnOf({ turn }, k) {
  return turn[k] || -(turn[k - 1] || 0) || 0;
}

/**
 * A multiple of the projection on the m leading directions: the product of V - lambda over all other eigenvalues.
 * @param {number[][]} V
 * @param {Eigenvalue[]} values
 * @param {number} m
 */
function leadingProjector(V, values, m) {
  let product = identity(V.length);
  for (const { re, im } of values.slice(m)) {
    if (im < 0) continue;                                           // with the first of its pair
    const shifted = subtract(V, scale(identity(V.length), re));
    product = multiply(product, im === 0 ? shifted : subtract(multiply(shifted, shifted), scale(identity(V.length), -im * im)));
  }
  return product;
}

/**
 * phi . M phi / |M| for the unit vector phi that the projector of rank one maps to.
 * @param {number[][]} M
 * @param {number[][]} projector
 */
function scoreAlong(M, projector) {
  const columns = transpose(projector), lengths = columns.map((column) => Math.hypot(...column));
  const largest = lengths.indexOf(Math.max(...lengths)), phi = columns[largest].map((entry) => entry / lengths[largest]);
  const scores = M.map((row) => row.reduce((sum, entry, j) => sum + entry * phi[j], 0));
  return phi.reduce((sum, entry, i) => sum + entry * scores[i], 0) / (sizeOf(M) || 1);
}
