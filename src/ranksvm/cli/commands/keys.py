"""``ranksvm keys``: API keys of a service."""

import click

from ranksvm.cli.options.shared import json_option
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.tables import print_json, print_table
from ranksvm.cli.terminal import say


@click.command("keys", short_help="API keys of a service.")
@click.argument("store")
@click.option("--add", metavar="NAME", help="Make a key. It is printed once; only its hash is stored.")
@click.option(
    "--scopes",
    metavar="S,S,...",
    default="rank,feedback",
    show_default=True,
    help="What the new key allows: rank, feedback, read (page, metrics, explanations), admin (roll-back).",
)
@click.option("--revoke", metavar="NAME", help="Remove a key.")
@json_option
@debug_option
def keys_command(store: str, add: str | None, scopes: str, revoke: str | None, as_json: bool) -> None:
    """List the API keys of the service whose log is in STORE, make one, or revoke one.

    A running service applies a change within seconds. Once a key has been created, every request needs one, even after
    the last key is revoked.

    \b
    Examples:
      ranksvm keys events.db --add shop
      ranksvm keys events.db --add operator --scopes read,admin
    """
    from ranksvm.exceptions import OptionError
    from ranksvm.serving.access import add_key
    from ranksvm.serving.store import open_store

    opened = open_store(store)
    try:
        key = None if add is None else add_key(opened, add, scopes.split(","))
        if revoke is not None and not opened.remove_key(revoke):
            raise OptionError(f"{store} has no key {revoke!r}.")
        had_keys = opened.had_keys()
        known = [(name, allowed.split(",")) for name, _, allowed in opened.api_keys()]
    finally:
        opened.close()
    if as_json:
        listed = [{"name": name, "scopes": allowed} for name, allowed in known]
        print_json({"command": "keys", "store": store, "keys": listed, "key": key})
    elif key is not None:
        say(key)
    elif known:
        print_table(["key", "scopes"], [[name, ", ".join(allowed)] for name, allowed in known], left=2)
    else:
        text = "There are no keys: the service answers only requests from its own machine."
        if had_keys:
            text = "No keys are left, so that nobody has access: make one with --add, or serve with --insecure."
        say(text, err=True)
