"""A class of Java that scores documents, without dependencies."""

import json

from ranksvm.exceptions import OptionError
from ranksvm.exporting.code import AdditiveTemplates, Language, ScoringTemplates
from ranksvm.exporting.request import Request

__all__ = ["JAVA"]

# Maximum number of features. An array takes about 8 bytes of bytecode for each number; a method has at most 65,535
# bytes, and a class as many constants.
LARGEST = 5_000
# Maximum number of functions in an additive model, each of which takes 7 integers.
MAX_TABLES = 1_000

_FILE = """// $about
// Install: copy this file, $name.java, to your sources; a package line may be added.
// Self-test: java $name.java
public final class $name {
    /** Names of the features, in the order of a document. */
    public static final String[] NAMES = names();
$declarations

    private static String[] names() {
        return new String[] {
$names
        };
    }
$arrays
$scores
    private static void checkLength(double[] document) {
        if (document.length != WEIGHTS.length) {
            throw new IllegalArgumentException(
                "a document has " + WEIGHTS.length + " features, got " + document.length);
        }
    }

    /** Numbers, which Java keeps as text: a method has at most about 5,000. */
    private static double[] numbersOf(String... texts) {
        return java.util.Arrays.stream(texts).flatMap(text -> java.util.Arrays.stream(text.split(" ")))
            .filter(word -> !word.isEmpty()).mapToDouble(Double::parseDouble).toArray();
    }

    /** Throws unless three documents have the scores of the model. */
    public static void selfTest() {
        double[][] documents = new double[$n_test][WEIGHTS.length];
        double[] values = numbersOf(
$entries);
        for (int i = 0; i < values.length; i += 3) documents[(int) values[i]][(int) values[i + 1]] = values[i + 2];
        double[] expected = {$expected};
        double[] found = scores(documents);
        for (int i = 0; i < expected.length; i++) {
            if (!(Math.abs(found[i] - expected[i]) <= $tolerance)) {
                throw new IllegalStateException("expected " + expected[i] + ", got " + found[i]);
            }
        }
    }

    public static void main(String[] arguments) {
        selfTest();
        System.out.println("self-test passed");
    }

    private $name() {}
}
"""
_ARRAY = """
    private static $type[] $function() {
        return new $type[] {
$numbers
        };
    }"""
_LONG_ARRAY = """
    private static double[] $function() {
        return numbersOf(
$texts);
    }"""
_STATIC = """
    /** Score of a document of $n features. */
    public static double score(double[] document) {
        checkLength(document);
        double sum = 0;
        for (int j = 0; j < WEIGHTS.length; j++) sum += WEIGHTS[j] * $value;
        return sum;
    }

    /** Scores of documents. */
    public static double[] scores(double[][] documents) {
        double[] sums = new double[documents.length];
        for (int i = 0; i < sums.length; i++) sums[i] = score(documents[i]);
        return sums;
    }
"""
_BY_QUERY = """
    /** Scores of all documents of one query, which scale their features. */
    public static double[] scores(double[][] documents) {
        int n = documents.length;
        double[] sums = new double[n];
        for (double[] document : documents) checkLength(document);
        for (int j = 0; n > 0 && j < WEIGHTS.length; j++) {
            if (WEIGHTS[j] == 0) continue;
$body
        }
        return sums;
    }
"""
_MIN_MAX = """            double low = Double.POSITIVE_INFINITY, high = Double.NEGATIVE_INFINITY;
            for (double[] row : documents) {
                low = Math.min(low, row[j]);
                high = Math.max(high, row[j]);
            }
            if (!(high > low)) continue;
            for (int i = 0; i < n; i++) sums[i] += WEIGHTS[j] * ((documents[i][j] - low) / (high - low));"""
_STANDARD = """            // relative to the first document, so that a constant feature is exactly 0
            double first = documents[0][j], mean = 0;
            for (double[] row : documents) mean += (row[j] - first) / n;
$spread            for (int i = 0; i < n; i++) {
                double centered = documents[i][j] - first - mean;
                sums[i] += WEIGHTS[j] * $value;
            }"""
_SPREAD = """            double variance = 0;
            for (double[] row : documents) variance += (row[j] - first - mean) * (row[j] - first - mean) / n;
            double deviation = Math.sqrt(variance);
"""
_SUMS = """
    /** How many of its cuts a value reaches; a missing value (NaN) none. */
    private static int interval(double value, int first, int n) {
        int low = first, high = first + n;
        while (low < high) {
            int middle = (low + high) / 2;
            if (value >= CUTS[middle]) low = middle + 1;
            else high = middle;
        }
        return low - first;
    }

    private static double sumOf(double[] document$scaled) {
        double sum = 0;
        for (int j = 0; j < WEIGHTS.length; j++) {
            double value = $value;
            if (value == value || MISSING[j] == 0) sum += WEIGHTS[j] * value;
        }
        for (int t = 0; t < TABLES.length; t += 7) {
            int j = TABLES[t];
            int place = interval($value, TABLES[t + 1], TABLES[t + 2]) * (TABLES[t + 5] + 1);
            j = TABLES[t + 3];
            place += interval($value, TABLES[t + 4], TABLES[t + 5]);
            sum += VALUES[TABLES[t + 6] + place];
        }
        return sum;
    }
"""
_ADDITIVE_STATIC = """
    /** Score of a document of $n features; NaN is a missing value. */
    public static double score(double[] document) {
        checkLength(document);
        return sumOf(document);
    }

    /** Scores of documents. */
    public static double[] scores(double[][] documents) {
        double[] sums = new double[documents.length];
        for (int i = 0; i < sums.length; i++) sums[i] = score(documents[i]);
        return sums;
    }
"""
_ADDITIVE_BY_QUERY = """
    /** Scores of all documents of one query, which scale their features. */
    public static double[] scores(double[][] documents) {
        int n = documents.length;
        double[] sums = new double[n], shift = new double[WEIGHTS.length], scale = new double[WEIGHTS.length];
        for (double[] document : documents) checkLength(document);
        for (int j = 0; n > 0 && j < WEIGHTS.length; j++) {
$statistics
        }
        for (int i = 0; i < n; i++) sums[i] = sumOf(documents[i], shift, scale);
        return sums;
    }
"""
_ADDITIVE_MIN_MAX = """            double low = Double.POSITIVE_INFINITY, high = Double.NEGATIVE_INFINITY;
            for (double[] row : documents) {
                low = Math.min(low, row[j]);
                high = Math.max(high, row[j]);
            }
            shift[j] = low;
            scale[j] = high > low ? high - low : 1;"""
_ADDITIVE_STANDARD = """            // relative to the first document, so that a constant feature is exactly 0
            double first = documents[0][j], mean = 0, variance = 0;
            for (double[] row : documents) mean += (row[j] - first) / n;
            for (double[] row : documents) variance += (row[j] - first - mean) * (row[j] - first - mean) / n;
            shift[j] = $shift;
            scale[j] = $scale;"""
_RESERVED = (
    *("abstract", "assert", "boolean", "break", "byte", "case", "catch", "char", "class", "const", "continue"),
    *("default", "do", "double", "else", "enum", "extends", "final", "finally", "float", "for", "goto", "if"),
    *("implements", "import", "instanceof", "int", "interface", "long", "native", "new", "package", "private"),
    *("protected", "public", "return", "short", "static", "strictfp", "super", "switch", "synchronized", "this"),
    *("throw", "throws", "transient", "try", "void", "volatile", "while", "true", "false", "null", "_"),
    *("permits", "record", "sealed", "var", "yield"),
    *("String", "Math", "System", "Double", "IllegalArgumentException", "IllegalStateException", "java"),
)
_JAVA = Language(
    title="Java",
    reserved=_RESERVED,
    file=_FILE,
    array=_ARRAY,
    declaration="    private static final $type[] $array = $function();",
    long_array=_LONG_ARRAY,
    scores=ScoringTemplates(
        _STATIC, _BY_QUERY, _MIN_MAX, _STANDARD, _SPREAD, value="document[j]", value_of_query="documents[i][j]"
    ).functions,
    additive=AdditiveTemplates(
        _SUMS,
        _ADDITIVE_STATIC,
        _ADDITIVE_BY_QUERY,
        _ADDITIVE_MIN_MAX,
        _ADDITIVE_STANDARD,
        value="document[j]",
        scaled=", double[] shift, double[] scale",
        mean="first + mean",
        deviation="variance > 0 ? Math.sqrt(variance) : 1",
    ).functions,
    literal=json.dumps,
    entry_indent="            ",
    indent="            ",
)


def _write(request: Request) -> bytes:
    """The class; its file must have the same name."""
    if request.scoring.n_features > LARGEST:
        raise OptionError(
            f"a Java class cannot hold the arrays of {request.scoring.n_features:,} features, only about "
            f"{LARGEST:,}: export to onnx or json."
        )
    if request.additive is not None and len(request.additive.tables) > MAX_TABLES:
        raise OptionError(
            f"a Java class cannot hold {len(request.additive.tables):,} functions of features, only about "
            f"{MAX_TABLES:,}: export to onnx or json."
        )
    if request.file.endswith(".java") and request.file != f"{request.name}.java":
        raise OptionError(f"a Java file must be called like its class: {request.name}.java.")
    return _JAVA.write(request)


JAVA = _JAVA.target("java", ".java", _write)
