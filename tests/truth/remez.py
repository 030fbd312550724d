"""How the coefficients of engine/exp2.py were made: the minimax polynomial of 2^r for the relative
error.

Run `python tests/truth/remez.py` to print them again. Remez exchange with 60 digits: find p of
degree 6 with p(r) = 2^r (1 + e(r)), |e| smallest on [-1/32, 1/32]; e then equioscillates at 8
points.
"""

import mpmath as mp

HALF_WIDTH = mp.mpf(1) / 32


def minimax_exp2(degree: int) -> tuple[list, mp.mpf]:
    """(coefficients from the constant term up, largest relative error) for 2^r on [-1/32, 1/32]."""
    with mp.workdps(60):
        count = degree + 2
        nodes = [-mp.cos(mp.pi * i / (count - 1)) * HALF_WIDTH for i in range(count)]
        for _ in range(8):
            # p(r_i) 2^{-r_i} + (-1)^i E = 1
            A = mp.matrix(count, count)
            for i, r in enumerate(nodes):
                for k in range(degree + 1):
                    A[i, k] = r**k * mp.power(2, -r)
                A[i, degree + 1] = (-1) ** i
            solution = mp.lu_solve(A, mp.matrix([1] * count))
            coefficients = [solution[k] for k in range(degree + 1)]

            def error(r, coefficients=coefficients):
                return sum(c * r**k for k, c in enumerate(coefficients)) * mp.power(2, -r) - 1

            nodes = _extrema(error, nodes)
        return coefficients, max(abs(error(r)) for r in nodes)


def _extrema(error, nodes):
    """One extremum of `error` in each interval between its sign changes, the ends included."""
    zeros = [
        mp.findroot(error, (a, b), solver="anderson", tol=1e-50)
        for a, b in zip(nodes, nodes[1:], strict=False)
    ]
    edges = [-HALF_WIDTH, *zeros, HALF_WIDTH]
    extrema = []
    for a, b in zip(edges, edges[1:], strict=False):
        for _ in range(120):  # golden-section search for the largest |error|
            c, e = a + (b - a) * mp.mpf("0.381966"), a + (b - a) * mp.mpf("0.618034")
            if abs(error(c)) > abs(error(e)):
                b = e
            else:
                a = c
        extrema.append((a + b) / 2)
    extrema[0], extrema[-1] = -HALF_WIDTH, HALF_WIDTH
    return extrema


if __name__ == "__main__":
    coefficients, error = minimax_exp2(6)
    for c in coefficients:
        print(repr(float(c)))
    print("relative error", mp.nstr(error, 3))
