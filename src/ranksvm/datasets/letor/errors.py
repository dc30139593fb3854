"""Messages for the reasons why the compiled parser refuses a line."""

from ranksvm.exceptions import ParseError

__all__ = ["refusal"]

# In the order of `enum Reason` in _compiled/letor.hpp. {found}: the text refused; {before}: the feature id before it.
_SENTENCES = (
    "",
    "the label is missing: a line begins with a number, then qid:<id>, then features, but found {found}",
    "the label must be a number, found {found}",
    "the label is nan ({found}); labels must be finite numbers",
    "the label is infinite ({found}); labels must be finite numbers",
    "the label {found} is out of the range of float64",
    "the line has no qid, but the first line of data has one: expected qid:<id> after the label, found {found}",
    "the line has {found}, but the first line of data has no qid",
    "the query id is empty: expected qid:<id>, found {found}",
    "{found} must occur once, right after the label and before the features",
    "a colon is missing: expected <feature id>:<value>, found {found}",
    "the feature id must be a whole number, found {found}",
    "the feature id is negative: {found}",
    "the feature id {found} is too large: ids go up to 2147483647",
    "the feature id {found} is above n_features={n_features} (ids start at {base})",
    "the feature id is 0, but with zero_based=False ids start at 1",
    "duplicate feature id: {found} repeats a feature of the line",
    "the value is missing: expected <feature id>:<value>, found {found}",
    "the value of feature {before} must be a number, found {found}",
    "the value of feature {before} is nan ({found}); omit a missing feature, or impute it",
    "the value of feature {before} is infinite ({found}); values must be finite numbers",
    "the value of feature {before} is out of the range of {dtype}: {found}{remedy}",
    "an id has a NUL character, which no array of strings keeps: {found}",
)
# Reasons that depend on the reader's assumptions from the beginning of a stream, and the options that help.
_ASSUMPTIONS = {14: "n_features", 15: "zero_based=True"}


def refusal(
    reason: int, path: str, line_number: int, line: bytes, at: int, stop: int, n_features: int, base: int, dtype: str,
    assumed: bool = False,
) -> ParseError:  # fmt: skip
    """The error for a refused line.

    Parameters
    ----------
    reason : int
        Number of the reason in the compiled parser.
    path : str
        The file.
    line_number : int
        The line's number, from 1.
    line : bytes
        The line, at least up to the error.
    at, stop : int
        The invalid text: ``line[at:stop]``.
    n_features, base : int
        Number of features declared and the first id.
    dtype : str
        Type that values are read as.
    assumed : bool, default False
        Whether the number of features and the first id were inferred from the beginning of the text, not declared.

    Returns
    -------
    ParseError
        To be raised.
    """
    text = line[at:stop].decode("utf-8", "backslashreplace")
    found = repr(text if len(text) <= 60 else text[:57] + "...") if text else "the end of the line"
    before = line[:at].rpartition(b":")[0].rpartition(b" ")[2].rpartition(b"\t")[2].decode("utf-8", "backslashreplace")
    remedy = " (dtype=numpy.float64 reaches 1.8e308)" if dtype == "float32" else ""
    sentence = _SENTENCES[reason].format(
        found=found, before=before, n_features=n_features, base=base, dtype=dtype, remedy=remedy
    )
    if assumed and reason in _ASSUMPTIONS:
        sentence += f"; this was inferred from the beginning of the text: give {_ASSUMPTIONS[reason]}"
    return ParseError(path, line_number, at + 1, sentence)
