"""Scores: how the query of one token is compared with the key of another.

    compare(queries, keys)    scores (..., n, n) of queries and keys (..., n, k), without beta; of degree 2: twice the tokens
                              have four times the score
    is_dot = False            whether it is the inner product
"""

from attnlab.axes.registry import AxisRegistry

scores = AxisRegistry(
    "scores", "attnlab.axes.scores", about="How the query of a token is compared with the key of another.",
    default="dot", functions=("compare",), later={"is_dot": False},
)
