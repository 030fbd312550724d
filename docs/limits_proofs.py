"""The section of docs/limits.md about proofs: what is proved, and how."""

PROOFS = '''
## What `proof=True` proves

Three words are used exactly. An *estimated* error comes from tolerances and replicas. A limit is *certified* if its end is
proved from a computed state whose error is estimated. A limit is *proved* if the state is enclosed: every rounding from the
first tokens on is bounded. `al.limit(weights, x0, proof=True)`, or `attnlab limit --proof`, then has the grade `proved`. The
weights, beta and x0 are taken as the doubles that they are.

**Covered**: softmax attention of one head in R^d, continuous time, all tokens or the causal mask, any Q, K and beta, and a
diagonal V with a positive entry. V = c I is such a V. Everything else, and every start for which the bound becomes too wide,
keeps its limit and its grade; `limit.reason` then says why it is not proved.

**Step and defect.** A step of length h has a polynomial p(s), 0 <= s <= 1, with double coefficients. It may be any
polynomial; it is the rounded Taylor polynomial of order 24. Let l be the leader of row i, m_j the number of tokens equal to
j, E_ij = m_j exp(g_ij), g_ij = <M^T p_i, p_j - p_l>, Z_i = m_l + sum E_ij. Then

    R_i = Z_i (p_i' - V p_l) - V sum_j E_ij (p_j - p_l)

is Z_i times the defect p_i' - f_i(p), and Z_i >= m_l. So |R_i| / m_l bounds the defect.

*Lemma 1.* Let f be analytic inside the ellipse around [0, 1] with foci 0 and 1 and parameter rho > 1, with |f| <= F there.
Let L be the Lebesgue constant of N Chebyshev nodes. Then max |f| over [0, 1] is at most L max |f(node)| + 2 (1 + L) F rho^-N
rho / (rho - 1). *Proof.* The Chebyshev coefficients satisfy |a_k| <= 2 F rho^-k. Write f = q + r with q the terms below N.
The interpolant of q is q, so |q| <= L max |q(node)| <= L (max |f(node)| + sup |r|), and sup |r| <= 2 F rho^-N rho / (rho -
1). Add |r|. L <= 2/pi ln N + 1 for these nodes. If nodes are off by eps, Markov's inequality gives L / (1 - L eps N^2)
instead.

R_i is entire. On the ellipse |s| <= sigma = (1 + (rho + 1/rho)/2)/2, so polynomials are bounded by their coefficients' moduli
at sigma, and |E_ij| by the exponential of the real part, g_ij(0) + (majorant of g_ij at sigma) - (its constant term). Pairs
whose score stays 60 below the leader's during the step are left out and charged e^-60.

**Error.** Let e_i = |x_i - p_i| (Euclidean), and r_i a radius with e_i < r_i for now.

*Lemma 2.* e_i' <= sum_k A_ik e_k + defect_i with A >= 0, if for all tokens within r of p on the piece

    A_ik >= P_ik |V| (1 + |y_k - xbar_i| |M^T y_i|),     and in A_ii also  |V| |M| sum_k P_ik |y_k - y_l|^2.

*Proof.* The derivative of f_i along v is V [sum_k P_ik v_k + sum_k P_ik (y_k - xbar_i) <M^T y_i, v_k> + C_i M^T v_i], with
C_i the covariance of the tokens under P_i; its norm is at most the second moment about y_l. Integrate along the segment from
p to x.

*Lemma 3.* On a piece of length u let e(0) <= e_0, q = A r + defect, and e_0 + u q < r. Then e < r on the piece, and e(u) <=
e_0 + u (defect + A (e_0 + u q / 2)). *Proof.* Up to a first time at which some e_i = r_i one has e' <= q, hence e(s) <= e_0 +
s q < r: there is no such time. Put e(s) <= e_0 + s q into e' <= A e + defect and integrate.

P, the scores and the distances are bounded on a piece from their values and slopes at its middle and a bound of the second
derivative. The bound is a matrix because a row multiplies errors only while that row is mixed.

**End.** At the end let all leaders lead themselves, X the leaders, D_i = x_i - x_l. If rows attended to their leaders only,
then x_i(s) = e^{sV} X_l + D_i, and each gap x_i^T M (x_l - x_k) is a sum of exponentials with exponents v_a + v_b, v_a, 0.

*Lemma 4 (Abel).* Sort the exponents, mu among them with coefficient -G. If all partial sums are >= 0, the gap is >= G e^{mu
s} for all s >= 0. It suffices that lower bounds of the coefficients have this property.

*Lemma 5 (leak).* Suppose all gaps exceed (G - 1) e^{mu s} up to s, and (G - 1) mu > 2 |V|. Then softmax moves e^{-sV} X in
each coordinate by at most leak = 2 n |V| max|x| e^{-(G-1)} / ((G - 1) mu - 2 |V|), and each D by at most twice that. *Proof.*
Tokens grow at most like e^{|V| s}, so |sum_j P_ij (x_j - x_l)| <= 2 n max|x| e^{|V| s - (G-1)(1 + mu s)}. Multiply by e^{|V|
s} at most, and integrate.

The coefficients are enclosed with radius + leak, and Lemma 4 holds for them at each s. So gaps exceed G e^{mu s} as long as
they exceed (G - 1) e^{mu s}: for ever. The limit of z is e^{-V t} X_l along growing coordinates, within e^{-V t} (radius +
leak). Different leaders must have disjoint enclosures.

**Rounding.** Sums are bounded by running error analysis, with u = 2^-53 for each operation in round-to-nearest. e^x comes
from IEEE operations alone, with a proved error of 8 u (`limits/proof/exponentials.py`).

**Check.** The Proof is `limit.state`, and is saved with the limit: each step's length, polynomial, leaders, pieces, defect,
tube and radius. `attnlab verify limit.nc` checks every step and the end again with MPFR (values in 160 bits, bounds rounded
up) and exact rationals. It shares no code with the prover, uses other nodes, and says which step fails. It takes longer than
the proof: 2 s of
processor time for 8 tokens, 80 s for 40.

**How often.** One start per seed, chosen before the run, uniform in [-5, 5]^d or [-1, 1]^d: n = 5, 10, 20, 30, 40 tokens in d
= 1, 2, 3, two seeds each. With V = I 56 of 60 were proved, in 0.8 s of processor time in the median and 5.5 s at most; the
widest proved error of a point was 8e-5, the median 8e-13. The other four keep their certified limit. With V = diag(1.2, 0.8,
-0.5), n = 8, 11 of 12; with V = diag(1, 0.9, -0.5), where leaders change late, 0 of 6.

**Open.** V that is not diagonal needs enclosed eigenvectors. The comparison uses norms of blocks and knows no signs: in tried
systems the linearised flow multiplied errors by 10^3 where the bound multiplied them by 10^7 to 10^12. Coordinates that
follow the linearised flow (Lohner) would prove more, and so would more digits. Tokens on the sphere are not covered yet.
'''
