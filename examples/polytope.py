"""With V = I the rescaled tokens z = e^{-t} x end on the boundary of a polytope, most of them at
one of its vertices.

Forty tokens in the plane go from their start (rings) to their certified limits (dots). The hull of
the limits is the polytope.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import ConvexHull

import attnlab as al

x0 = np.random.default_rng(4).uniform(-5, 5, (40, 2))
weights = al.Weights(V=np.eye(2))
run = al.simulate(weights, x0, t_end=8.0, saves=400)
limit = al.limit(weights, x0)
ends, followers = np.unique(limit.labels, return_counts=True)
points = np.array([limit.limits[limit.labels == end][0] for end in ends])

figure, axes = plt.subplots(figsize=(5.6, 5.2), layout="constrained")
axes.fill(*points[ConvexHull(points).vertices].T, facecolor="#eef3f8", edgecolor="0.6", zorder=0)
for token in range(len(x0)):
    axes.plot(*run.z[:, token].T, color=f"C{limit.labels[token]}", linewidth=0.8, alpha=0.7)
axes.scatter(*x0.T, s=18, facecolor="white", edgecolor="0.4", linewidth=0.8, zorder=3)
axes.scatter(*points.T, s=45, color=[f"C{end}" for end in ends], edgecolor="white", zorder=4)
for point, count in zip(points, followers, strict=True):
    axes.annotate(f"{count}", point, point + 0.45 * np.sign(point), ha="center", va="center", fontsize=9)
axes.set(xlabel="$z_1$", ylabel="$z_2$", aspect="equal", xlim=(-6, 6), ylim=(-6, 6))
axes.set_title(f"V = I: {len(x0)} tokens, {limit.count} limits ({limit.grade}); numbers count who ends there", fontsize=10)
figure.savefig("polytope.png", dpi=150)
print(f"polytope.png: {len(x0)} tokens end in {limit.count} points, {limit.grade}")
