"""A transformer layer is one Euler step of the flow. The published figures of the flow also have
Euler steps, of 0.1.

Left: a few tokens end on the wrong side (arrows). Right: how often this happens in 150 starts, for
each length of a step.
"""

import matplotlib.pyplot as plt
import numpy as np

import attnlab as al

weights = al.Weights(V=np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]]))
x0 = np.random.default_rng(0).uniform(-5, 5, (150, 40, 2))
options = {"t_end": 5.0, "saves": 2}
true = al.simulate(weights, x0, rtol=1e-10, **options).z[:, -1]
steps = (0.1, 0.05, 0.02, 0.01)
found = {(stepper, dt): al.simulate(weights, x0, stepper=stepper, dt=dt, frame="z", **options).z[:, -1]
         for stepper in ("euler", "rk4") for dt in steps}
wrong = {case: np.linalg.norm(z - true, axis=-1) > 1.0 for case, z in found.items()}            # (starts, tokens)

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, (plane, shares) = plt.subplots(1, 2, figsize=(9.2, 4.2), layout="constrained")
start = wrong["euler", 0.1].sum(axis=1).argmax()
euler = found["euler", 0.1][start]
for token in np.flatnonzero(wrong["euler", 0.1][start]):
    arrow = {"arrowstyle": "->", "color": "0.55", "shrinkA": 4, "shrinkB": 5}
    plane.annotate("", euler[token], true[start, token], arrowprops=arrow)
plane.scatter(*true[start].T, s=14, color="C0", label="the flow, rtol = 1e-10", zorder=3)
plane.scatter(*euler.T, s=48, facecolor="none", edgecolor="C1", label="Euler, steps of 0.1")
plane.set(xlabel="$z_1$", ylabel="$z_2$", title="the start with most tokens astray, t = 5")
for stepper, mark, color in (("euler", "o-", "C1"), ("rk4", "s-", "C2")):
    shares.semilogx(steps, [100 * wrong[stepper, dt].any(axis=1).mean() for dt in steps], mark, color=color, label=stepper)
shares.set(xlabel="length of a step", ylabel="starts with a token astray, %", ylim=(-0.3, None), title="150 starts of 40 tokens")
shares.set_xticks(steps, [f"{dt:g}" for dt in steps])
shares.minorticks_off()
plane.legend(frameon=False)
shares.legend(frameon=False)
figure.savefig("euler_steps.png", dpi=150)
print(f"euler_steps.png: Euler with 0.1 leads tokens astray in {wrong['euler', 0.1].any(axis=1).mean():.0%} of 150 starts")
