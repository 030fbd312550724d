"""The compiled kernel softmax."""

from attnlab.engine.cores import Core, cores
from attnlab.engine.unrolled import SOFTMAX

cores.register("softmax")(Core(SOFTMAX))
