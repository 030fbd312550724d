"""The section of docs/limits.md about several heads: what is certified, why, and what is open."""

HEADS = '''
## Several heads

x_i' = sum_h v_h sum_j P^h_ij x_j with P^h_ij = softmax_j(x_i^T M_h x_j), M_h = beta Q_h^T K_h, V_h = v_h I, v_h > 0 and v =
sum_h v_h. Scores differ from head to head. `al.limit` certifies the limits of z = e^{-vt} x. `Limit.head_leaders` (h, n) says
whom each token follows in each head. Refused by name: a V_h that is not a multiple of I, v_h < 0, masks, residual layers and
feed-forward parts.

**Classes.** Let attention be Boolean in every head, L_h(i) the leader of i in head h. *Class condition*: for every token a
that leads somebody, L_g(L_h(a)) = L_g(a) for all heads g and h. So all tokens of the tuple (L_1(a), .., L_H(a)) have this
tuple. Such a tuple is a *class* c. X_c = sum_h (v_h / v) x_{L_h(a)} is its point.

*Lemma 1.* While leaders stay, x_i(s) = Y_i e^{vs} + s K_i + D_i for every token i. With c_h the class of L_h(i), Y_i = sum_h
(v_h / v) X_{c_h}, K_i = sum_h v_h (x_{L_h(i)} - X_{c_h}) and D_i = x_i - Y_i, all at s = 0. *Proof.* Each token of a class has
the velocity v X_c. So X_c' = v X_c, and a leader minus the point of its class is constant. Insert x_{L_h(i)}(s) = e^{vs}
X_{c_h} + const into x_i' = sum_h v_h x_{L_h(i)} and integrate.

The limit of z_i is Y_i e^{-v t_0}, t_0 the time of the state: a class point p_c, or a mean of class points if the heads of i
choose different classes. Two tokens have the same limit if each class has the same part of v in both. The parts are added
as exact fractions. K_i = 0 if the leaders of i are the tuple of a class. It need not be 0 if they only lie in one class.

*Theorem (a class must win in every head).* Suppose that attention becomes Boolean in every head and stays so. Then, for generic
data, the class condition holds from some time on, the z_i tend to class points p_c and means of them, and

    p_c^T M_h p_c >= p_c^T M_h u      for every class c, every limit u and **every** head h.

*Sketch of the proof.* Then x' = N x with a fixed N, and N / v is a stochastic matrix. So z converges, to one point p_c on each
closed class of the chain. For i in it x_i = e^{vt} p_c + smaller terms. So in each head i takes the token j with the largest
p_c^T M_h x_j. This is the same j for all i in the class, unless two are tied for ever: the class condition. If a limit u
had a larger p_c^T M_h u than p_c, its tokens would win by a gap of order e^{2vt}.

So each further head is one more condition on every class, and many heads leave room for few. It is a tendency and not a bound for
a single start: with M_1 = [[1, 0.3], [0.3, 0.7]], M_2 = [[0.6, -0.2], [-0.2, 1.1]], v = (1, 0.7) and 14 tokens
`default_rng(1).uniform(-2, 2, (14, 2))` two heads have 4 classes, head 1 alone has 3, and head 2 alone 2. The result is registered
as `win_in_every_head` ([the results](theorems.md)).

**Certificate.** By Lemma 1 the gap of row i of head h, between its leader l and a token k, is

    f(s) = C2 e^{2vs} + (S1 s + C1) e^{vs} + Q2 s^2 + Q1 s + Q0.

*Lemma 2 (Abel with polynomial factors).* Let y = vs/2. The functions e^{2vs}, (1 + vs) e^{vs}, e^{vs}, e^{vs/2}, 1 + y + y^2/2,
1 + y, 1 fall in this order for every s >= 0. Write f - G e^{vs/2} as their combination, with s e^{vs} = ((1 + vs) e^{vs} -
e^{vs}) / v, s^2 = (8/v^2) (p_2 - p_1) and s = (2/v) (p_1 - 1), where p_1 = 1 + y and p_2 = p_1 + y^2/2. If the partial sums

    C2,   C2 + S1/v,   C2 + C1,   R = C2 + C1 - G,   R + 8 Q2/v^2,   R + 2 Q1/v,   R + Q0

are >= 0, then f >= G e^{vs/2} for all s >= 0. *Proof.* e^w >= 1 + w + w^2/2 for w >= 0 gives the order. Sum by parts: each
partial sum is multiplied by the difference of two neighbours. It suffices that lower bounds of the coefficients pass.

*Lemma 3 (leak).* Let G = 50 + ln n + log max|x|. As long as gaps exceed (G - 1) e^{vs/2}, softmax moves Y and D by less than
e^{-50} and K by less than v e^{-50}. *Proof.* The velocity is off by at most r(s) = 2 n v max|x| e^{vs - (G-1) e^{vs/2}}, and
e^{vs/2} >= 1 + vs/2. A kick r at the time s changes the Y of time 0 by r e^{-vs} at most, K by 2 v r, and D by 2 r + 2 v s r.
The integral of r is at most 2 n max|x| e^{-(G-1)} / ((G - 1)/2 - 1) < 0.24 e^{-50}, that of v s r a twentieth of this.

The leak is part of the error of each coefficient. So gaps exceed G e^{vs/2} as long as they exceed (G - 1) e^{vs/2}: for ever.

**State.** The softmax flow itself is integrated, with tokens as two doubles, until the certificate passes. There is no hand-over.
Changes of leader late in the run, before the class condition holds, are passed by the integrator. Differences of
tokens in one class then stay as they are, so their error is relative to the size that tokens had when rows were last mixed or
leaders not in classes. A token with other leaders in the same class is charged 1e-15 of the present size besides. Two replicas,
pushed by +-1e-11, must have the same maps, or (grade "group") the same limits. All errors are estimates, as for one head.

**Evidence.** Sixty systems `draw_heads(0)` to `draw_heads(59)` (`tests/truth/head_systems.py`: 6 to 20 tokens in 2 or 3
dimensions, 2 to 6 heads, equal and unequal v_h): 60 exact, in 0.03 s in the median on an idle machine, 1.3 s at most. 240 others:
240. An independent program with 44 digits and more (`tests/truth/frozen/make_heads.py`) decided TRUTHS, among them exact duplicates,
mirrored starts with noise down to 1e-12 and late changes of leader, and followed each until tokens were e^12 times larger: no
certified limit is wrong, and all TRUTHS are certified. For random Boolean states Lemma 2 was compared with the matrix exponential:
none that passed closed. States with classes and all gaps above 45 that do close are among them: these two alone prove nothing.

The same 40 starts, 20 tokens uniform in [-5, 5]^3, with the first H of six heads, v_h = 1; all 400 are certified:

| scores | H | classes | limits | tokens between classes | vt of decision |
| --- | --- | --- | --- | --- | --- |
| positive definite | 1 | **5.4** (2 – 9) | 5.4 (2 – 9) | 0 | 2.5 (max 5.0) |
| | 2 | **3.9** (2 – 6) | 4.7 (2 – 9) | 5.7 % | 3.8 (max 11.5) |
| | 3 | **3.6** (2 – 6) | 4.5 (2 – 9) | 7.9 % | 4.6 (max 8.5) |
| | 4 | **3.4** (2 – 5) | 4.4 (2 – 8) | 8.9 % | 4.6 (max 8.8) |
| | 6 | **3.1** (1 – 5) | 3.7 (1 – 7) | 5.6 % | 5.4 (max 9.0) |
| uniform in [-1, 1] | 1 | **2.1** (1 – 4) | 2.1 (1 – 4) | 0 | 4.8 (max 16.8) |
| | 2 | **1.7** (1 – 2) | 1.9 (1 – 3) | 3.6 % | 5.4 (max 9.8) |
| | 3 | **1.5** (1 – 2) | 1.6 (1 – 3) | 1.9 % | 5.6 (max 17.0) |
| | 4 | **1.3** (1 – 2) | 1.3 (1 – 3) | 0.8 % | 6.8 (max 13.2) |
| | 6 | **1.1** (1 – 2) | 1.2 (1 – 5) | 2.2 % | 7.1 (max 11.5) |

*Means (smallest – largest); vt: median. Positive definite: B B^T / 3 + 0.3 I, B Gaussian.*

**Open.** That attention becomes Boolean is not proved for any scores. Rows can slide, that is, stay mixed while all other gaps
grow; such starts are undecided when the work ends. Starts that only an exact symmetry holds are undecided, because
the replicas disagree. V_h that are not multiples of I have limits of z in the leading coordinate only, in general.
'''
"""Hand-written, figures too: seeds stand in the text."""
