"""Kernels: how scores become attention weights.

To add one, write a class with these names, register it, and use it by its name. docs/extending.md has a recipe.

    rows_sum_to_one    whether the weights of every row sum to 1: the frame z, feed-forward parts and theorems ask
    is_row_local       whether a row of weights depends on its own scores only; False for Sinkhorn
    hardens            whether large scores give the weights of hardmax: limits and the precision wall ask
    weights(scores, seen)    the weights P (..., n, n): scores contain beta and are finite, seen is True where i sees j

    may_be_negative = False     whether weights may be below 0
    is_softmax = False          whether it is the softmax of the paper, whose limits can be certified
    is_exponential = False      whether the weights of a row are in the ratio of e^s, as those of softmax and exp_mean
    has_scale = False           whether it has scaled_weights(scores, factor, seen): P of factor * scores, which may overflow
"""

from attnlab.axes.registry import AxisRegistry

kernels = AxisRegistry(
    "kernel", "attnlab.axes.kernels", about="How scores become attention weights.", default="softmax", functions=("weights",),
    flags=("rows_sum_to_one", "is_row_local", "hardens"),
    later={"may_be_negative": False, "is_softmax": False, "is_exponential": False, "has_scale": False},
)
