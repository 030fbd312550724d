"""Other names for what stands in attnlab.analysis.transport and attnlab.analysis.rates."""

from attnlab.analysis.rates import observed_order as order
from attnlab.analysis.transport import Law, middle_levels, truncated_bells, wasserstein
from attnlab.analysis.transport import uniform_law as uniform

__all__ = ["Law", "middle_levels", "order", "truncated_bells", "uniform", "wasserstein"]
