"""The theorem of the hyperplanes asks for a leading eigenvalue of V that is positive and simple.
This trained head has one.

Left: its eigenvalues, compared with random factors of the same size. Right: its flow takes a
sentence to one hyperplane.
"""

import matplotlib.pyplot as plt
import numpy as np

import attnlab as al

LAYER, HEAD = 2, 0
try:
    model = al.models.load("minilm")
except al.models.BadModel as problem:                       # not fetched yet: the message says how to get it
    raise SystemExit(print(f"trained_head.png was not made. {problem}")) from None
weights = model.weights(LAYER, HEAD)
B, C = (part[0] for part in weights.V)                      # V = B C (384 x 384) has the eigenvalues of C B (32 x 32), and 0
rates, vectors = np.linalg.eig((C @ B).T)
leading = rates.real.argmax()
rate, phi = rates[leading].real, C.T @ vectors[:, leading].real            # phi V = rate phi
rng, size = np.random.default_rng(0), np.linalg.norm(B) * np.linalg.norm(C) / B.size
chance = np.array([np.linalg.eigvals(size * rng.standard_normal(C.shape) @ rng.standard_normal(B.shape)) for _ in range(30)])
ids, words = model.tokens("The cat sat on the mat because it was tired.")
run = al.simulate(weights, model.hidden_states(ids)[LAYER], t_end=12.0, saves=121, rtol=1e-6)
level = np.exp(-rate * run.times)[:, None] * (run.x @ phi)                 # <phi, z>: which hyperplane a token is on

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, (plane, time) = plt.subplots(1, 2, figsize=(9.4, 4.2), layout="constrained")
plane.scatter(chance.real, chance.imag, s=6, color="0.82", label="chance, 30 draws")
plane.scatter(rates.real, rates.imag, s=26, color="C0", edgecolor="white", linewidth=0.4, label=f"L{LAYER}H{HEAD}")
plane.scatter(rate, 0, s=90, facecolor="none", edgecolor="C1", linewidth=1.5, label=f"leading, {rate:.3f}")
plane.set(xlabel="real part", ylabel="imaginary part", aspect="equal", title="eigenvalues of V", ylim=(-0.45, 0.6))
plane.legend(frameon=False, fontsize=8.5, loc="upper left", ncols=3, columnspacing=0.8, handletextpad=0.2)
time.plot(run.times, level / np.abs(level[0]).max(), color="C0", linewidth=1, alpha=0.8)
time.set(xlabel="time t", ylabel=r"$\langle\varphi_1, z_i\rangle$, scaled", title=f"the flow of its {len(words)} tokens")
figure.savefig("trained_head.png", dpi=150)
print(f"trained_head.png: eigenvalue {rate:.3f}; levels end within {np.ptp(level[-1]) / np.ptp(level[0]):.2%} of their spread")
