"""On the sphere almost every start ends in one point. For large beta this takes very long, and
several clusters remain meanwhile.

The larger beta is, the longer several clusters last. Medians over sixteen starts of 32 tokens,
which one call computes.
"""

import matplotlib.pyplot as plt
import numpy as np

import attnlab as al

x0 = np.random.default_rng(0).standard_normal((16, 32, 3))
x0 /= np.linalg.norm(x0, axis=-1, keepdims=True)
weights = al.Weights(V=np.eye(3))
times = np.r_[0.0, np.geomspace(0.1, 3000.0, 100)]

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
for number, beta in enumerate((1.0, 4.0, 16.0, 64.0)):
    run = al.simulate(weights, x0, times=times, geometry="sphere", beta=beta, rtol=1e-6, observe=["cluster_count"])
    count = np.median(run.observed["cluster_count"], axis=0)
    color = plt.colormaps["viridis"](number / 4)
    axes.loglog(times[1:], count[1:], color=color, linewidth=1.8, label=f"β = {beta:g}")
axes.set(xlabel="time t", ylabel="clusters of 32 tokens (median)", xlim=(0.1, 3000), ylim=(0.9, 36))
axes.set_yticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"], minor=False)
axes.minorticks_off()
axes.legend(frameon=False, loc="lower left")
axes.set_title("Tokens on the sphere, V = I: the larger β, the longer several clusters last", fontsize=10)
figure.savefig("sphere.png", dpi=150)
print(f"sphere.png: at t = {times[-1]:g} one start in two still has {count[-1]:g} clusters or more for beta = {beta:g}")
