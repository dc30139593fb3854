"""Functions of JavaScript, for Node.js and browsers, without dependencies."""

import json

from ranksvm.exporting.code import Language, ScoringTemplates

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
      const unknown = Object.keys(document).find((name) => !KNOWN.has(name));
      if (unknown !== undefined) throw new RangeError(`the model has no feature $${JSON.stringify(unknown)}`);
      return NAMES.map((name) => (Object.prototype.hasOwnProperty.call(document, name) ? document[name] : 0));
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
  // Score of a document: an array of $n numbers, or an object of values by name, 0 where absent, and nothing else.
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
        const centred = rows[i][j] - first - mean;
        sums[i] += WEIGHTS[j] * $value;
      }"""
_SPREAD = """      let variance = 0;
      for (const row of rows) variance += Math.pow(row[j] - first - mean, 2) / n;
      const deviation = Math.sqrt(variance);
"""
_RESERVED = (
    *("await", "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do", "else"),
    *("enum", "export", "extends", "false", "finally", "for", "function", "if", "import", "in", "instanceof", "let"),
    *("module", "new", "null", "return", "static", "super", "switch", "this", "throw", "true", "try", "typeof", "var"),
    *("void", "while", "with", "yield", "require", "exports"),
)

JAVASCRIPT = Language(
    title="JavaScript",
    reserved=_RESERVED,
    file=_FILE,
    array="  const $array = [\n$numbers,\n  ];",
    scores=ScoringTemplates(
        _STATIC, _BY_QUERY, _MIN_MAX, _STANDARD, _SPREAD, value="row[j]", value_of_query="rows[i][j]"
    ).functions,
    literal=json.dumps,
    entry="[{}, {}, {}]",
    entry_indent="      ",
    single="score, ",
).target("javascript", ".js")
