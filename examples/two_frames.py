"""The tokens x grow like e^{lambda t}. The rescaled tokens z = e^{-tV} x are the same run without
that growth.

Each column is one eigenvector of V. Along growing directions z shows clusters. Along a decaying
direction z spreads without end.
"""

import matplotlib.pyplot as plt
import numpy as np

import attnlab as al

rates = np.array([1.0, 0.3, -0.4])
x0 = np.random.default_rng(1).uniform(-5, 5, (25, 3))
run = al.simulate(al.Weights(V=np.diag(rates)), x0, t_end=16.0, saves=321)

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, panels = plt.subplots(2, 3, figsize=(9.6, 5.0), sharex=True, layout="constrained")
for row, (letter, tokens) in enumerate((("x", run.x), ("z", run.z))):
    for k, rate in enumerate(rates):
        axes = panels[row, k]
        axes.plot(run.times, tokens[:, :, k], color=f"C{k}", linewidth=0.8, alpha=0.7)
        axes.set_ylabel(f"${letter}_{k + 1}$", rotation=0)
        largest = np.abs(tokens[..., k]).max()
        if largest > 30:                        # too much for a plain axis: one that is linear up to 1 and logarithmic beyond
            axes.set_yscale("symlog", linthresh=1.0)
            top = 10 ** int(np.log10(largest))
            axes.set_yticks([-top, 0, top])
        axes.set_title(f"eigenvalue {rate:g}".replace("-", "−") if row == 0 else "", fontsize=10)
        axes.set_xlabel("time t" if row == 1 else "")
figure.suptitle("One run, two frames: x above, z = e$^{-tV}$x below", fontsize=11)
figure.savefig("two_frames.png", dpi=150)
print("two_frames.png: at the end z spreads over " + ", ".join(f"{width:.3g}" for width in np.ptp(run.z[-1], axis=0)))
