"""The numbers that Xu et al. (IEEE TKDE 31, 2019) print."""

__all__ = ["COUNTS", "FEW_DIMENSIONS", "PAIRS_PER_DOCUMENT", "PLAIN_ROW", "QUALITY", "RANKS", "REPRODUCED"]

# Table 1: documents, queries, pairs.
COUNTS = {"OHSUMED": (16_140, 106, 582_588), "MQ2008": (15_211, 784, 80_925)}
# Table 1: number of pairs per document, averaged over the queries.
PAIRS_PER_DOCUMENT = {"OHSUMED": 30.6, "MQ2008": 2.45}
# MAP, NDCG@1, NDCG@3 and NDCG@5, means of five folds.
QUALITY = {
    "OHSUMED": {
        "RSVM (SVM-light)": (0.4427, 0.5289, 0.4553, 0.4392),
        "LambdaMART": (0.4096, 0.5166, 0.4443, 0.4366),
        "XGBoost": (0.4301, 0.5325, 0.4758, 0.4485),
        "Factorized RSVM": (0.4518, 0.5671, 0.5113, 0.4889),
        "Regularized RSVM": (0.4480, 0.5553, 0.4946, 0.4723),
    },
    "MQ2008": {
        "RSVM (SVM-light)": (0.4713, 0.3686, 0.4277, 0.4730),
        "LambdaMART": (0.4731, 0.3622, 0.4299, 0.4714),
        "XGBoost": (0.4790, 0.3839, 0.4293, 0.4764),
        "Factorized RSVM": (0.4723, 0.3690, 0.4361, 0.4764),
        "Regularized RSVM": (0.4755, 0.3690, 0.4315, 0.4719),
    },
}
# The row that each model reproduces; `models.MODELS` has the names of the models.
PLAIN_ROW = "RSVM (SVM-light)"
REPRODUCED = {
    "factorized": "Factorized RSVM",
    "regularized": "Regularized RSVM",
    "lightgbm": "LambdaMART",
    "xgboost": "XGBoost",
}
# Fig. 2a: number of queries of OHSUMED fold 1 in which at most 10 % of the dimensions hold 90 % of the energy.
FEW_DIMENSIONS = 16
# Table 6, OHSUMED fold 1: query -> documents, pairs, ranks of the factorized, the regularized and the plain model.
RANKS = {49: (109, 420, 5, 5, 8), 45: (205, 7482, 5, 6, 92), 35: (320, 27153, 5, 15, 234)}
