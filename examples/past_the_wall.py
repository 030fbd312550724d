"""At a growth of about e^30 double precision can no longer order the tokens. A run beyond it
computes plausible, wrong limits.

Two clusters move once more, after al.simulate has stopped (shaded). al.limit follows them to the
end and certifies it (dashes).
"""

import matplotlib.pyplot as plt
import numpy as np

import attnlab as al

weights = al.Weights(V=np.diag([1.0, 0.95, -0.5]))
x0 = np.random.default_rng(10).uniform(-5, 5, (30, 3))
run = al.simulate(weights, x0, t_end=65.0, saves=651, throw=False)          # throw=False: keep the part that can be had
limit = al.limit(weights, x0, times=np.linspace(0, 65, 651))
wall, last = run.times[-1], limit.events[-1].t

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(figsize=(7.4, 4.2), layout="constrained")
axes.axvspan(wall, 65, color="#f6efe4", zorder=0)
for token in range(len(x0)):
    color = f"C{limit.labels[token]}"
    axes.plot(limit.times, limit.path[:, token, 1], color=color, linewidth=0.8, alpha=0.35)
    axes.plot(run.times, run.z[:, token, 1], color=color, linewidth=1.1)
axes.axvline(limit.t, color="0.3", linewidth=1, linestyle="dashed")
top = axes.get_ylim()[1]
axes.text(wall - 0.7, top, "al.simulate stops", ha="right", va="bottom", fontsize=9)
axes.text(wall + 0.7, top, "al.limit goes on", va="bottom", fontsize=9, color="#8a6d3b")
axes.text(limit.t + 0.7, top, "certified", va="bottom", fontsize=9)
axes.set(xlabel="time t", ylabel="second coordinate of z", xlim=(0, 65))
axes.set_title(f"V = diag(1, 0.95, −0.5): a cluster moves at t = {last:.0f}, long after it seemed at rest", fontsize=10, pad=22)
figure.savefig("past_the_wall.png", dpi=150)
print(f"past_the_wall.png: {run.status.name} at t = {wall:.1f}; {limit}, last change of leader at t = {last:.1f}")
