"""If the leading eigenvalue of V is simple and positive, the rescaled tokens approach at most three
parallel hyperplanes.

V is a matrix of the paper. By t = 5 all tokens lie on two lines, which al.limit certifies. al.check
supports the theorem.
"""

import matplotlib.pyplot as plt
import numpy as np

import attnlab as al

V = np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]])
x0 = np.random.default_rng(0).uniform(-5, 5, (30, 2))
run = al.simulate(al.Weights(V=V), x0, t_end=8.0, saves=161)
verdict = al.check(run, names=["three_hyperplanes"])[0]
limit = al.limit(run)

rates, left = np.linalg.eig(V.T)
phi = left[:, rates.argmax()].real                          # the functional <phi, z>, constant along each line
figure, panels = plt.subplots(1, 3, figsize=(9.6, 4.2), sharex=True, sharey=True, layout="compressed")
along = np.array([[-phi[1]], [phi[0]]]) * np.array([-30, 30])
for axes, t in zip(panels, (0.0, 1.0, 5.0), strict=True):
    for end in range(limit.count):
        level = phi @ limit.limits[limit.labels == end][0] / (phi @ phi)
        axes.plot(*(level * phi[:, None] + along), color=f"C{end}", linewidth=1, alpha=0.6)
        z = run.z[np.abs(run.times - t).argmin(), limit.labels == end]
        axes.scatter(*z.T, s=22, color=f"C{end}", edgecolor="white", linewidth=0.4)
    axes.set(title=f"t = {t:g}", xlabel="$z_1$", aspect="equal", xlim=(-9, 9), ylim=(-9, 9), xticks=(-5, 0, 5), yticks=(-5, 0, 5))
panels[0].set_ylabel("$z_2$")
found = f"Eigenvalues of V: {rates.max():.3g} and {rates.min():.2g}. The theorem of the hyperplanes: {verdict.outcome.name}"
figure.suptitle(found.replace("-", "−"), fontsize=11)
figure.savefig("hyperplanes.png", dpi=150)
print(f"hyperplanes.png: {verdict}")
