"""Features in an engine: their names, and the queries that compute them in Elasticsearch and OpenSearch."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ranksvm._util.checks import first_repeated
from ranksvm._util.types import PathLike
from ranksvm.exceptions import DataError, OptionError

__all__ = [
    "FeatureNames",
    "feature_templates",
    "mapped_names",
    "needed",
    "parameters_of",
    "read_names",
    "read_templates",
]

# Name in the model -> name in the engine; or the names of all features, in order.
FeatureNames = Mapping[str, str] | Sequence[str]
# A parameter in a query: {{keywords}}, {{{keywords}}} or {{#toJson}}keywords{{/toJson}}.
_PARAMETER = re.compile(r"\{\{\{?\s*([\w.]+)\s*\}?\}\}|\{\{#toJson\}\}\s*([\w.]+)\s*\{\{/toJson\}\}")


def mapped_names(names: Sequence[str], given: FeatureNames | None) -> list[str]:
    """The names of the features in an engine.

    Parameters
    ----------
    names : sequence of str
        Names of the features in the model.
    given : mapping, sequence of str or None
        Name in the model -> name in the engine, for some features; or the names of all features, in the order of the
        columns; None: the names of the model.

    Returns
    -------
    list of str
        One name for each feature.

    Raises
    ------
    OptionError
        When a name is unknown, empty, not text, or the name of two features.
    """
    if given is None:
        found = list(names)
    elif isinstance(given, str):
        raise OptionError(
            f"names must be a list or dict of names, not text, got {given!r}; read a file of names first."
        )
    elif isinstance(given, Mapping):
        known = set(names)
        unknown = [key for key in given if key not in known]
        if unknown:
            raise OptionError(
                f"names: the model has no feature {unknown[0]!r}; its features are {_listed(names)}. Features without "
                "names are f1, f2, ..., numbered as in LETOR files."
            )
        found = [given.get(name, name) for name in names]
    else:
        found = list(given)
        if len(found) != len(names):
            raise OptionError(f"names has {len(found)} names, but the model has {len(names)} features.")
    for name, new in zip(names, found, strict=True):
        if not isinstance(new, str) or not new.strip():
            raise OptionError(f"names: the name of feature {name!r} is {new!r}: it must be text that is not empty.")
        if any(ord(character) < 32 or ord(character) == 127 for character in new):
            raise OptionError(f"names: {new!r} has a control character: rename the feature (names=..., or --names).")
    _refuse_duplicates(found)
    return found


def _refuse_duplicates(names: Sequence[str]) -> None:
    """Raise OptionError if two features have the same name."""
    if len(set(names)) < len(names):
        twice = first_repeated(names)
        raise OptionError(f"names: two features are called {twice!r}.")


def read_names(path: PathLike) -> dict[str, str] | list[str]:
    """Names of features from a file: JSON (an object or a list), or lines of text.

    A line of text has the name in the model and, after a tab or spaces, the name in the engine. Or every line has one
    name, in the order of the columns. Empty lines and lines that begin with ``#`` are ignored.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict or list
        The names, for `mapped_names`.

    Raises
    ------
    DataError
        When the file has none of these forms.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text. Save the names of features in UTF-8.") from None
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not a list or an object of JSON ({error}).") from None
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.split("\t", 1) if "\t" in line else line.split(None, 1) for line in lines if line and line[0] != "#"]
    if all(len(pair) == 1 for pair in pairs):
        return [pair[0] for pair in pairs]
    wrong = [pair[0] for pair in pairs if len(pair) == 1]
    if wrong:
        raise DataError(f"{path}: the line {wrong[0]!r} has one name, others have two.")
    return {old.strip(): new.strip() for old, new in pairs}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def feature_templates(given: object) -> list[dict[str, Any]]:
    """Convert queries, or a feature set, to a list of features.

    Parameters
    ----------
    given : mapping
        Name of each feature -> its query, with parameters such as ``{{keywords}}``; or the body of a feature set, or
        what the plugin answers to ``GET _ltr/_featureset/NAME``.

    Returns
    -------
    list of dict
        Each feature as the plugins read it: ``name``, ``params``, ``template_language`` and ``template``.

    Raises
    ------
    OptionError
        When ``given`` is none of these, or a name occurs twice.
    """
    if not isinstance(given, Mapping) or not given:
        raise OptionError(f"templates must be a dict of names and queries, or a feature set, got {given!r}.")
    answer = given.get("_source", given)
    body = answer.get("featureset") if isinstance(answer, Mapping) else None
    if isinstance(body, Mapping) and isinstance(body.get("features"), list):
        features = [_checked(feature) for feature in body["features"]]
    else:
        features = [_from_query(name, query) for name, query in given.items()]
    names = [feature["name"] for feature in features]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise OptionError(f"templates: two features are called {twice!r}.")
    return features


def needed(features: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """The features with these names, or all features if any of them is computed from others.

    Raises
    ------
    OptionError
        When one of the names has no feature.
    """
    known = dict.fromkeys(feature["name"] for feature in features)
    for name in names:
        if name not in known:
            raise OptionError(
                f"templates has no feature {name!r}; its features are {', '.join(map(repr, known))}. Map the names of "
                "the model to them (names=..., or --names FILE)."
            )
    if any(feature.get("template_language", "mustache") != "mustache" for feature in features):
        return features
    wanted = set(names)
    return [feature for feature in features if feature["name"] in wanted]


def parameters_of(features: list[dict[str, Any]]) -> list[str]:
    """The parameters of these features, each once."""
    return list(dict.fromkeys(name for feature in features for name in feature.get("params", ())))


def read_templates(path: PathLike) -> object:
    """The content of a JSON file, for `feature_templates`.

    Raises
    ------
    DataError
        When it is not JSON.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{os.fspath(path)}: templates are queries in JSON, but the file is not JSON ({error})."
        ) from None


def _checked(feature: object) -> dict[str, Any]:
    if not isinstance(feature, Mapping) or not isinstance(feature.get("name"), str) or "template" not in feature:
        raise OptionError(f"templates: a feature of a feature set has a name and a template, got {feature!r}.")
    parameters = feature.get("params", [])
    if not isinstance(parameters, list) or not all(isinstance(name, str) for name in parameters):
        raise OptionError(
            f"templates: params of the feature {feature['name']!r} must be a list of names, got {parameters!r}."
        )
    return dict(feature)


def _from_query(name: object, query: object) -> dict[str, Any]:
    if not isinstance(name, str) or not isinstance(query, Mapping) or not query:
        raise OptionError(
            f'templates: the query of {name!r} must be a dict such as {{"match": {{"title": "{{{{keywords}}}}"}}}}, '
            f"got {query!r}."
        )
    found = (first or second for first, second in _PARAMETER.findall(json.dumps(query, ensure_ascii=False)))
    return {
        "name": name,
        "params": list(dict.fromkeys(found)),
        "template_language": "mustache",
        "template": dict(query),
    }
