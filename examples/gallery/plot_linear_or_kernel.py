"""
Linear or kernel?
=================

Documents near a point are relevant, so no line separates them. A linear model learns nothing; a kernel model learns
the curved boundary. If relevance is linear, the kernel is no better.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from ranksvm import KernelRankSVM, RankSVM, make_ranking, metrics

made = make_ranking(n_queries=60, n_docs=20, n_features=2, random_state=0)
radius = np.linalg.norm(made.X, axis=1)
curved = np.digitize(-radius, np.quantile(-radius, [0.6, 0.9])).astype(float)
old, new = made.qid <= 40, made.qid > 40

models = {"linear": RankSVM(C=0.01), "kernel (rbf)": KernelRankSVM(C=0.1, gamma=0.5)}
for relevance, labels in {"linear": made.y, "curved": curved}.items():
    for name, model in models.items():
        model.fit(made.X[old], labels[old], qid=made.qid[old])
        found = metrics.evaluate(labels[new], model.predict(made.X[new]), made.qid[new], "pairwise_accuracy")
        print(f"{relevance} relevance, {name}: pairwise accuracy {found['pairwise_accuracy']:.3f}")

# %%
# The scores of both models, fitted to the curved relevance, over the plane of the two features.
grid = np.stack(np.meshgrid(*[np.linspace(-3, 3, 80)] * 2), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    scores = model.predict(grid.astype(made.X.dtype)).reshape(80, 80)
    axis.contourf(np.linspace(-3, 3, 80), np.linspace(-3, 3, 80), scores, levels=12, cmap="cividis")
    axis.scatter(*made.X[new][curved[new] == 2].T, s=14, color="white", edgecolor="black", label="relevant")
    axis.set(title=name, xlabel="feature 1", xlim=(-3, 3), ylim=(-3, 3))
axes[0].set_ylabel("feature 2")
axes[0].legend()
