"""Fuzz certificates: check those of extreme problems in extended precision, with a list of all pairs."""

import contextlib
import warnings

import numpy as np

import ranksvm
from fuzz.mutations import pick
from oracle import pairs_of
from ranksvm.additive.columns import variable_support
from ranksvm.estimators.base.ranker import additive_options
from ranksvm.exceptions import RankSVMError
from ranksvm.fits.additive import fitted_terms

LONG = np.longdouble
# Relative round-off of these checks: sums of up to a few thousand terms with 64 bits of mantissa.
OWN_ROUND_OFF = LONG(1e-16)
# Limits of the search for a better dual point: visits to each pair, and visits in total.
EPOCHS = 300
MAX_VISITS = 20_000


class Problem:
    """A RankSVM in extended precision: pairs, weights, and products of the documents in the space of the model.

    Parameters
    ----------
    y, qid : ndarray
        Labels and queries, or y is None.
    pairs : ndarray or None
        Listed pairs.
    gram : callable
        ``gram()`` returns the inner products of documents, shape (n_rows, n_rows). It is called only if a better dual
        point is needed. Then the attribute ``at`` must be set, too: ``at(beta)`` returns the scores and the squared
        norm of the model with these sums of alpha for each document.
    C : float
        Weight of a pair.
    loss, width : str, float
        The loss, and the width of a Huberized hinge.
    choice : dict
        Selection and weighting of pairs.
    weights : dict
        Weights of rows, queries or pairs.
    """

    def __init__(self, y, qid, pairs, gram, C, loss, width, choice, weights):
        n = len(qid)
        v, q, p = (LONG(weights.get(name, np.ones(n))) for name in ("sample_weight", "query_weight", "propensity"))
        there = np.flatnonzero(v)
        if pairs is None:
            i, j = pairs_of(y[there], qid[there], choice["pair_selection"])
            self.i, self.j = there[i], there[j]
        else:
            self.i, self.j = pairs.T
        own = LONG(weights.get("pair_weight", np.ones(len(self.i)))) * v[self.i] * v[self.j]
        a = own * q[self.i] / p[self.i]
        weighting = choice["pair_weighting"]
        if weighting == "per_query":
            total = np.zeros(qid.max() + 1, dtype=LONG)
            np.add.at(total, qid[self.i], own)
            a = a / total[qid[self.i]]
        elif weighting == "label_gap":
            a = a * (LONG(y[self.i]) - LONG(y[self.j]))
        elif weighting == "gain_gap":
            gain = np.exp2(LONG(y) - LONG(y[there].max()))
            a = a * (gain[self.i] - gain[self.j])
        present = a > 0
        self.i, self.j, self.a = self.i[present], self.j[present], a[present]
        # size of the terms that cancel in these computations, for the bound on their round-off
        self.own_size = LONG(0)
        self.n, self.gram, self.C, self.loss, self.width = n, gram, LONG(C), loss, LONG(width)

    def primal(self, scores, norm):
        """The objective of a model with these scores and this squared norm."""
        h = np.maximum(LONG(0), 1 - (scores[self.i] - scores[self.j]))
        if self.loss == "squared_hinge":
            h = h * h
        elif self.loss == "huber":
            inner = np.minimum(h, self.width)
            h = inner * (h - inner / 2) / self.width
        return norm / 2 + self.C * (self.a * h).sum()

    def alpha(self, scores, width):
        """The feasible dual variables that these scores imply."""
        h = np.maximum(LONG(0), 1 - (scores[self.i] - scores[self.j]))
        if self.loss == "squared_hinge":
            return 2 * self.C * self.a * h
        return self.C * self.a * np.minimum(h / LONG(width), 1)

    def per_document(self, alpha):
        """For each document: the sum of alpha where it is preferred, minus the sum where it is the other one."""
        beta = np.zeros(self.n, dtype=LONG)
        np.add.at(beta, self.i, alpha)
        np.subtract.at(beta, self.j, alpha)
        return beta

    def dual(self, alpha, norm):
        """A lower bound on the optimum, from feasible alpha and the squared norm of their model."""
        return (alpha - self._ridge() / 2 * alpha * alpha).sum() - norm / 2

    def better_dual(self, alpha, enough):
        """The best dual and primal values of a coordinate ascent from alpha, until one of them passes ``enough``."""
        Q, ridge, alpha = self.gram(), self._ridge(), alpha.copy()
        upper = self.C * self.a
        s = Q @ self.per_document(alpha)
        curvature = Q[self.i, self.i] + Q[self.j, self.j] - 2 * Q[self.i, self.j] + ridge
        primal, dual = LONG(np.inf), LONG(-np.inf)
        epochs = min(EPOCHS, 1 + MAX_VISITS // len(alpha))
        for epoch in range(epochs):
            for pair, (i, j) in enumerate(zip(self.i, self.j, strict=True)):
                slope = 1 - (s[i] - s[j]) - ridge[pair] * alpha[pair]
                if curvature[pair] > 0:
                    new = alpha[pair] + slope / curvature[pair]
                else:
                    new = upper[pair] if slope > 0 else alpha[pair]
                new = max(LONG(0), new if self.loss == "squared_hinge" else min(new, upper[pair]))
                if new != alpha[pair]:
                    s += (new - alpha[pair]) * (Q[i] - Q[j])
                    alpha[pair] = new
            if epoch % 20 == 19 or epoch == epochs - 1:
                beta = self.per_document(alpha)
                s, norm = self.at(beta)
                dual, primal = max(dual, self.dual(alpha, norm)), min(primal, self.primal(s, norm))
                if dual >= enough or primal < enough:
                    break
        return dual, primal

    def _ridge(self):
        if self.loss == "hinge":
            return np.zeros(len(self.a), dtype=LONG)
        curvature = LONG(2) if self.loss == "squared_hinge" else 1 / self.width
        return 1 / (curvature * self.C * self.a)


def judge(problem, objective, gap, converged, tol, scores, norm, alphas):
    """Fail if a certificate is false. Scores and norm (the squared norm) of the model are in extended precision.

    ``alphas`` are dual variables that may prove the certificate.
    """
    objective, gap = LONG(objective), LONG(gap)
    true = problem.primal(scores, norm)
    own = OWN_ROUND_OFF * (abs(true) + abs(objective) + problem.own_size)
    assert gap >= 0
    assert gap <= tol * objective * (1 + OWN_ROUND_OFF) or not converged, "converged_ without a gap that meets tol"
    assert abs(objective - true) <= gap + own, (
        f"objective_ {objective} is {true}: off by {abs(objective - true) / true:.2e} of it, gap {gap / true:.2e}"
    )
    enough = max(true, objective) - gap - own
    best = LONG(-np.inf)
    for alpha in alphas:
        beta = problem.per_document(alpha)
        best = max(best, problem.dual(alpha, problem.at(beta)[1]))
    if best >= enough:
        return "proven"
    best, primal = problem.better_dual(alphas[-1], enough)
    assert primal >= enough, (
        f"the optimum is {primal} or less, the objective {true}: above it by {(true - primal) / true:.2e}, gap "
        f"{gap / true:.2e} of the objective"
    )
    return "proven" if best >= enough else "open"


class Target:
    """Fit models to extreme problems and check their certificates."""

    def __init__(self, folder):
        warnings.simplefilter("ignore")
        self.outcomes = {}

    def run(self, random):
        """Fit one model and check its certificate."""
        data = problem_data(random)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            with contextlib.suppress(RankSVMError):
                kind = pick(random, [linear] * 10 + [additive] * 4 + [kernel] * 6 + [low_rank])
                outcome = kind(random, *data)
                self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1


def problem_data(random):
    """Features, labels, queries."""
    n = int(random.integers(2, 25)) if random.random() < 0.9 else int(random.integers(70, 110))
    n_features = int(random.integers(1, 7)) if random.random() < 0.9 else int(random.integers(10, 60))
    X = random.normal(size=(n, n_features))
    kind = pick(random, ["normal", "integer", "collinear", "unscaled", "repeated rows", "sparse", "offset", "large"])
    if kind == "integer":
        X = random.integers(-2, 3, size=X.shape).astype(float)
    elif kind == "collinear":
        X = X[:, :1] * random.normal(size=n_features) + pick(random, [0.0, 1e-7]) * X
    elif kind == "unscaled":
        X *= 10.0 ** random.integers(-3, 5, n_features)
    elif kind == "repeated rows":
        X = X[random.integers(0, max(1, n // 3), n)]
    elif kind == "sparse":
        X *= random.random(X.shape) < 0.2
    elif kind == "offset":
        X += 10.0 ** random.integers(0, 6)
    elif kind == "large":
        X *= 10.0 ** random.integers(-8, 9)
    X = X.astype(pick(random, [np.float32, np.float64]))
    n_levels = pick(random, [2, 3, 20])
    if random.random() < 0.5:  # separable, if there are enough features
        along = X.astype(float) @ random.normal(size=n_features)
        y = np.argsort(np.argsort(along)) * n_levels // n
    else:
        y = random.integers(0, n_levels, n)
    qid = random.integers(0, pick(random, [1, 2, 5]), n) if n < 70 else np.zeros(n, dtype=int)
    qid[:2] = 0
    if y[0] == y[1]:
        y[0] += 1
    return X, y, qid


def _settings(random, n, qid):
    """Random options that linear and kernel models share, and random weights."""
    spread = pick(random, [0.0, 1.0, 6.0])
    weights = {}
    if random.random() < 0.3:
        weights["sample_weight"] = 10.0 ** random.uniform(-spread, spread, n) * (random.random(n) < 0.9)
        weights["sample_weight"][:2] = 1.0
    if random.random() < 0.2:
        weights["propensity"] = 10.0 ** random.uniform(-spread, 0.0, n)
    if random.random() < 0.2:
        weights["query_weight"] = (10.0 ** random.uniform(-spread, spread, 5))[qid]
    options = {
        "C": 10.0 ** (random.uniform(-12, 12) if random.random() < 0.5 else random.uniform(-3, 4)),
        "loss": pick(random, ["squared_hinge", "hinge", "hinge", "huber"]),
        "huber_width": pick(random, [1e-3, 0.5, 3.0]),
        "tol": 10.0 ** -random.integers(3, 11),
        "max_iter": pick(random, [3, 200, 200]),
        "n_jobs": 1,
    }
    choice = {
        "pair_weighting": pick(random, ["uniform", "uniform", "per_query", "label_gap", "gain_gap"]),
        "pair_selection": pick(random, ["all", "all", "adjacent"]),
    }
    return options, choice, weights


def _listed(random, y, qid, choice, weights):
    """The arguments that define the pairs: labels, or a list of pairs."""
    if random.random() < 0.8:
        return {"y": y}, None
    i, j = pairs_of(y, qid)
    chosen = random.integers(0, len(i), int(random.integers(1, 2 * len(i) + 1)))
    pairs = np.column_stack((i, j))[chosen]
    choice.update(pair_weighting="uniform", pair_selection="all")
    weights.pop("sample_weight", None)
    if random.random() < 0.5:
        weights["pair_weight"] = 10.0 ** random.uniform(-3, 3, len(pairs))
    return {"pairs": pairs}, pairs


def _judge(model, problem, options, scores, norm, more):
    width = model.width_ if model.width_ is not None else 1.0
    alphas = [problem.alpha(scores, width)]
    alphas += [problem.alpha(each, width) for each in more]
    kept = getattr(model, "pair_alpha_", None)
    if kept is not None and len(kept) == len(problem.a):
        upper = np.inf if problem.loss == "squared_hinge" else problem.C * problem.a
        alphas.insert(0, np.minimum(LONG(kept), upper))
    found = model.objective_, model.duality_gap_, model.converged_, options["tol"]
    return judge(problem, *found, scores, norm, alphas)


def linear(random, X, y, qid):
    """Fit a linear model; raise AssertionError if its certificate is false."""
    options, choice, weights = _settings(random, len(y), qid)
    given, pairs = _listed(random, y, qid, choice, weights)
    solver = pick(random, ["auto", "newton", "tron", "dual"])
    model = ranksvm.RankSVM(solver=solver, **options, **choice).fit(X, qid=qid, **given, **weights)
    long_X, w = LONG(X), LONG(model.coef_)
    # center the columns: only differences of rows count, and an offset would only add round-off
    long_X = long_X - long_X.mean(axis=0)
    problem = Problem(
        y, qid, pairs, lambda: long_X @ long_X.T, options["C"], options["loss"], options["huber_width"], choice, weights
    )
    problem.at = lambda beta: through_weights(long_X, beta)
    return _judge(model, problem, options, long_X @ w, w @ w, [])


def additive(random, X, y, qid):
    """Fit an additive model, and check it as a linear model of the columns of its design matrix."""
    options, choice, weights = _settings(random, len(y), qid)
    given, pairs = _listed(random, y, qid, choice, weights)
    params = options | choice
    params["solver"] = pick(random, ["auto", "tron"])
    params["step_weight"] = pick(random, [0.0, 0.5, 1.0, 100.0])
    params["max_bins"] = pick(random, [2, 8, 200])
    n_features = X.shape[1]
    if n_features > 1 and random.random() < 0.5:
        params["interactions"] = [(0, n_features - 1)]
    model = ranksvm.AdditiveRankSVM(**params).fit(X, qid=qid, **given, **weights)
    function = model._trained_function()
    terms = fitted_terms(function, additive_options(model))
    columns = [LONG(X) * LONG(terms.feature_scales)]
    for bins, values, place in zip(terms.bins, X.T, terms.columns, strict=False):
        support = variable_support(bins).T[bins.levels_of(values)]
        columns.append(support * LONG(terms.scales[place[5] : place[5] + bins.n_levels - 1]))
    for pair, place in zip(terms.pairs, terms.columns[n_features:], strict=True):
        first = variable_support(pair.first_bins).T[pair.first_bins.levels_of(X[:, pair.first])]
        second = variable_support(pair.second_bins).T[pair.second_bins.levels_of(X[:, pair.second])]
        support = (first[:, :, None] & second[:, None, :]).reshape(len(X), -1)
        columns.append(support * LONG(terms.scales[place[5] : place[5] + pair.n_variables]))
    Z, w = np.hstack(columns), LONG(terms.variables_of(function))
    Z = Z - Z.mean(axis=0)
    problem = Problem(
        y, qid, pairs, lambda: Z @ Z.T, options["C"], options["loss"], options["huber_width"], choice, weights
    )
    problem.at = lambda beta: through_weights(Z, beta)
    return _judge(model, problem, options, Z @ w, w @ w, [])


def through_weights(X, beta):
    """Scores and squared norm of the weights that the sums of alpha imply.

    Both are computed from the rounded weights, so that they are consistent even if alpha is very large.
    """
    w = beta @ X
    return X @ w, w @ w


def kernel(random, X, y, qid):
    """Fit a kernel model, and check its certificate."""
    options, choice, weights = _settings(random, len(y), qid)
    given, pairs = _listed(random, y, qid, choice, weights)
    name = pick(random, ["rbf", "rbf", "linear", "laplacian", "poly", "cosine", "precomputed"])
    gamma = 10.0 ** random.uniform(-6, 2)
    degree = int(random.integers(1, 4))
    Q = exact_kernel(X, name if name != "precomputed" else "rbf", gamma, degree)
    features = X
    if name == "precomputed":
        features = Q.astype(pick(random, [np.float32, np.float64]))
        Q = LONG(features)
    model = ranksvm.KernelRankSVM(
        kernel=name,
        gamma=gamma,
        degree=degree,
        kernel_dtype=pick(random, ["float32", "float32", "float64"]),
        solver=pick(random, ["auto", "newton", "tron"]),
        **options,
        **choice,
    ).fit(features, qid=qid, **given, **weights)
    b = np.zeros(len(y), dtype=LONG)
    b[model.support_] = LONG(model.dual_coef_)
    scores = Q @ b
    problem = Problem(y, qid, pairs, lambda: Q, options["C"], options["loss"], options["huber_width"], choice, weights)
    if name == "linear":
        long_X, w = LONG(X) - LONG(X).mean(axis=0), b @ LONG(X)
        problem.gram = lambda: long_X @ long_X.T
        problem.at = lambda beta: through_weights(long_X, beta)
        return _judge(model, problem, options, long_X @ w, w @ w, [])
    problem.at = lambda beta: (Q @ beta, beta @ (Q @ beta))
    size = np.abs(b).sum() + max(np.abs(problem.per_document(problem.alpha(scores, model.width_ or 1.0))).sum(), 0)
    problem.own_size = 1e-2 * np.abs(Q).max() * size * size
    return _judge(model, problem, options, scores, b @ scores, [])


def exact_kernel(X, kernel, gamma, degree):
    """The kernel matrix in extended precision."""
    X, gamma = LONG(X), LONG(gamma)
    if kernel == "rbf":
        return np.exp(-gamma * ((X[:, np.newaxis] - X) ** 2).sum(axis=2))
    if kernel == "laplacian":
        return np.exp(-gamma * np.abs(X[:, np.newaxis] - X).sum(axis=2))
    products = X @ X.T
    if kernel == "poly":
        return (gamma * products + 1) ** degree
    if kernel == "cosine":
        lengths = np.sqrt(np.diagonal(products))
        lengths = np.where(lengths > 0, lengths, 1)
        return products / lengths[:, np.newaxis] / lengths
    return products


def low_rank(random, X, y, qid):
    """Fit a regularized low-rank model, and check its certificate."""
    if len(y) > 30:
        return "skipped"
    C, gamma, lam = 10.0 ** random.uniform([-6, -3, -3], [6, 3, 3])
    tol = 10.0 ** -random.integers(2, 9)
    how = {"C": C, "gamma": gamma, "lam": lam, "n_jobs": 1}
    model = ranksvm.RegularizedRankSVM(tol=tol, max_iter=100, **how).fit(X, y, qid=qid)
    value, own = low_rank_value(model, X, y, qid)
    objective, gap = LONG(model.objective_), model.duality_gap_
    assert abs(value - objective) <= gap + own, f"objective_ {objective} is {value}, gap {gap}"
    other = ranksvm.RegularizedRankSVM(tol=1e-10, max_iter=300, **how).fit(X, y, qid=qid)
    better, own_better = low_rank_value(other, X, y, qid)
    assert max(value, objective) - better <= gap + own + own_better, (
        f"the optimum is {better} or less, the objective {value}: gap {gap}"
    )
    return "not refuted"


def low_rank_value(model, X, y, qid):
    """The objective of a regularized model in extended precision, and a bound on its error.

    The model implies the dual variables: they are margins divided by 2 lam, so the round-off of the margins limits
    their precision. Singular vectors are orthonormal only to the precision of float64.
    """
    gamma, lam = (LONG(model.fitted_params_[name]) for name in ("gamma", "lam"))
    duals, matrices = (of(np.asarray(X, dtype=np.float64), y, qid) for of in (model.dual_coef, model.low_rank_coef))
    beta, rest, free = np.zeros(len(y), dtype=LONG), LONG(0), 0
    for dual, matrix in zip(duals, matrices, strict=True):
        alpha = LONG(dual.alpha)
        free += np.count_nonzero((alpha > 0) & (alpha < model.fitted_params_["C"]))
        np.add.at(beta, dual.preferred_rows, alpha.sum(axis=1))
        np.subtract.at(beta, dual.other_rows, alpha.sum(axis=0))
        rest += lam * ((alpha - LONG(matrix.alpha)) ** 2).sum() - alpha.sum()
    w = beta @ LONG(X)
    nuclear = gamma * LONG(model.singular_values_).sum()
    size = (np.abs(LONG(X)) @ np.abs(LONG(model.coef_))).max()
    moved = free * LONG(np.finfo(np.float64).eps) * (X.shape[1] + 8) * (1 + size) / lam
    shift = 2 * np.sqrt((LONG(X) ** 2).sum(axis=1).max()) * moved
    slope = np.sqrt(((w - model.coef_) ** 2).sum())
    own = LONG(1e-13) * nuclear + 3 * lam * moved * moved + (slope + shift / 2) * shift
    return w @ w / 2 + rest + nuclear, own
