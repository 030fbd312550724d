"""A proof of a limit: the flow is enclosed step by step, in doubles with outward error bounds or in
balls, then its end is certified.

    equation.py       which equations a proof covers, and what their rounded matrices are off by
    exponentials.py   e^x with a proved error, from IEEE operations alone
    pairs.py          pairs of a row and a token that it sees
    expansion.py      what the two arithmetics have in common: how fine the steps are
    doubles.py        a polynomial for each step, which is a guess; its scores, values at nodes, end
    balls.py          the same with more digits (python-flint)
    defect.py         by how much a polynomial fails to solve the equation
    ranges.py         what is known about scores and distances on each piece of a step
    comparison.py     how fast a difference can grow at most, by norms
    jacobian.py       the linearised flow on a piece, and what it leaves out
    spread.py         how far the true tokens are from the polynomial: a set that the linearised
                      flow moves
    spectrum.py       the eigenvalues and eigenvectors of V, enclosed
    ending.py         from the last step on no row changes its leader
    steps.py          the loop over the steps
    record.py         the Proof, and the State that is saved with a Limit
    claim.py          from a Limit to a Limit that is proved, or to a sentence that says why it is
                      not

The mathematics is in docs/limits.md. `limits/verification/proof.py` checks a Proof, and shares no
code with this folder.
"""
