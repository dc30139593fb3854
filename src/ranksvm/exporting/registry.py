"""The formats that models are written in; a module is imported when its format is used, not to list formats."""

from typing import TYPE_CHECKING

from ranksvm._util.lazy import imported

if TYPE_CHECKING:
    from ranksvm.exporting.request import Target

__all__ = ["DESCRIPTIONS", "FORMATS", "target_of"]

# Description of some formats in the help -> name of each format -> its module in this folder, and the `Target` in it.
DESCRIPTIONS = {
    "models of their learning-to-rank plugins": {
        "solr": "solr.SOLR",
        "elasticsearch": "elasticsearch.ELASTICSEARCH",
        "opensearch": "elasticsearch.OPENSEARCH",
    },
    "weights of retrievers for hybrid search": {
        "elasticsearch-hybrid": "elasticsearch.ELASTICSEARCH_HYBRID",
        "opensearch-hybrid": "elasticsearch.OPENSEARCH_HYBRID",
        "vespa-hybrid": "vespa.VESPA_HYBRID",
    },
    "a rank profile": {"vespa": "vespa.VESPA"},
    'a graph of operators (needs pip install "ranksvm[onnx]")': {"onnx": "onnx.ONNX"},
    "a view of scored documents": {"sql": "sql.SQL"},
    "functions without dependencies": {
        "python": "python.PYTHON",
        "javascript": "javascript.JAVASCRIPT",
        "java": "java.JAVA",
        "c": "c.C",
    },
    "weights with names": {"json": "json_model.JSON"},
    "trees of additive models; LightGBM has linear models too": {
        "lightgbm": "lightgbm.LIGHTGBM",
        "xgboost": "xgboost.XGBOOST",
    },
    "model files of these programs": {
        "svm-rank": "svm_files.SVM_RANK",
        "liblinear": "svm_files.LIBLINEAR",
        "libsvm": "svm_files.LIBSVM",
    },
}
FORMATS = {name: place for formats in DESCRIPTIONS.values() for name, place in formats.items()}


def target_of(name: str) -> "Target":
    """The format with a given name.

    Parameters
    ----------
    name : str
        One of `FORMATS`.

    Returns
    -------
    Target
        The format.
    """
    module, attribute = FORMATS[name].split(".")
    return getattr(imported(f"ranksvm.exporting.{module}"), attribute)
