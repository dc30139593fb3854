"""A leaderboard from battles: a Bradley-Terry model with an effect of each competitor and weights for shared features.

Each row of X is a competitor. It has an indicator column of its own and features that all competitors have. A pair is a
winner and a loser, and its weight is the number of battles with this result; a tie counts as half a win for each side.
Scores are logits: the difference of two scores gives the probability that one competitor beats the other. The script
generates battles; `--load FILE.csv` reads lines "first,second,winner" instead, where winner is a name or "tie".

python examples/leaderboard.py
python examples/leaderboard.py --competitors 20 --battles 5000
"""

import argparse
import csv
from collections import Counter

import numpy as np
import scipy.sparse as sp

from ranksvm import RankSVM

# Elo points per logit
ELO = 400.0 / np.log(10.0)


def made(n_competitors: int, n_battles: int, seed: int = 0) -> tuple[list[tuple[str, str, str]], dict[str, np.ndarray]]:
    """Battles of competitors whose strength is a linear function of two features plus an individual effect."""
    random = np.random.default_rng(seed)
    names = [f"model-{number:02d}" for number in range(n_competitors)]
    features = random.normal(size=(n_competitors, 2))
    strength = features @ [0.8, -0.4] + 0.3 * random.normal(size=n_competitors)
    battles = []
    for _ in range(n_battles):
        i, j = random.choice(n_competitors, 2, replace=False)
        first_wins = random.random() < 1.0 / (1.0 + np.exp(strength[j] - strength[i]))
        winner = "tie" if random.random() < 0.1 else names[i if first_wins else j]
        battles.append((names[i], names[j], winner))
    return battles, dict(zip(names, features, strict=True))


def read(path: str) -> list[tuple[str, str, str]]:
    """Battles of a CSV file."""
    with open(path, newline="") as file:
        return [(first, second, winner) for first, second, winner in csv.reader(file)]


def counted(battles: list[tuple[str, str, str]]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names, pairs (winner, loser) of positions in the list of names, and the number of battles of each pair."""
    names = sorted({name for first, second, _ in battles for name in (first, second)})
    number = {name: place for place, name in enumerate(names)}
    counts: Counter[tuple[int, int]] = Counter()
    for first, second, winner in battles:
        i, j = number[first], number[second]
        if winner not in (first, second, "tie"):
            raise ValueError(f"the winner of {first} and {second} is {winner!r}: give one of the two, or 'tie'.")
        if winner in (first, "tie"):
            counts[i, j] += 0.5 if winner == "tie" else 1.0
        if winner in (second, "tie"):
            counts[j, i] += 0.5 if winner == "tie" else 1.0
    return names, np.array(list(counts)), np.array(list(counts.values()))


def competitors(names: list[str], features: dict[str, np.ndarray] | None = None) -> sp.csr_array:
    """A row for each name: its indicator column, and its features if there are any."""
    effects = sp.eye_array(len(names), format="csr")
    if not features:
        return effects
    return sp.hstack([effects, sp.csr_array(np.array([features[name] for name in names]))], format="csr")


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--competitors", type=int, default=12, help="number of competitors")
    parser.add_argument("--battles", type=int, default=3000, help="number of battles")
    parser.add_argument("--load", help="a CSV file of lines first,second,winner")
    parser.add_argument("-C", type=float, default=1.0, help="weight of a battle against 1/2 |w|^2")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    features = None
    if options.load:
        battles = read(options.load)
    else:
        battles, features = made(options.competitors, options.battles, options.seed)
    names, pairs, counts = counted(battles)
    X = competitors(names, features)
    model = RankSVM(options.C, loss="logistic", tol=1e-8).fit(X, pairs=pairs, pair_weight=counts)
    scores = model.predict(X)
    ratings = 1000.0 + ELO * (scores - scores.mean())
    best = np.argsort(-scores)
    wins = model.predict_proba(X[best], X[np.roll(best, -1)])

    print(f"{counts.sum():,.0f} battles of {len(names)} competitors, {len(pairs)} pairs (winner, loser)")
    print(f"{'rank':>4}  {'name':<12} {'rating':>7}  beats the next")
    for rank, i in enumerate(best):
        after = f"{wins[rank]:14.3f}" if rank + 1 < len(best) else ""
        print(f"{rank + 1:>4}  {names[i]:<12} {ratings[i]:>7.0f}  {after}".rstrip())


if __name__ == "__main__":
    main()
