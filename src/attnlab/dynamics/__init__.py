"""The equation in plain NumPy: the slow, readable reference that every compiled path must equal.

attention.py   the attention matrices P of given tokens, or of a run
reference.py   velocities in the frames x and z, written as the paper writes them
layers.py      the residual-layer recursion
"""

from attnlab.dynamics.attention import attention, attention_matrices
from attnlab.dynamics.layers import next_layer
from attnlab.dynamics.reference import velocity_x, velocity_z

__all__ = ["attention", "attention_matrices", "next_layer", "velocity_x", "velocity_z"]
