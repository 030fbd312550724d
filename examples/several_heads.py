"""Heads with different scores pull the tokens together. With V_h = I one head keeps several
clusters, and many heads keep one.

Every dot is one draw of scores and one start, at tau = H t = 12. The median diameter (bars) falls
with the number of heads H.
"""

import matplotlib.pyplot as plt
import numpy as np

import attnlab as al

heads, draws, d = (1, 2, 4, 8, 16), 30, 3
left = {}
for H in heads:
    for draw in range(draws):
        rng = np.random.default_rng([H, draw])
        Q, K = rng.standard_normal((2, H, d, d)) / np.sqrt(d)
        weights = al.Weights(Q=Q, K=K, V=np.broadcast_to(np.eye(d), (H, d, d)))
        run = al.simulate(weights, rng.uniform(-5, 5, (30, d)), t_end=12 / H, saves=2, rtol=1e-6, observe=["diameter"])
        first, last = run.observed["diameter"]
        left.setdefault(H, []).append(last / first)

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for place, H in enumerate(heads):
    shift = np.random.default_rng(0).uniform(-0.16, 0.16, draws)
    axes.semilogy(place + shift, left[H], "o", color="C0", alpha=0.45, markersize=5, markeredgewidth=0)
    axes.plot([place - 0.28, place + 0.28], [np.median(left[H])] * 2, color="C1", linewidth=2.2)
axes.set_xticks(range(len(heads)), [str(H) for H in heads])
axes.set(xlabel="number of heads H", ylabel="diameter of z at τ = 12, over that at the start")
axes.set_title("$V_h$ = I, independent random scores: many heads leave one point", fontsize=10)
figure.savefig("several_heads.png", dpi=150)
gathered = ", ".join(f"{np.mean(np.array(left[H]) < 0.01):.0%}" for H in heads)
print(f"several_heads.png: draws that gather to 1 % of their size, H = {heads}: {gathered}")
