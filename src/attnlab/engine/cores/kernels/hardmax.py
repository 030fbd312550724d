"""The compiled kernel hardmax."""

from attnlab.engine.cores.kernels import Core, cores
from attnlab.engine.unrolled import HARDMAX

cores.register("hardmax")(Core(HARDMAX, is_hardmax=True))
