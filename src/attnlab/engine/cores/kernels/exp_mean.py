"""The compiled kernel exp_mean."""

from attnlab.engine.cores.kernels import Core, cores
from attnlab.engine.unrolled import EXP_MEAN

cores.register("exp_mean")(Core(EXP_MEAN))
