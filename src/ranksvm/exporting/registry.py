"""The formats that models are written in."""

from ranksvm.exporting.c import C
from ranksvm.exporting.elasticsearch import ELASTICSEARCH, OPENSEARCH
from ranksvm.exporting.java import JAVA
from ranksvm.exporting.javascript import JAVASCRIPT
from ranksvm.exporting.json_model import JSON
from ranksvm.exporting.liblinear import LIBLINEAR
from ranksvm.exporting.libsvm import LIBSVM
from ranksvm.exporting.onnx import ONNX
from ranksvm.exporting.python import PYTHON
from ranksvm.exporting.request import Target
from ranksvm.exporting.solr import SOLR
from ranksvm.exporting.sql import SQL
from ranksvm.exporting.svm_light import SVM_RANK
from ranksvm.exporting.vespa import VESPA

__all__ = ["TARGETS"]

# Name -> format, in the order of --help.
TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *(SOLR, ELASTICSEARCH, OPENSEARCH, VESPA, ONNX, SQL, PYTHON, JAVASCRIPT, JAVA, C, JSON),
        *(SVM_RANK, LIBLINEAR, LIBSVM),
    )
}
