"""The compiled kernel softmax."""

from attnlab.engine.cores.kernels import Core, cores
from attnlab.engine.unrolled import SOFTMAX

cores.register("softmax")(Core(SOFTMAX))
