"""Settings files: the best settings that ``ranksvm tune`` found, for ``ranksvm train --settings``."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ranksvm.cli.options.parameters import SETTINGS
from ranksvm.cli.options.paths import STDIN
from ranksvm.cli.options.shared import EXISTING_FILE
from ranksvm.cli.output.tables import json_text

__all__ = ["settings_lines", "settings_option"]


def settings_lines(settings: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """The content of a file: the settings, and, for people only, how they were found."""
    unknown = set(settings) - set(SETTINGS)
    assert not unknown, unknown
    return [json_text({"ranksvm": "settings", "settings": settings, "found": found})]


def settings_option(command: Callable) -> Callable:
    """The option ``--settings``: the file's values are the defaults of the other options."""
    return click.option(
        "--settings",
        type=EXISTING_FILE,
        is_eager=True,
        expose_value=False,
        callback=_take_settings,
        metavar="FILE",
        help="Settings that `ranksvm tune --save-choice` wrote; options given here override them.",
    )(command)


def _take_settings(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    options = {option.name: option for option in ctx.command.params}
    values = {}
    for name, value in _read(path).items():
        option = options[name]
        try:
            values[name] = option.type_cast_value(ctx, str(value))
        except click.BadParameter as error:
            raise click.BadParameter(f"{path}: {name}: {error.message}", ctx, param_hint="--settings") from None
    ctx.default_map = {**(ctx.default_map or {}), **values}


def _read(path: Path) -> dict[str, Any]:
    try:
        text = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        content = json.loads(text.decode("utf-8"))
    except ValueError as error:  # not text, or not JSON
        raise click.BadParameter(f"{path} is not a settings file: {error}", param_hint="--settings") from None
    if not isinstance(content, dict) or content.get("ranksvm") != "settings":
        raise click.BadParameter(
            f"{path} is not a settings file, as `ranksvm tune --save-choice` writes them.", param_hint="--settings"
        )
    settings = content.get("settings")
    if not isinstance(settings, dict):
        raise click.BadParameter(f"{path}: 'settings' is missing, or is not an object.", param_hint="--settings")
    for name in settings:
        if name not in SETTINGS:
            raise click.BadParameter(
                f"{path}: unknown setting {name!r}: expected some of {', '.join(SETTINGS)}.", param_hint="--settings"
            )
    return settings
