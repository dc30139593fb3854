"""Write the model file that represents the current format version; run this script once for each new version.

Files of earlier versions are never changed, because all later versions of ranksvm must be able to load them.
"""

import pathlib

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ranksvm import RankSVM
from ranksvm.model_files import persistence

X = np.array([[0.0, 0.0], [2.0, 4.0]])
ranker = RankSVM(C=0.5).fit(X, [0, 1])
# numbers that are exact in binary, so that scores can be compared with ==
ranker.coef_ = np.array([0.25, 1.0])
scaler = StandardScaler(with_std=False)
model = Pipeline([("scaler", scaler.fit(X)), ("ranker", ranker)])
path = pathlib.Path(__file__).with_name(f"v{persistence.VERSION}.rsvm")
if path.exists():
    raise SystemExit(f"{path} is there already: released files never change.")
persistence.save(model, path)
print(path, model.predict([[1.0, 2.0], [3.0, 1.0]]))
