"""Other names for two intervals of attnlab.analysis.intervals."""

from attnlab.analysis.intervals import bootstrap_interval as mean_interval
from attnlab.analysis.intervals import exact_interval as share_interval

__all__ = ["mean_interval", "share_interval"]
