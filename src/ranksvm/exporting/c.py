"""C functions that score documents, and need only the C library."""

import json

from ranksvm.exporting.code import AdditiveTemplates, Language, ScoringTemplates

__all__ = ["C"]

# The code is valid in C89 and later.
_FILE = """/* $about
   Install: compile this file with your sources, link with -lm, and declare
     ${single}void ${name}_scores(const double *documents, size_t n_documents, double *scores);
     extern const char *const ${name}_names[$n];
   Self-test: cc -DRANKSVM_SELF_TEST $file -lm && ./a.out */
#include <math.h>
#include <stddef.h>

#define N_FEATURES $n

const char *const ${name}_names[N_FEATURES] = {
$names
};
$arrays
$scores
#ifdef RANKSVM_SELF_TEST
#include <stdio.h>
#include <stdlib.h>

/* Exits with 1 unless three documents have the scores of the model. */
int main(void)
{
    static const double values[][3] = {
$entries
    };
    static const double expected[] = {$expected};
    double scores[$n_test];
    double *documents = calloc($n_test * N_FEATURES, sizeof(double));
    size_t i;
    if (documents == NULL) return 1;
    for (i = 0; i < sizeof values / sizeof values[0]; i++) {
        documents[(size_t) values[i][0] * N_FEATURES + (size_t) values[i][1]] = values[i][2];
    }
    ${name}_scores(documents, $n_test, scores);
    free(documents);
    for (i = 0; i < $n_test; i++) {
        if (!(fabs(scores[i] - expected[i]) <= $tolerance)) {
            printf("expected %.17g, got %.17g\\n", expected[i], scores[i]);
            return 1;
        }
    }
    puts("self-test passed");
    return 0;
}
#endif
"""
_STATIC = """
/* Score of a document of $n features. */
double ${name}_score(const double *document)
{
    double sum = 0;
    size_t j;
    for (j = 0; j < N_FEATURES; j++) sum += WEIGHTS[j] * $value;
    return sum;
}

/* Scores of n_documents rows of features, one after another. */
void ${name}_scores(const double *documents, size_t n_documents, double *scores)
{
    size_t i;
    for (i = 0; i < n_documents; i++) scores[i] = ${name}_score(documents + i * N_FEATURES);
}
"""
_BY_QUERY = """
/* Scores of all documents of one query, which scale their features: n_documents rows, one after another. */
void ${name}_scores(const double *documents, size_t n_documents, double *scores)
{
    size_t i, j;
    for (i = 0; i < n_documents; i++) scores[i] = 0;
    for (j = 0; n_documents > 0 && j < N_FEATURES; j++) {
        const double *values = documents + j;
$body
    }
}
"""
_MIN_MAX = """        double low = values[0], high = values[0];
        if (WEIGHTS[j] == 0) continue;
        for (i = 0; i < n_documents; i++) {
            double value = values[i * N_FEATURES];
            if (value < low) low = value;
            if (value > high) high = value;
        }
        if (!(high > low)) continue;
        for (i = 0; i < n_documents; i++) {
            scores[i] += WEIGHTS[j] * ((values[i * N_FEATURES] - low) / (high - low));
        }"""
_STANDARD = """        /* relative to the first document, so that a constant feature is exactly 0 */
        double first = values[0], mean = 0$variables;
        if (WEIGHTS[j] == 0) continue;
        for (i = 0; i < n_documents; i++) mean += (values[i * N_FEATURES] - first) / (double) n_documents;
$spread        for (i = 0; i < n_documents; i++) {
            double value = values[i * N_FEATURES]$minus_mean;
            scores[i] += WEIGHTS[j] * $value;
        }"""
_SPREAD = """        for (i = 0; i < n_documents; i++) {
            double centered = values[i * N_FEATURES] - first - mean;
            variance += centered * centered / (double) n_documents;
        }
        deviation = sqrt(variance);
"""
_SUMS = """
/* How many of its cuts a value reaches; a missing value (NaN) none. */
static size_t interval(double value, const double *cuts, size_t n_cuts)
{
    size_t low = 0, high = n_cuts;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (value >= cuts[middle]) low = middle + 1;
        else high = middle;
    }
    return low;
}

static double sum_of(const double *document$scaled)
{
    double sum = 0;
    size_t j;
    const int *table;
    for (j = 0; j < N_FEATURES; j++) {
        double value = $value;
        if (value == value || !MISSING[j]) sum += WEIGHTS[j] * value;
    }
    for (table = TABLES; table < TABLES + sizeof TABLES / sizeof *TABLES; table += 7) {
        size_t place;
        j = (size_t) table[0];
        place = interval($value, CUTS + table[1], (size_t) table[2]) * (size_t) (table[5] + 1);
        j = (size_t) table[3];
        place += interval($value, CUTS + table[4], (size_t) table[5]);
        sum += VALUES[(size_t) table[6] + place];
    }
    return sum;
}
"""
_ADDITIVE_STATIC = """
/* Score of a document of $n features; NaN is a missing value. */
double ${name}_score(const double *document)
{
    return sum_of(document);
}

/* Scores of n_documents rows of features, one after another. */
void ${name}_scores(const double *documents, size_t n_documents, double *scores)
{
    size_t i;
    for (i = 0; i < n_documents; i++) scores[i] = sum_of(documents + i * N_FEATURES);
}
"""
_ADDITIVE_BY_QUERY = """
/* Scores of all documents of one query, which scale their features: n_documents rows, one after another. */
void ${name}_scores(const double *documents, size_t n_documents, double *scores)
{
    double shift[N_FEATURES], scale[N_FEATURES];
    size_t i, j;
    for (j = 0; n_documents > 0 && j < N_FEATURES; j++) {
        const double *values = documents + j;
$statistics
    }
    for (i = 0; i < n_documents; i++) scores[i] = sum_of(documents + i * N_FEATURES, shift, scale);
}
"""
_ADDITIVE_MIN_MAX = """        double low = values[0], high = values[0];
        for (i = 0; i < n_documents; i++) {
            double value = values[i * N_FEATURES];
            if (value < low) low = value;
            if (value > high) high = value;
        }
        shift[j] = low;
        scale[j] = high > low ? high - low : 1;"""
_ADDITIVE_STANDARD = """        /* relative to the first document, so that a constant feature is exactly 0 */
        double first = values[0], mean = 0, variance = 0;
        for (i = 0; i < n_documents; i++) mean += (values[i * N_FEATURES] - first) / (double) n_documents;
        for (i = 0; i < n_documents; i++) {
            double centered = values[i * N_FEATURES] - first - mean;
            variance += centered * centered / (double) n_documents;
        }
        shift[j] = $shift;
        scale[j] = $scale;"""
_RESERVED = (
    *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
    *("float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed"),
    *("sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "main"),
)


def _literal(text: str) -> str:
    """A string literal of C: characters beyond ASCII become octal escapes of UTF-8, and trigraphs are avoided."""
    escaped = json.dumps(text, ensure_ascii=False).replace("?", "\\?")
    return "".join(
        character if ord(character) < 128 else "".join(f"\\{byte:03o}" for byte in character.encode())
        for character in escaped
    )


C = Language(
    title="C",
    reserved=_RESERVED,
    file=_FILE,
    array="static const $type $array[$length] = {\n$numbers\n};",
    scores=ScoringTemplates(
        _STATIC,
        _BY_QUERY,
        _MIN_MAX,
        _STANDARD,
        _SPREAD,
        value="document[j]",
        value_of_query="value",
        centered="value",
        variables=", variance = 0, deviation",
    ).functions,
    additive=AdditiveTemplates(
        _SUMS,
        _ADDITIVE_STATIC,
        _ADDITIVE_BY_QUERY,
        _ADDITIVE_MIN_MAX,
        _ADDITIVE_STANDARD,
        value="document[j]",
        scaled=", const double *shift, const double *scale",
        mean="first + mean",
        deviation="variance > 0 ? sqrt(variance) : 1",
    ).functions,
    literal=_literal,
    entry="{{{}, {}, {}}}",
    entry_indent="        ",
    single="double ${name}_score(const double *document);   ",
).target("c", ".c")
