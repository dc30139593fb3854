"""The classes of scikit-learn that a model file may contain, and the schemas of their fitted attributes."""

from ranksvm.model_files.schema import Array, Field, Number, Schema, Texts

__all__ = ["SKLEARN_CLASSES", "SKLEARN_SCHEMAS"]

_FEATURES: Schema = {
    "n_features_in_": Number(integer=True, minimum=1, size="n_features"),
    "feature_names_in_": Texts("n_features", required=False),
}


def _columns(*names: str, nullable: bool = False) -> dict[str, Field]:
    return {name: Array("n_features", dtype="floating", nullable=nullable) for name in names}


# Public name -> module.
SKLEARN_CLASSES = {
    "StandardScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "MaxAbsScaler": "sklearn.preprocessing",
    "RobustScaler": "sklearn.preprocessing",
    "Pipeline": "sklearn.pipeline",
}
SKLEARN_SCHEMAS: dict[str, Schema] = {
    "StandardScaler": {
        **_FEATURES,
        **_columns("mean_", "var_", "scale_", nullable=True),
        "n_samples_seen_": Number(minimum=0.0),
    },
    "MinMaxScaler": {
        **_FEATURES,
        **_columns("min_", "scale_", "data_min_", "data_max_", "data_range_"),
        "n_samples_seen_": Number(minimum=0.0),
    },
    "MaxAbsScaler": {**_FEATURES, **_columns("max_abs_", "scale_"), "n_samples_seen_": Number(minimum=0.0)},
    "RobustScaler": {**_FEATURES, **_columns("center_", "scale_", nullable=True)},
    "Pipeline": {},
}
