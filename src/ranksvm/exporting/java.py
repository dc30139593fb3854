"""A class of Java that scores documents, without dependencies."""

import json

from ranksvm.exceptions import OptionError
from ranksvm.exporting.code import (
    CODE_QUERY_METHODS,
    Scores,
    arrays_of,
    described,
    lines_of,
    numbers,
    test_entries,
    test_scores,
    tolerance,
)
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import identifier_checked

__all__ = ["JAVA"]

# An array takes about 8 bytes of bytecode a number, of which a method has 65,535, and a class as many constants.
LARGEST = 5_000

_STATIC = """
    /** Score of a document of {n} features. */
    public static double score(double[] document) {{
        checkLength(document);
        double sum = 0;
        for (int j = 0; j < WEIGHTS.length; j++) sum += WEIGHTS[j] * {value};
        return sum;
    }}

    /** Scores of documents. */
    public static double[] scores(double[][] documents) {{
        double[] sums = new double[documents.length];
        for (int i = 0; i < sums.length; i++) sums[i] = score(documents[i]);
        return sums;
    }}
"""
_BY_QUERY = """
    /** Scores of all documents of one query, which scale their features. */
    public static double[] scores(double[][] documents) {{
        int n = documents.length;
        double[] sums = new double[n];
        for (double[] document : documents) checkLength(document);
        for (int j = 0; n > 0 && j < WEIGHTS.length; j++) {{
            if (WEIGHTS[j] == 0) continue;
{body}
        }}
        return sums;
    }}
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
{spread}            for (int i = 0; i < n; i++) {{
                double centred = documents[i][j] - first - mean;
                sums[i] += WEIGHTS[j] * {value};
            }}"""
_SPREAD = """            double variance = 0;
            for (double[] row : documents) variance += (row[j] - first - mean) * (row[j] - first - mean) / n;
            double deviation = Math.sqrt(variance);
"""
_SCORES = Scores(_STATIC, _BY_QUERY, _MIN_MAX, _STANDARD, _SPREAD, "document[j]", "documents[i][j]")
_COMMON = """
    private static void checkLength(double[] document) {{
        if (document.length != WEIGHTS.length) {{
            throw new IllegalArgumentException(
                "a document has " + WEIGHTS.length + " features, got " + document.length);
        }}
    }}

    /** Throws unless three documents have the scores of the model. */
    public static void selfTest() {{
        double[][] documents = new double[{n_test}][WEIGHTS.length];
        double[][] values = {{
{entries}
        }};
        for (double[] value : values) documents[(int) value[0]][(int) value[1]] = value[2];
        double[] expected = {{{expected}}};
        double[] found = scores(documents);
        for (int i = 0; i < expected.length; i++) {{
            if (!(Math.abs(found[i] - expected[i]) <= {tolerance})) {{
                throw new IllegalStateException("expected " + expected[i] + ", got " + found[i]);
            }}
        }}
    }}

    public static void main(String[] arguments) {{
        selfTest();
        System.out.println("self-test passed");
    }}

    private {name}() {{}}
}}
"""
_RESERVED = (
    *("abstract", "assert", "boolean", "break", "byte", "case", "catch", "char", "class", "const", "continue"),
    *("default", "do", "double", "else", "enum", "extends", "final", "finally", "float", "for", "goto", "if"),
    *("implements", "import", "instanceof", "int", "interface", "long", "native", "new", "package", "private"),
    *("protected", "public", "return", "short", "static", "strictfp", "super", "switch", "synchronized", "this"),
    *("throw", "throws", "transient", "try", "void", "volatile", "while", "true", "false", "null", "_"),
    *("String", "Math", "System", "Double", "IllegalArgumentException", "IllegalStateException"),
)


def write(request: Request) -> bytes:
    """The class.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        The source, of a file called as the class.
    """
    if request.scoring.n_features > LARGEST:
        raise OptionError(
            f"a Java class cannot hold the arrays of {request.scoring.n_features:,} features, only about "
            f"{LARGEST:,}: export to onnx or json."
        )
    if request.file.endswith(".java") and request.file != f"{request.name}.java":
        raise OptionError(f"a Java file must be called like its class: {request.name}.java.")
    arrays = arrays_of(request)
    names = lines_of([json.dumps(name) for name in request.names], "            ")
    parts = [
        f"// {described(request)}",
        f"// Install: copy this file, {request.name}.java, to your sources; a package line may be added.",
        f"// Self-test: java {request.name}.java",
        f"public final class {request.name} {{",
        "    /** Names of the features, in the order of a document. */",
        "    public static final String[] NAMES = names();",
        *(f"    private static final double[] {name} = {name.lower()}();" for name in arrays),
        "",
        f"    private static String[] names() {{\n        return new String[] {{\n{names}\n        }};\n    }}",
    ]
    for name, values in arrays.items():
        body = numbers(values, "            ")
        parts.append(
            f"\n    private static double[] {name.lower()}() {{\n"
            f"        return new double[] {{\n{body}\n        }};\n    }}"
        )
    common = _COMMON.format(
        entries=test_entries(request, "{{{}, {}, {}}}", "            "),
        n_test=len(request.test.X),
        expected=test_scores(request),
        tolerance=tolerance(request),
        name=request.name,
    )
    return ("\n".join(parts) + "\n" + _SCORES.of(request) + common).encode()


JAVA = Target(
    "java",
    "Java, a class without dependencies",
    ".java",
    write,
    query_methods=CODE_QUERY_METHODS,
    check_name=lambda name: identifier_checked(name, "Java", _RESERVED),
)
