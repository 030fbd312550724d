"""The compiled kernel sigmoid. Its number is the bias in powers of two; NaN: minus the logarithm of
the number of tokens seen.
"""

import math

from attnlab.axes.kernels.sigmoid import Sigmoid
from attnlab.engine.cores.kernels import Core, cores
from attnlab.engine.unrolled import SIGMOID


def bias_in_bits(kernel: Sigmoid) -> float:
    """The bias times log2(e); NaN where it follows from the number of tokens."""
    return math.nan if kernel.bias is None else kernel.bias * math.log2(math.e)


cores.register("sigmoid")(Core(SIGMOID, number=bias_in_bits))
