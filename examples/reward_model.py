"""A reward model on fixed embeddings: pairs of a chosen and a rejected answer, split by prompt.

The script generates embeddings, by default 200,000 pairs of 1,024 features; `--load FILE.npz` reads the arrays chosen,
rejected and prompt instead. One part of the prompts is used to choose C and another one to test; the model is trained
on the rest. The features are never copied as a whole: the script prints how much memory it used in addition to them.

python examples/reward_model.py
python examples/reward_model.py --pairs 2000 --features 32
"""

import argparse
import sys
import time

import numpy as np

from ranksvm import Preferences, RankSVM, RankSVMCV, metrics

CS = (1e-6, 1e-5, 1e-4, 1e-3)


def made(n_pairs: int, n_features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings of answers; a prompt has four pairs, and preferences follow a Bradley-Terry model."""
    random = np.random.default_rng(seed)
    w = random.normal(size=n_features).astype(np.float32) * np.float32(2.0 / np.sqrt(n_features))
    chosen = random.standard_normal((n_pairs, n_features), dtype=np.float32)
    rejected = random.standard_normal((n_pairs, n_features), dtype=np.float32)
    rewards = chosen @ w - rejected @ w
    swapped = np.flatnonzero(random.random(n_pairs) > 1.0 / (1.0 + np.exp(-rewards)))
    for rows in np.array_split(swapped, 1 + len(swapped) // 4096):
        chosen[rows], rejected[rows] = rejected[rows], chosen[rows]
    return chosen, rejected, np.arange(n_pairs) // 4


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes (Linux and macOS)."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200_000, help="number of pairs")
    parser.add_argument("--features", type=int, default=1024, help="number of features of an answer")
    parser.add_argument("--load", help="a file of NumPy with arrays chosen, rejected and prompt")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    if options.load:
        with np.load(options.load) as arrays:
            chosen, rejected, prompt = arrays["chosen"], arrays["rejected"], arrays["prompt"]
    else:
        chosen, rejected, prompt = made(options.pairs, options.features, options.seed)
    everything = Preferences(chosen, rejected, prompt=prompt)
    size = chosen.nbytes + rejected.nbytes
    print(f"{everything}, {size / 2**20:,.0f} MiB of features")

    # all pairs of a prompt go into the same part, and no part copies features
    place = np.unique(prompt, return_inverse=True)[1] % 10
    train, valid, test = (everything.taken(np.flatnonzero(part)) for part in (place < 8, place == 8, place == 9))

    before, started = peak_memory(), time.perf_counter()
    chosen_by_valid = RankSVMCV(Cs=CS).fit(train, eval_set=valid)
    C = chosen_by_valid.C_
    model = RankSVM(C=C, tol=1e-3).fit(train)
    seconds = time.perf_counter() - started
    print(f"C = {C:g}, {model.status_}, {seconds:.1f} s; additional memory: {_share(before, size)}")

    first, second = model.predict(test.chosen), model.predict(test.rejected)
    found = metrics.evaluate_pairs(first, second, test.prompt)
    low, high = metrics.accuracy_interval(found)
    print(
        f"accuracy on {test.n_pairs:,} pairs of other prompts: {found['pairwise_accuracy']:.4f} [{low:.4f}, {high:.4f}]"
    )

    model.calibrate(valid, cv=None)  # pairs that the weights have not seen
    probability = model.predict_proba(test.chosen, test.rejected)
    print(f"slope {model.calibration_slope_:.3f}, log loss {-np.log(probability).mean():.4f}, log 2 = {np.log(2):.4f}")
    print("\n| probability | pairs | share preferred |\n|---|---|---|")
    # count each pair once, in the order whose probability is above one half: the other order mirrors it
    sure, right = np.maximum(probability, 1 - probability), probability > 0.5
    for below, above in zip((0.5, 0.6, 0.7, 0.8, 0.9), (0.6, 0.7, 0.8, 0.9, 1.01), strict=True):
        inside = (sure >= below) & (sure < above)
        share = f"{right[inside].mean():.3f}" if inside.any() else "-"
        print(f"| {below:.1f} - {min(above, 1.0):.1f} | {inside.sum():,} | {share} |")


def _share(before: int, size: int) -> str:
    more = peak_memory() - before
    return f"{more / 2**20:,.0f} MiB, {more / size:.2f} of the size of the features"


if __name__ == "__main__":
    main()
