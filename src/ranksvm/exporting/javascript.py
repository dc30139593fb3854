"""Functions of JavaScript, for Node.js and browsers, without dependencies."""

import json

from ranksvm.exporting.code import AdditiveTemplates, Language, ScoringTemplates

__all__ = ["JAVASCRIPT"]

_FILE = """// $about
// Install: const $name = require("./$file"), or <script src="$file"> in a page.
// Self-test: node $file
"use strict";
const $name = (() => {
  const NAMES = [
$names,
  ];
  const KNOWN = new Set(NAMES);
$arrays
$scores
  // Numbers of the documents of a query, from 0, best first.
  function rank(documents) {
    const found = scores(documents);
    return found.map((_, i) => i).sort((i, k) => found[k] - found[i] || i - k);
  }

  function rowOf(document) {
    if (!Array.isArray(document) && !ArrayBuffer.isView(document)) {
      const given = document instanceof Map ? document : new Map(Object.entries(document));
      const unknown = [...given.keys()].find((name) => !KNOWN.has(name));
      if (unknown !== undefined) throw new RangeError(`the model has no feature $${JSON.stringify(unknown)}`);
      return NAMES.map((name) => (given.has(name) ? given.get(name) : 0));
    }
    if (document.length !== WEIGHTS.length) {
      throw new RangeError(`a document has $${WEIGHTS.length} features, got $${document.length}`);
    }
    return document;
  }

  // Throws unless three documents have the scores of the model.
  function selfTest() {
    const documents = Array.from({ length: $n_test }, () => new Array(WEIGHTS.length).fill(0));
    for (const [i, j, value] of [
$entries
    ]) documents[i][j] = value;
    const expected = [$expected];
    const found = scores(documents);
    if (!found.every((value, i) => Math.abs(value - expected[i]) <= $tolerance)) {
      throw new Error(`expected $${expected}, got $${found}`);
    }
  }

  return { ${single}scores, rank, selfTest, NAMES, WEIGHTS };
})();

if (typeof module !== "undefined" && module.exports) {
  module.exports = $name;
  if (typeof require !== "undefined" && require.main === module) {
    $name.selfTest();
    console.log("self-test passed");
  }
}
"""
_STATIC = """
  // Score of a document: an array of $n numbers, or an object or Map of values by name, 0 where absent, and nothing
  // else.
  function score(document) {
    const row = rowOf(document);
    let sum = 0;
    for (let j = 0; j < WEIGHTS.length; j++) sum += WEIGHTS[j] * $value;
    return sum;
  }

  // Scores of documents.
  function scores(documents) {
    return documents.map(score);
  }
"""
_BY_QUERY = """
  // Scores of all documents of one query, which scale their features.
  function scores(documents) {
    const rows = documents.map(rowOf), n = rows.length;
    const sums = new Array(n).fill(0);
    for (let j = 0; n > 0 && j < WEIGHTS.length; j++) {
      if (WEIGHTS[j] === 0) continue;
$body
    }
    return sums;
  }
"""
_MIN_MAX = """      let low = Infinity, high = -Infinity;
      for (const row of rows) {
        low = Math.min(low, row[j]);
        high = Math.max(high, row[j]);
      }
      if (high > low) for (let i = 0; i < n; i++) sums[i] += WEIGHTS[j] * ((rows[i][j] - low) / (high - low));"""
_STANDARD = """      // relative to the first document, so that a constant feature is exactly 0
      const first = rows[0][j];
      let mean = 0;
      for (const row of rows) mean += (row[j] - first) / n;
$spread      for (let i = 0; i < n; i++) {
        const centered = rows[i][j] - first - mean;
        sums[i] += WEIGHTS[j] * $value;
      }"""
_SPREAD = """      let variance = 0;
      for (const row of rows) variance += Math.pow(row[j] - first - mean, 2) / n;
      const deviation = Math.sqrt(variance);
"""
_SUMS = """
  // How many of its cuts a value reaches; a missing value (NaN) none.
  function interval(value, first, n) {
    let low = first, high = first + n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value >= CUTS[middle]) low = middle + 1;
      else high = middle;
    }
    return low - first;
  }

  function sumOf(row$scaled) {
    let sum = 0, j;
    for (j = 0; j < WEIGHTS.length; j++) {
      const value = $value;
      if (value === value || !MISSING[j]) sum += WEIGHTS[j] * value;
    }
    for (let t = 0; t < TABLES.length; t += 7) {
      j = TABLES[t];
      let place = interval($value, TABLES[t + 1], TABLES[t + 2]) * (TABLES[t + 5] + 1);
      j = TABLES[t + 3];
      place += interval($value, TABLES[t + 4], TABLES[t + 5]);
      sum += VALUES[TABLES[t + 6] + place];
    }
    return sum;
  }
"""
_ADDITIVE_STATIC = """
  // Score of a document: an array of $n numbers, or an object or Map of values by name, 0 where absent, and nothing
  // else.
  // NaN, null or undefined is a missing value.
  function score(document) {
    return sumOf(rowOf(document).map((value) => value ?? NaN));
  }

  // Scores of documents.
  function scores(documents) {
    return documents.map(score);
  }
"""
_ADDITIVE_BY_QUERY = """
  // Scores of all documents of one query, which scale their features.
  function scores(documents) {
    const rows = documents.map(rowOf), n = rows.length, shift = [], scale = [];
    for (let j = 0; n > 0 && j < WEIGHTS.length; j++) {
$statistics
    }
    return rows.map((row) => sumOf(row, shift, scale));
  }
"""
_ADDITIVE_MIN_MAX = """      let low = Infinity, high = -Infinity;
      for (const row of rows) {
        low = Math.min(low, row[j]);
        high = Math.max(high, row[j]);
      }
      shift.push(low);
      scale.push(high > low ? high - low : 1);"""
_ADDITIVE_STANDARD = """      // relative to the first document, so that a constant feature is exactly 0
      const first = rows[0][j];
      let mean = 0, variance = 0;
      for (const row of rows) mean += (row[j] - first) / n;
      for (const row of rows) variance += Math.pow(row[j] - first - mean, 2) / n;
      shift.push($shift);
      scale.push($scale);"""
_RESERVED = (
    *("await", "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do", "else"),
    *("enum", "export", "extends", "false", "finally", "for", "function", "if", "import", "in", "instanceof", "let"),
    *("module", "new", "null", "return", "static", "super", "switch", "this", "throw", "true", "try", "typeof", "var"),
    *("void", "while", "with", "yield", "require", "exports", "__dirname", "__filename"),
    # in strict mode
    *("arguments", "eval", "implements", "interface", "package", "private", "protected", "public"),
    # global names that the file uses, or that a page cannot declare
    *("Array", "ArrayBuffer", "Error", "Infinity", "JSON", "Math", "NaN", "Object", "RangeError", "Set", "console"),
    *("document", "location", "top", "undefined", "window"),
)

JAVASCRIPT = Language(
    title="JavaScript",
    reserved=_RESERVED,
    file=_FILE,
    array="  const $array = [\n$numbers,\n  ];",
    scores=ScoringTemplates(
        _STATIC, _BY_QUERY, _MIN_MAX, _STANDARD, _SPREAD, value="row[j]", value_of_query="rows[i][j]"
    ).functions,
    additive=AdditiveTemplates(
        _SUMS,
        _ADDITIVE_STATIC,
        _ADDITIVE_BY_QUERY,
        _ADDITIVE_MIN_MAX,
        _ADDITIVE_STANDARD,
        value="row[j]",
        scaled=", shift, scale",
        mean="first + mean",
        deviation="variance > 0 ? Math.sqrt(variance) : 1",
    ).functions,
    literal=json.dumps,
    entry="[{}, {}, {}]",
    entry_indent="      ",
    single="score, ",
).target("javascript", ".js")
