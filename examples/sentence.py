"""The flow of the theory gathers the tokens of a sentence, and a trained stack hardly does. Random
weights: by their size.

The mean cosine of two tokens after each layer of MiniLM. The model (black) stays below 0.5, and the
theory's flow goes to 1.
"""

import matplotlib.pyplot as plt

import attnlab as al

SHOWN = {"real": "the model", "no_mlp": "without feed-forward", "no_norm": "without norms", "twin": "the theory's flow",
         "random": "random weights, trained sizes", "untrained": "random weights, sizes before training"}
try:
    model = al.models.load("minilm")
except al.models.BadModel as problem:                       # not fetched yet: the message says how to get it
    raise SystemExit(print(f"sentence.png was not made. {problem}")) from None
data = al.models.sentence(model, "The cat sat on the mat because it was tired.", only=list(SHOWN))

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
figure, axes = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
for number, (variant, words) in enumerate(SHOWN.items()):
    cosine = data["cosine"].sel(variant=variant).dropna("step")
    axes.plot(cosine["step"], cosine, "osDv^<"[number] + "-", markersize=4.5, linewidth=2.2 if variant == "real" else 1.3,
              color="black" if variant == "real" else f"C{number - 1}", label=words)
axes.set(xlabel="layer (0: embedding)", ylabel="mean cosine of two tokens", ylim=(0, 1.2), yticks=[0, 0.2, 0.4, 0.6, 0.8, 1])
axes.set_xticks(range(model.config.layers + 1))
axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper left")
axes.set_title("“The cat sat on the mat because it was tired.” through MiniLM", fontsize=10)
figure.savefig("sentence.png", dpi=150)
end = data["cosine"].isel(step=model.config.layers)
print("sentence.png: mean cosine at the end " + ", ".join(f"{float(end.sel(variant=name)):.2f} ({name})" for name in SHOWN))
