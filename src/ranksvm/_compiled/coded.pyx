# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Products with X stored as one-byte codes of the levels of features, and the computation of these codes.

A code is the level of one feature, or a cell, which is a combination of the levels of two features. Products look up each code
in a table; transposed products add up a sum for each code. The GIL is released.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

from ranksvm._compiled.border cimport need, need_at_least, need_places, need_pointers, need_range
from ranksvm._compiled.instruction_set cimport chosen
from ranksvm._compiled.passes cimport ProductTable, RowProducts, new_products

cdef extern from "coded_loops.hpp" namespace "ranksvm" nogil:
    cdef struct LevelAxis:
        int64_t steps
        int64_t extra

    cdef struct CodedColumn:
        LevelAxis first
        LevelAxis second
        int64_t is_pair
        int64_t variable
        int64_t entry

    cdef struct ColumnTile:
        int64_t first
        int64_t beyond
        int64_t paired

    cdef struct CodedColumns:
        const CodedColumn *columns
        int64_t n_columns
        int64_t n_variables
        int64_t n_numbers
        const double *scales
        const int32_t *places
        const ColumnTile *tiles
        int64_t n_tiles
        const uint16_t *bases
        const uint16_t *factors

    cdef int64_t kTilePairs
    cdef int64_t kPairCells

    cppclass CodedLoops:
        void (*values)(const CodedColumns &, const double *, double *)
        void (*gather_sums)(const CodedColumns &, double *, double *)
        void (*look_up)(const CodedColumns &, const uint8_t *, const int64_t *, int64_t, int64_t, const double *, double *)
        void (*cells)(const uint8_t *, const uint8_t *, int64_t, const double *, int64_t, double *) except +
        void (*counts)(const uint8_t *, int64_t, int64_t, int64_t, const int64_t *, int64_t *)
        bint (*within)(const uint8_t *, int64_t, int64_t, const uint8_t *)

    cppclass LevelLoops[Real]:
        bint (*levels)(const Real *, int64_t, const double *, const int64_t *, int64_t, int64_t, uint8_t *) except +
        void (*cuts)(const Real *, int64_t, int64_t, const int64_t *, int64_t, int64_t *, int64_t *) except +
        void (*sums)(const Real *, int64_t, const int64_t *, int64_t, double *)
        void (*columns)(const Real *, int64_t, int64_t, int64_t, int64_t, Real *)

    const Loops &loops_of[Loops](int)

cdef extern from "coded_rows.hpp" namespace "ranksvm" nogil:
    cdef cppclass CodedRows:
        const CodedLoops *loops
        ProductTable features
        int64_t n_features
        const double *feature_scales
        CodedColumns columns
        const uint8_t *codes
        const int64_t *rows
        @staticmethod
        void scores(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        void accumulate(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        void gather(const void *, int64_t, int64_t, double *, int64_t) except + nogil
        @staticmethod
        void gather_single(const void *, int64_t, int64_t, float *, int64_t) except + nogil

ctypedef fused real:
    float
    double

# How many numbers describe a column: `steps` and `extra` (see `LevelAxis`) of its feature, then the same two for its second
# feature (0 and 0 if there is none); whether there is a second feature; where its variables begin; and where its values
# begin in a table of the levels of all columns.
COLUMN_NUMBERS = 7


# With ``paired``, two neighboring columns share a table, which has a value for each cell (combination of their levels). Such a
# table costs little in a pass if there are at least PAIRED_ROWS rows in all, and ROWS_PER_CELL rows for each cell. All tables
# together have at most MAX_CELLS cells, and no more cells than there are rows. (On two threads, fits to 700,000 rows and 136
# columns take 0.94 of the time that they take without such tables if the columns have 32 levels, which gives 69,632 cells, and
# 0.85 of that time if they have 16 levels.)
PAIRED_ROWS, ROWS_PER_CELL, MAX_CELLS = 4000, 16, 1 << 17


cdef class CodedFeatures:
    """Checked columns of codes, with a description of each column and the scales of its variables.

    ``columns`` has a row of `COLUMN_NUMBERS` for each column. Variables are numbered in the order of the columns, and so are
    entries (one for each level or cell). A column of two features has a variable for each pair of their variables; those with
    the first variable of the first feature come first.

    Vectors over levels have a number for each level of each column. If ``paired``, and if there are enough rows, they have a
    number for each cell of the levels of two neighboring columns instead. Products then visit half as many numbers.
    """

    cdef CodedColumns table
    cdef object owners
    cdef readonly object codes
    cdef const uint8_t[:, ::1] code_view

    def __init__(self, const uint8_t[:, ::1] codes, const int64_t[:, ::1] columns, const double[::1] scales, paired=False):
        cdef int64_t c, n_variables = 0, n_entries = 0, n_numbers = 0, n_cells = 0, first = 0
        cdef int64_t n_columns = columns.shape[0], most_cells = min(MAX_CELLS, codes.shape[0])
        cdef int32_t[::1] places
        cdef int64_t[::1] levels
        cdef int64_t[:, ::1] tiles
        cdef uint16_t[::1] bases, factors
        import numpy as np

        need("a row of codes", codes.shape[1], n_columns)
        need("a row of columns", columns.shape[1], COLUMN_NUMBERS)
        places, levels = np.zeros(n_columns + 1, dtype=np.int32), np.zeros(n_columns + 1, dtype=np.int64)
        bases, factors = np.zeros((2, n_columns // 2 + 1), dtype=np.uint16)
        self.codes = codes
        self.code_view = codes
        for c in range(n_columns):
            need("the variables of a column", columns[c, 5], n_variables)
            need("the entries of a column", columns[c, 6], n_entries)
            levels[c] = columns[c, 0] + columns[c, 1] + 1
            variables = levels[c] - 1
            if columns[c, 4]:
                levels[c] *= columns[c, 2] + columns[c, 3] + 1
                variables *= columns[c, 2] + columns[c, 3]
            if min(columns[c, 0], columns[c, 1], columns[c, 2], columns[c, 3]) < 0 or levels[c] > 256:
                raise ValueError(f"column {c} has {levels[c]} levels, but a code has one byte")
            n_variables += variables
            n_entries += levels[c]
        need("scales", scales.shape[0], n_variables)
        _need_levels(codes, columns)

        largest = min(kPairCells, codes.shape[0] // ROWS_PER_CELL) if paired and codes.shape[0] >= PAIRED_ROWS else 0
        tile, found = [], []
        for c in range(0, n_columns, 2):
            together = c + 1 < n_columns and not columns[c, 4] and not columns[c + 1, 4]
            together = together and levels[c] * levels[c + 1] <= min(largest, most_cells - n_cells)
            if not tile or tile[2] != together or (together and c - tile[0] == 2 * kTilePairs):
                tile, first = [c, c, together], n_numbers
                found.append(tile)
            tile[1] = min(c + 2, n_columns)
            places[c] = <int32_t>n_numbers
            if together:
                bases[c // 2] = <uint16_t>(n_numbers - first)
                factors[c // 2] = <uint16_t>levels[c]
                n_numbers += levels[c] * levels[c + 1]
                n_cells += levels[c] * levels[c + 1]
            else:
                n_numbers += levels[c] + levels[c + 1]
            if c + 1 < n_columns:
                places[c + 1] = <int32_t>(places[c] if together else places[c] + levels[c])
        places[n_columns] = <int32_t>n_numbers
        tiles = np.array(found, dtype=np.int64).reshape(-1, 3)
        self.owners = (codes, columns, scales, places, tiles, bases, factors)
        self.table.columns = <const CodedColumn *>&columns[0, 0] if n_columns else NULL
        self.table.n_columns = n_columns
        self.table.n_variables = n_variables
        self.table.n_numbers = n_numbers
        self.table.scales = &scales[0] if n_variables else NULL
        self.table.places = &places[0]
        self.table.tiles = <const ColumnTile *>&tiles[0, 0] if tiles.shape[0] else NULL
        self.table.n_tiles = tiles.shape[0]
        self.table.bases = &bases[0]
        self.table.factors = &factors[0]

    @property
    def n_numbers(self):
        """Length of vectors over levels."""
        return self.table.n_numbers

    def values(self, const double[::1] w, double[::1] out):
        """Write to ``out``, a vector over levels, the value that the weights w of the variables give to each level."""
        need("w", w.shape[0], self.table.n_variables)
        need("out", out.shape[0], self.table.n_numbers)
        if out.shape[0] and w.shape[0]:
            with nogil:
                loops_of[CodedLoops](chosen).values(self.table, &w[0], &out[0])
        elif out.shape[0]:
            out[:] = 0.0

    def gather_sums(self, double[::1] sums, double[::1] total):
        """Add the transpose of `values`, applied to ``sums`` (a vector over levels), to ``total``; overwrites ``sums``."""
        need("sums", sums.shape[0], self.table.n_numbers)
        need("total", total.shape[0], self.table.n_variables)
        if sums.shape[0] and total.shape[0]:
            with nogil:
                loops_of[CodedLoops](chosen).gather_sums(self.table, &sums[0], &total[0])

    def look_up(self, const double[::1] values, int64_t start, int64_t stop, double[::1] out_range):
        """Add the sum of the values of each row's levels to ``out_range``."""
        need("values", values.shape[0], self.table.n_numbers)
        need_range("rows", start, stop, self.code_view.shape[0])
        need("out_range", out_range.shape[0], stop - start)
        if start == stop or values.shape[0] == 0:
            return
        with nogil:
            loops_of[CodedLoops](chosen).look_up(
                self.table, &self.code_view[0, 0], NULL, start, stop, &values[0], &out_range[0])


cdef int _need_levels(const uint8_t[:, ::1] codes, const int64_t[:, ::1] columns) except -1:
    """Refuse codes beyond the levels of their column."""
    cdef int64_t c, n_columns = codes.shape[1]
    cdef uint8_t[::1] lasts
    cdef bint within
    import numpy as np

    lasts = np.empty(max(1, n_columns), dtype=np.uint8)
    for c in range(n_columns):
        lasts[c] = <uint8_t>((columns[c, 0] + columns[c, 1] + 1) * (
            columns[c, 2] + columns[c, 3] + 1 if columns[c, 4] else 1) - 1)
    if codes.shape[0] == 0 or n_columns == 0:
        return 0
    with nogil:
        within = loops_of[CodedLoops](chosen).within(&codes[0, 0], codes.shape[0], n_columns, &lasts[0])
    if not within:
        raise ValueError("codes are beyond the levels of their column")
    return 0


def coded_products(RowProducts features, const double[::1] feature_scales, CodedFeatures coded, const int64_t[::1] rows):
    """Products with rows that consist of features (their products are ``features``, or None if there are none) and codes.

    Vectors over features have a number for each feature, then the numbers of a vector over levels. Rows that are gathered have
    the features times their scales, then the variables of the codes.
    """
    cdef int64_t n_features = feature_scales.shape[0]
    cdef int64_t n_positions = coded.code_view.shape[0] if rows is None else rows.shape[0]
    if rows is not None:
        need_places("rows", rows, coded.code_view.shape[0])
    if features is not None:
        need("feature_scales", n_features, features.n_features)
        need("the positions of features", features.n_positions, n_positions)
    else:
        need("feature_scales", n_features, 0)
    cdef RowProducts products = new_products(
        sizeof(CodedRows), (features, feature_scales, coded, rows), n_positions, n_features + coded.table.n_numbers)
    cdef CodedRows *own = <CodedRows *>products.memory
    own.loops = &loops_of[CodedLoops](chosen)
    if features is not None:
        own.features = features.table
        own.feature_scales = &feature_scales[0] if n_features else NULL
    products.n_columns = n_features + coded.table.n_variables
    own.n_features = n_features
    own.columns = coded.table
    own.codes = NULL
    if coded.code_view.shape[0] and coded.code_view.shape[1]:
        own.codes = &coded.code_view[0, 0]
    own.rows = NULL
    if rows is not None and rows.shape[0]:
        own.rows = &rows[0]
    products.table.scores = CodedRows.scores
    products.table.accumulate = CodedRows.accumulate
    products.table.gather = CodedRows.gather
    products.table.gather_single = CodedRows.gather_single
    return products


def gather(RowProducts products, int64_t start, int64_t stop, real[:, ::1] out_range):
    """Write the rows at positions ``start`` to ``stop - 1``, dense, to ``out_range``; its columns beyond theirs become 0."""
    need_range("positions", start, stop, products.n_positions)
    need("out_range", out_range.shape[0], stop - start)
    need_at_least("a row of out_range", out_range.shape[1], products.n_columns)
    if start == stop or out_range.shape[1] == 0:
        return
    with nogil:
        if real is float:
            products.table.gather_single(products.table.context, start, stop, &out_range[0, 0], out_range.shape[1])
        else:
            products.table.gather(products.table.context, start, stop, &out_range[0, 0], out_range.shape[1])


def feature_levels(const real[:, ::1] X, const double[::1] cuts, const int64_t[::1] pointers, int64_t start, int64_t stop,
                   uint8_t[:, ::1] codes):
    """For each value of some rows, how many cuts of its feature are at most the value; for NaN, the number of cuts plus 1.

    Returns whether all values are finite.
    """
    cdef int64_t j, most = 0
    cdef bint finite
    need("pointers", pointers.shape[0], X.shape[1] + 1)
    need_pointers("pointers", pointers, cuts.shape[0])
    need("codes", codes.shape[0], X.shape[0])
    need("a row of codes", codes.shape[1], X.shape[1])
    need_range("rows", start, stop, X.shape[0])
    for j in range(X.shape[1]):
        most = max(most, pointers[j + 1] - pointers[j])
    if most > 254:
        raise ValueError(f"a feature has {most} cuts, but a code has one byte")
    if start == stop or X.shape[1] == 0:
        return True
    cdef double none = 0.0
    cdef const double *first = &cuts[0] if cuts.shape[0] else &none
    with nogil:
        finite = loops_of[LevelLoops[real]](chosen).levels(
            &X[0, 0], X.shape[1], first, &pointers[0], start, stop, &codes[0, 0])
    return finite


def append_cells(const uint8_t[:, ::1] codes, const int64_t[:, ::1] pairs, const uint8_t[:, :, ::1] tables,
                 uint8_t[:, ::1] out):
    """Copy the codes of each row to ``out``, and write the row's cell for each pair of features behind them.

    The cell of pair k is the sum, modulo 256, of ``tables[k, 0]`` at the code of its first feature and ``tables[k, 1]`` at the
    code of its second feature.
    """
    cdef int64_t i, j, k, n_features = codes.shape[1], n_pairs = pairs.shape[0]
    need("out", out.shape[0], codes.shape[0])
    need("a row of out", out.shape[1], n_features + n_pairs)
    need("a row of pairs", pairs.shape[1], 2)
    need("tables", tables.shape[0], n_pairs)
    need("tables of a pair", tables.shape[1], 2)
    need("a table", tables.shape[2], 256)
    for k in range(n_pairs):
        for j in range(2):
            if not 0 <= pairs[k, j] < n_features:
                raise ValueError(f"pair {k} has feature {pairs[k, j]}, but there are {n_features}")
    with nogil:
        for i in range(codes.shape[0]):
            for j in range(n_features):
                out[i, j] = codes[i, j]
            for k in range(n_pairs):
                out[i, n_features + k] = <uint8_t>(
                    tables[k, 0, codes[i, pairs[k, 0]]] + tables[k, 1, codes[i, pairs[k, 1]]])


def value_cuts(const real[::1] values, int64_t max_bins, int64_t[::1] cuts):
    """Cut ascending values, without NaN, into at most ``max_bins`` bins with about equal numbers of values.

    Writes to ``cuts`` the position of the first value of each bin but the first; returns their number. If there are more than
    ``max_bins`` distinct values, the count of a very frequent value is lowered to the average count of a bin, so that the other
    values still spread over the other bins. (Neighboring values may share its bin.)
    """
    cdef int64_t found, length = values.shape[0]
    need_at_least("max_bins", max_bins, 1)
    need_at_least("cuts", cuts.shape[0], max_bins - 1)
    if values.shape[0] == 0 or max_bins == 1:
        return 0
    with nogil:
        loops_of[LevelLoops[real]](chosen).cuts(&values[0], 1, length, &length, max_bins, &cuts[0], &found)
    return found


def row_cuts(const real[:, ::1] values, const int64_t[::1] lengths, int64_t[:, ::1] cuts, int64_t[::1] n_cuts):
    """`value_cuts` of the first ``lengths[k]`` values of each row k; ``max_bins`` is one more than ``cuts`` has columns."""
    cdef int64_t k
    need("lengths", lengths.shape[0], values.shape[0])
    need("cuts", cuts.shape[0], values.shape[0])
    need("n_cuts", n_cuts.shape[0], values.shape[0])
    for k in range(lengths.shape[0]):
        if not 0 <= lengths[k] <= values.shape[1]:
            raise ValueError("a length is not within the row")
    n_cuts[:] = 0
    if values.shape[0] == 0 or values.shape[1] == 0 or cuts.shape[1] == 0:
        return
    with nogil:
        loops_of[LevelLoops[real]](chosen).cuts(
            &values[0, 0], values.shape[0], values.shape[1], &lengths[0], cuts.shape[1] + 1, &cuts[0, 0], &n_cuts[0])


def range_sums(const real[::1] values, const int64_t[::1] starts, double[::1] sums):
    """``sums[k]`` is the sum of the values from ``starts[k]`` to the next start, or to the end; starts ascend."""
    cdef int64_t k
    need("sums", sums.shape[0], starts.shape[0])
    for k in range(starts.shape[0]):
        if not (starts[k - 1] if k else 0) <= starts[k] <= values.shape[0]:
            raise ValueError("starts do not ascend within the values")
    if values.shape[0] and starts.shape[0]:
        with nogil:
            loops_of[LevelLoops[real]](chosen).sums(
                &values[0], values.shape[0], &starts[0], starts.shape[0], &sums[0])
    else:
        sums[:] = 0.0


def copy_columns(const real[:, ::1] X, int64_t first, int64_t last, real[:, ::1] out):
    """Write the transpose of the features ``first`` to ``last - 1`` of X to ``out``."""
    need_range("features", first, last, X.shape[1])
    need("out", out.shape[0], last - first)
    need("a row of out", out.shape[1], X.shape[0])
    if X.shape[0] and first < last:
        with nogil:
            loops_of[LevelLoops[real]](chosen).columns(&X[0, 0], X.shape[1], X.shape[0], first, last, &out[0, 0])


def level_counts(const uint8_t[:, ::1] codes, const int64_t[::1] pointers, int64_t start, int64_t stop, int64_t[::1] counts):
    """Add to ``counts`` the number of rows at each level; the counts of column c begin at ``pointers[c]``."""
    cdef int64_t c, n_columns = codes.shape[1]
    cdef uint8_t[::1] lasts
    cdef bint within = True
    import numpy as np

    need("pointers", pointers.shape[0], n_columns + 1)
    need_pointers("pointers", pointers, counts.shape[0])
    need_range("rows", start, stop, codes.shape[0])
    if start == stop or n_columns == 0:
        return
    lasts = np.empty(n_columns, dtype=np.uint8)
    for c in range(n_columns):
        within &= pointers[c] < pointers[c + 1]
        lasts[c] = <uint8_t>min(255, pointers[c + 1] - pointers[c] - 1)
    if within:
        with nogil:
            within = loops_of[CodedLoops](chosen).within(&codes[start, 0], stop - start, n_columns, &lasts[0])
            if within:
                loops_of[CodedLoops](chosen).counts(&codes[0, 0], n_columns, start, stop, &pointers[0], &counts[0])
    if not within:
        raise ValueError("codes are beyond the levels of their feature")


def cell_sums(const uint8_t[:, ::1] codes, const double[::1] u, int64_t n_levels, int64_t first, int64_t last,
              double[:, :, ::1] sums):
    """Sums of u over the rows with each combination of the levels of features a < b, for a in ``first .. last - 1``.

    ``codes`` has a row for each feature. ``sums`` has a matrix for each pair (a, b), in the order of a, then of b.
    """
    cdef int64_t a, b, pair = 0, n_features = codes.shape[0], n_rows = codes.shape[1], t
    cdef bint within = True
    need("u", u.shape[0], n_rows)
    need_range("features", first, last, n_features)
    need("sums", sums.shape[0], sum(n_features - 1 - a for a in range(first, last)))
    if sums.shape[1] != n_levels or sums.shape[2] != n_levels or n_levels < 1 or n_levels > 256:
        raise ValueError("sums need a cell for every two levels")
    if n_rows == 0 or sums.shape[0] == 0:
        return
    for a in range(first, n_features):
        for t in range(n_rows):
            within &= codes[a, t] < n_levels
    if not within:
        raise ValueError("codes are beyond n_levels")
    with nogil:
        for a in range(first, last):
            for b in range(a + 1, n_features):
                loops_of[CodedLoops](chosen).cells(
                    &codes[a, 0], &codes[b, 0], n_rows, &u[0], n_levels, &sums[pair, 0, 0])
                pair += 1
