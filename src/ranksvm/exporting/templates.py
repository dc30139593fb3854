"""Queries that compute features in Elasticsearch and OpenSearch, by the name of the feature."""

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from ranksvm._util.types import PathLike
from ranksvm.exceptions import DataError, OptionError

__all__ = ["feature_templates", "needed", "parameters_of", "read_templates"]

# {{keywords}}, {{{keywords}}}, {{#toJson}}keywords{{/toJson}}
_PARAMETER = re.compile(r"\{\{\{?\s*([\w.]+)\s*\}?\}\}|\{\{#toJson\}\}\s*([\w.]+)\s*\{\{/toJson\}\}")


def feature_templates(given: object) -> list[dict[str, Any]]:
    """The features of a feature set.

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
    known = [feature["name"] for feature in features]
    for name in names:
        if name not in known:
            raise OptionError(
                f"templates has no feature {name!r}; its features are {', '.join(map(repr, known))}. Map the names of "
                "the model to them (names=..., or --names FILE)."
            )
    if any(feature.get("template_language", "mustache") != "mustache" for feature in features):
        return features
    return [feature for feature in features if feature["name"] in set(names)]


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
        raise DataError(f"{os.fspath(path)}: templates are queries in JSON, and this is no JSON ({error}).") from None


def _checked(feature: object) -> dict[str, Any]:
    if not isinstance(feature, Mapping) or not isinstance(feature.get("name"), str) or "template" not in feature:
        raise OptionError(f"templates: a feature of a feature set has a name and a template, got {feature!r}.")
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
