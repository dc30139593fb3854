"""Slow online learners in NumPy, which loop over the pairs; tests compare the compiled updates with them."""

import numpy as np

MASK = 2**64 - 1


def split_mix(state):
    """Generate the random numbers of SplitMix64 from an initial state."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def pairs_in_order(y, shuffle=False, seed=0, stream=0):
    """Pairs (preferred, other), with documents sorted by label and then by number; optionally Fisher-Yates shuffled."""
    order = sorted(range(len(y)), key=lambda i: -y[i])
    pairs = [(i, j) for a, i in enumerate(order) for j in order[a + 1 :] if y[i] > y[j]]
    if shuffle:
        first = next(split_mix(seed ^ (stream * 0xD1342543DE82EF95 & MASK)))
        random = split_mix(first)
        for t in range(len(pairs) - 1, 0, -1):
            s = (next(random) >> 32) * (t + 1) >> 32
            pairs[t], pairs[s] = pairs[s], pairs[t]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


class SolarFirst:
    """w += z h / (|z|^2 + 1 / (2 C a))."""

    def __init__(self, n, C):
        self.w, self.C, self.past = np.zeros(n), C, []

    def query(self):
        """Start a new query: nothing changes."""

    def pair(self, z, a=1.0):
        h = 1.0 - self.w @ z
        if h > 0.0 and a > 0.0:
            self.w = self.w + z * h / (z @ z + 0.5 / (self.C * a))
        self.past.append(self.w)


class SolarSecond(SolarFirst):
    """Weights w and matrix S, with S^-1 += z z' a / gamma; each step inverts the matrix again."""

    def __init__(self, n, gamma, diagonal=False):
        self.w, self.S, self.gamma, self.diagonal, self.past = np.zeros(n), np.eye(n), gamma, diagonal, []

    def pair(self, z, a=1.0):
        h = 1.0 - self.w @ z
        if h > 0.0 and a > 0.0:
            b = z @ self.S @ z + self.gamma / a
            self.w = self.w + h / b * self.S @ z
            if self.diagonal:
                self.S = np.diag(np.diag(self.S) - (np.diag(self.S) * z) ** 2 / b)
            else:
                self.S = np.linalg.inv(np.linalg.inv(self.S) + np.outer(z, z) * a / self.gamma)
        self.past.append(self.w)


class Perceptron(SolarFirst):
    """w += a z if w'z <= 0."""

    def __init__(self, n):
        self.w, self.past = np.zeros(n), []

    def pair(self, z, a=1.0):
        if a > 0.0 and self.w @ z <= 0.0:
            self.w = self.w + a * z
        self.past.append(self.w)


class Committee(Perceptron):
    """A perceptron, and those of its earlier weight vectors that stayed unchanged for the most pairs."""

    def __init__(self, n, size):
        super().__init__(n)
        self.size, self.members, self.survival = size, [(0, np.zeros(n))] * size, 0

    def pair(self, z, a=1.0):
        if a > 0.0 and self.w @ z <= 0.0:
            fewest = min(range(self.size), key=lambda k: self.members[k][0])
            if self.survival > self.members[fewest][0]:
                self.members[fewest] = self.survival, self.w
            self.survival = -1
        self.survival += 1
        super().pair(z, a)

    @property
    def coef(self):
        return sum(survival * w for survival, w in self.members) + self.survival * self.w


class PRank:
    """PRank: weights and thresholds, updated document by document."""

    def __init__(self, n, n_levels):
        self.w, self.thresholds, self.past = np.zeros(n), np.zeros(n_levels - 1), []

    def document(self, x, level):
        score = self.w @ x
        below = [r for r, b in enumerate(self.thresholds) if score < b]
        predicted = below[0] if below else len(self.thresholds)
        if predicted != level:
            side = np.where(level > np.arange(len(self.thresholds)), 1.0, -1.0)
            side[(score - self.thresholds) * side > 0.0] = 0.0
            self.w, self.thresholds = self.w + side.sum() * x, self.thresholds - side
        self.past.append(self.w)
        return predicted
