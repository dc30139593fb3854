"""``ranksvm serve``: rank over HTTP, take feedback, learn from it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ranksvm.cli.options.online import learner_options, make_learner
from ranksvm.cli.options.paths import path_to_open
from ranksvm.cli.options.shared import EXISTING_FILE, Name, Number, Probability, quiet_option
from ranksvm.cli.output.errors import debug_option, warn
from ranksvm.cli.output.progress import Progress

if TYPE_CHECKING:
    from ranksvm.cli.features import Model
    from ranksvm.serving.access import Keys
    from ranksvm.serving.learning import Learning, Settings
    from ranksvm.serving.service import Service
    from ranksvm.serving.store import Store

# The same as `serving.click_learning.RULES`, which must not be imported for --help.
RULES = ("shown", "shown_all", "fair_pairs", "skip_above", "last_click_skip_above")


class Propensities(click.ParamType):
    """A file of `PositionBias`, or the name of a curve; converted to the fields of `ClickLearning` to change."""

    name = "propensities"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        from ranksvm.clicks import PositionBias
        from ranksvm.serving.click_learning import bias_settings, curve

        if value == "estimate":
            return curve("estimated")
        name, _, eta = value.partition(":")
        if name == "power":
            number = Number().convert(eta or "1", param, ctx)
            return curve("power", number)
        return bias_settings(PositionBias.load(path_to_open(EXISTING_FILE.convert(value, param, ctx))))


class FeatureRange(click.ParamType):
    """How features outside their range are treated, and the range; converted to the fields of `RangeRule` to change."""

    name = "range"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        outside, colon, multiple = value.partition(":")
        if outside not in ("clip", "refuse", "none") or (colon and outside == "none"):
            self.fail(f"{value!r} is none of clip, clip:20, refuse, refuse:20 and none (20 is a multiple).", param, ctx)
        if outside == "none":
            return {"outside": outside}
        number = Number().convert(multiple, param, ctx) if colon else 5.0
        if not 1 <= number <= 1e6:
            self.fail(f"{multiple} is not between 1 and 1e6; none is no range.", param, ctx)
        return {"outside": outside, "multiple": number}


class Network(click.ParamType):
    """The address of a computer or of a network, such as 10.0.0.0/8."""

    name = "network"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from ipaddress import ip_network

        try:
            return str(ip_network(value))
        except ValueError as error:
            self.fail(f"{error}: give an address such as 10.0.0.5, or a network such as 10.0.0.0/8.", param, ctx)


@click.command("serve", short_help="Rank over HTTP, and learn from feedback.")
@click.option("--store", required=True, metavar="FILE|URL", help="The log: a file, or postgresql://USER@HOST/DATABASE.")
@click.option(
    "--model",
    type=EXISTING_FILE,
    metavar="MODEL",
    help="Model that a new store begins with.  [default: a new model of --learner]",
)
@click.option(
    "--challenger",
    type=EXISTING_FILE,
    metavar="MODEL",
    help="Second model of a new store, to compare with the first one.",
)
@learner_options(levels="required for prank")
@click.option("--n-features", type=click.IntRange(min=1), metavar="N", help="Number of features of a new model.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    metavar="N",
    help="Port to listen on; 0: any free port.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="While there is no API key (`ranksvm keys`), answer anyone who can connect: --host may then be reachable from "
    "other machines, requests may name another host, and the last key may have been revoked. Use it only if everyone "
    "who can connect may rank, give feedback, read and administer. While there are keys, it does nothing.",
)
@click.option(
    "--allowed-host",
    multiple=True,
    metavar="NAME",
    help="Host name, besides localhost, that requests without an API key may use for this machine; may be repeated.",
)
@click.option(
    "--explore",
    type=click.Choice(["none", "epsilon", "fair-pairs", "team-draft"]),
    default="none",
    show_default=True,
    help="Show some rankings in random order (epsilon), exchange neighboring documents at random (fair-pairs), or "
    "interleave with the ranking of the challenger (team-draft).",
)
@click.option(
    "--epsilon", type=Probability(), default=0.05, show_default=True, metavar="P", help="Chance of a random order."
)
@click.option(
    "--click-rule",
    type=Name(list(RULES)),
    metavar="RULE",
    help="Which documents a clicked one is preferred to: all that were shown without a click (shown), all that were "
    "shown (shown-all), the document directly above it, if that one was not clicked and their order was random "
    "(fair-pairs), or those without a click above it (skip-above; last-click-skip-above: for the last click only).  "
    "[default: the rule in the store; in a new store shown, or fair-pairs with --explore fair-pairs]",
)
@click.option(
    "--bias",
    type=Propensities(),
    metavar="FILE|NAME",
    help="Propensities of the ranks, for clicks: a file of `ranksvm bias`; power (1/rank) or power:ETA (1/rank^ETA); "
    "or estimate: 1/rank^ETA, with ETA estimated from the store as it grows.  [default: the propensities in the "
    "store; in a new store estimate]",
)
@click.option(
    "--follow-drift/--ignore-drift",
    default=None,
    help="Whether SOLAR forgets most of what it learned when users begin to click as if the documents were in random "
    "order.  [default: the choice in the store; in a new store --follow-drift]",
)
@click.option(
    "--feature-range",
    type=FeatureRange(),
    metavar="CHOICE",
    help="What happens to values of a feature that are more than N times as large as is usual in earlier feedback: "
    "clip:N clips them, refuse:N refuses the request; no model learns from such documents. none: there is no limit.  "
    "[default: the choice in the store; in a new store clip:5]",
)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Write a new version of the model after feedback on this number of events.",
)
@click.option(
    "--seconds", type=Number(), default=0.5, show_default=True, help="Longest time between two versions, in seconds."
)
@click.option(
    "--reward-wait",
    type=Number(),
    metavar="SECONDS",
    help="Accept feedback on an event only for this time.  [default: no limit]",
)
@click.option(
    "--unanswered",
    type=click.Choice(["zero", "ignored"]),
    default="zero",
    show_default=True,
    help="With --reward-wait: an event without feedback counts as all labels 0, or is ignored.",
)
@click.option("--retain", type=Number(), metavar="DAYS", help="Remove events older than this.  [default: keep all]")
@click.option("--metric", default="ndcg@10", show_default=True, metavar="M", help="Metric of a new store.")
@click.option(
    "--refit-every",
    type=click.IntRange(min=10),
    default=1000,
    show_default=True,
    metavar="N",
    help="For a model that cannot learn query by query, in a new store: number of events with feedback between two "
    "fits.",
)
@click.option(
    "--max-body",
    type=click.IntRange(min=1),
    default=8 << 20,
    show_default=True,
    metavar="BYTES",
    help="Maximum size of the body of a request.",
)
@click.option(
    "--max-documents",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    metavar="N",
    help="Maximum number of documents in a request.",
)
@click.option(
    "--rate",
    type=Number(),
    metavar="N",
    help="Maximum number of requests per second from a client.  [default: no limit]",
)
@click.option(
    "--max-connections",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    metavar="N",
    help="Maximum number of connections of a client.",
)
@click.option(
    "--trusted-proxy",
    type=Network(),
    multiple=True,
    metavar="ADDRESS",
    help="Address or network of a proxy. Its X-Forwarded-For header names its clients; this header is ignored if it "
    "comes from anyone else. May be repeated.",
)
@quiet_option
@debug_option
@click.pass_context
def serve_command(ctx: click.Context, **options: Any) -> None:
    """Rank documents over HTTP, take feedback, and learn from it; a page at / shows the state of the service.

    Everything is in the store: after a restart, the service continues where it stopped, even if it was killed. Several
    services may share a store; one of them learns. Needs pip install "ranksvm[serve]".

    \b
    Examples:
      ranksvm serve --model model.rsvm --store events.db
      ranksvm serve --learner solar2 --n-features 46 --store events.db
    """
    from ranksvm.serving.http_server import serve

    with Progress(options["quiet"]) as progress:
        serve(_service(ctx, options), options["host"], options["port"], tell=progress.line)


def _service(ctx: click.Context, options: dict[str, Any]) -> "Service":
    """The service on its store; a new store begins with the models that the options name."""
    import time

    from ranksvm.exceptions import OptionError
    from ranksvm.serving.access import Keys
    from ranksvm.serving.click_learning import ClickLearning
    from ranksvm.serving.feature_range import RangeRule
    from ranksvm.serving.learner import Schedule, begin
    from ranksvm.serving.learner_process import LearnerProcess
    from ranksvm.serving.requests import Limits
    from ranksvm.serving.service import Options, Service
    from ranksvm.serving.store import open_store

    wait, unanswered = options["reward_wait"], options["unanswered"]
    store = open_store(options["store"], reward_wait=wait, unanswered=unanswered)
    try:
        _check_access(options, Keys(store, options["insecure"]))
        if store.checkpoint() is None:
            models, settings = _beginning(ctx, options)
            clicks, rule = (
                ClickLearning(**_click_learning(options)),
                RangeRule("clip").changed(options["feature_range"] or {}),
            )
            begin(store, models, settings, at=time.time(), click_learning=clicks, range_rule=rule)
        elif options["model"] is not None or options["challenger"] is not None:
            warn(f"{options['store']} has models already: it continues with these, not with --model or --challenger.")
        learning = begin(store, None, None, at=0.0)
        _keep_settings(ctx, options, learning.settings)
        if options["explore"] == "team-draft" and "challenger" not in learning.models:
            raise OptionError(f"team-draft needs a second model, and {options['store']} has none: begin a new store.")
        _change_click_learning(store, learning, options)
        _change_range(store, learning, options)
        schedule = Schedule(options["every"], options["seconds"], retain_days=options["retain"])
        return Service(
            store,
            LearnerProcess(store, options["store"], schedule, wait, unanswered),
            Options(
                options["explore"],
                options["epsilon"],
                Limits(options["max_body"], options["max_documents"], connections=options["max_connections"]),
                options["rate"],
                options["insecure"],
                wait,
                tuple(name.lower() for name in options["allowed_host"]),
                options["trusted_proxy"],
            ),
        )
    except BaseException:
        store.close()
        raise


def _click_learning(options: dict[str, Any]) -> dict[str, Any]:
    """How a new store learns from clicks."""
    from ranksvm.serving.click_learning import curve

    rule = options["click_rule"] or ("fair_pairs" if options["explore"] == "fair-pairs" else "shown")
    propensities = options["bias"] or curve("estimated")
    return {"rule": rule, **propensities, "follow_drift": options["follow_drift"] is not False}


def _change_click_learning(store: "Store", learning: "Learning", options: dict[str, Any]) -> None:
    """Change how a store learns from clicks to what the options say, from now on."""
    import time

    import msgspec

    from ranksvm.serving.records import Entry, Kind

    current = learning.click_learning
    for _, changes in store.pending(Kind.CLICK_LEARNING, learning.position):
        current = current.changed(changes)
    changes = {} if options["click_rule"] is None else {"rule": options["click_rule"]}
    if options["follow_drift"] is not None:
        changes["follow_drift"] = options["follow_drift"]
    bias = options["bias"]
    # a store that already uses an estimate keeps its own estimate
    if bias is not None and not (bias["source"] == current.source == "estimated"):
        changes |= bias
    if current.source == "none":
        changes = _click_learning(options)
        warn(
            f"{options['store']} preferred a clicked document to the unclicked ones above it, which does not converge; "
            f"from now on it learns by the rule {changes['rule']}. --click-rule skip-above keeps the old rule."
        )
    if any(getattr(current, name) != value for name, value in changes.items()):
        store.append([Entry(Kind.CLICK_LEARNING, None, msgspec.msgpack.encode(changes, order="sorted"), time.time())])
    if current.changed(changes).rule == "fair_pairs" and options["explore"] != "fair-pairs":
        warn("clicks teach nothing by the rule fair-pairs unless lists are shown with --explore fair-pairs.")


def _change_range(store: "Store", learning: "Learning", options: dict[str, Any]) -> None:
    """Change how a store treats features outside their range to what the options say, from now on."""
    import time

    import msgspec

    from ranksvm.serving.records import Entry, Kind

    current = learning.range.rule
    for _, changes in store.pending(Kind.FEATURE_RANGE, learning.position):
        current = current.changed(changes)
    changes = options["feature_range"] or {}
    if current.outside == "unset" and not changes:
        changes = {"outside": "clip"}
        warn(
            f"{options['store']} had no range of features: from now on features beyond 5 times their usual size are "
            "clipped, and not learned from. --feature-range none keeps the old way."
        )
    if current.changed(changes) != current:
        store.append([Entry(Kind.FEATURE_RANGE, None, msgspec.msgpack.encode(changes, order="sorted"), time.time())])


def _beginning(ctx: click.Context, options: dict[str, Any]) -> "tuple[dict[str, Any], Settings]":
    """The models of a new store, which take columns by position, and its settings."""
    from ranksvm.exceptions import OptionError
    from ranksvm.metrics import parse_metric
    from ranksvm.metrics.definitions import ERR
    from ranksvm.serving.learning import CHAMPION, Settings
    from ranksvm.serving.models import by_position, feature_names

    if options["model"] is None and options["learner"] == "prank" and options["levels"] is None:
        raise click.UsageError("--learner prank needs --levels, such as 0,1,2.")
    if options["explore"] == "team-draft" and options["challenger"] is None:
        raise click.UsageError("--explore team-draft needs a second model: give --challenger.")
    metric = parse_metric(options["metric"])
    if isinstance(metric, ERR):
        raise OptionError(f"--metric {metric.name} needs the highest grade of all labels, which a service cannot know.")
    champion = _loaded(options["model"]) or make_learner(ctx, options)
    names = feature_names(champion, options["n_features"])
    models = {CHAMPION: champion}
    if (challenger := _loaded(options["challenger"])) is not None:
        if feature_names(challenger, len(names)) != names:
            raise OptionError("the challenger has features of other names than the model.")
        models["challenger"] = challenger
    settings = Settings(names, metric.name, options["refit_every"])
    return {name: by_position(model) for name, model in models.items()}, settings


def _keep_settings(ctx: click.Context, options: dict[str, Any], settings: "Settings") -> None:
    """Warn about options that a store has had since it was created, if they are given with other values."""
    from ranksvm.metrics import parse_metric

    kept = {"n_features": len(settings.names), "metric": settings.metric, "refit_every": settings.refit_every}
    for name, value in kept.items():
        option = f"--{name.replace('_', '-')}"
        given = parse_metric(options[name]).name if name == "metric" else options[name]
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE and given != value:
            warn(f"{options['store']} was created with {option} {value}: {option} {options[name]} has no effect.")


def _loaded(path: Path | None) -> "Model | None":
    from ranksvm.cli.files import load_model

    return None if path is None else load_model(path)


def _check_access(options: dict[str, Any], keys: "Keys") -> None:
    """Refuse a host that other machines can reach, unless requests need a key or --insecure is given."""
    from ranksvm.exceptions import OptionError
    from ranksvm.serving.access import is_loopback

    if not is_loopback(options["host"]) and not keys and not options["insecure"]:
        raise OptionError(
            f"--host {options['host']} can be reached from other machines: make an API key first "
            f"(ranksvm keys {options['store']} --add NAME), or accept anyone with --insecure."
        )
