"""RankSVM on a GPU: correctness for all losses, fits compared with the CPU and with published ones, and a profile.

python benchmarks/gpu.py -o benchmarks/results/gpu.md

The page is written again after every part, so that results are kept if a part fails or the run is stopped. Without a
GPU, the program exits with a message. With --host it runs tiny data on the host instead of a GPU, which measures
nothing.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from _common import arguments, data_folder, page, publish, read, table, verdict
from _gpu_additive import AdditiveFit, additive_fits
from _gpu_auto import Choice, choices, fitted_preparation
from _gpu_cases import cases
from _gpu_checks import CLOSE, Check, checks
from _gpu_device import BANDWIDTH_VALUES, bandwidth, gpu_name, launch_seconds
from _gpu_fits import CERTIFIED, TOLS, Measured, measured, places
from _gpu_kernels import KernelFit, kernel_fit, large_product
from _problems import linear_problem_of
from ranksvm import RankSVM, make_ranking
from ranksvm.device import Device, DeviceCosts, calibrate_device, names, open_device
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import RankSVMError
from ranksvm.fits import work
from ranksvm.plotting.figures import PALETTE

SEED = 0
# The optimum of the objective on MQ2008 fold 1 in float64 at C = 1, found by other solvers.
OPTIMUM = 29566.5228
NOT_MEASURED = "**Not yet measured.** The host stood in for the GPU, on tiny data: these numbers tell nothing of one."
TINY_DATA = " **Tiny data: the times tell nothing.**"
# Size of the data for each length of lists.
LIST_ROWS, LIST_FEATURES = 1 << 19, 46
LIST_LENGTHS = tuple(1 << exponent for exponent in range(4, 16))


# -- what is measured --------------------------------------------------------------------------------------------------


def first_call(device: str) -> float:
    """Seconds of the first GPU fit (300 rows, 5 features) in a new process, after a fit on the CPU."""
    if device != "cuda:0":
        return np.nan
    code = (
        "import time; from ranksvm import RankSVM, make_ranking; d = make_ranking(30, 10, 5, random_state=0);"
        "RankSVM().fit(d.X, d.y, qid=d.qid); t = time.perf_counter();"
        "RankSVM(device='cuda').fit(d.X, d.y, qid=d.qid); print(time.perf_counter() - t)"
    )
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def optimum_of_mq2008(device: str) -> float:
    """The optimum of MQ2008 fold 1, read in float64, at C = 1; NaN without the data."""
    folder = data_folder()
    if folder is None or not (folder / "MQ2008").is_dir():
        return np.nan
    data = read("MQ2008", dtype="float64")
    return float(RankSVM(C=1.0, tol=1e-10, device=device).fit(data.X, data.y, qid=data.qid).objective_)


def by_list_length(device: str, smoke: bool) -> Iterator[tuple[int, dict[str, float]]]:
    """For each length of lists: nanoseconds per document of an evaluation, by processor."""
    n_rows, lengths = (256, (16, 64)) if smoke else (LIST_ROWS, LIST_LENGTHS)
    for length in lengths:
        data = make_ranking(n_rows // length, length, LIST_FEATURES, random_state=SEED)
        found = {}
        for place in places(device):
            problem = linear_problem_of(RankSVM(device=place.device, n_jobs=place.n_jobs), data)
            term, times = problem.objective.term, []
            for turn in range(4):
                started = time.perf_counter()
                term.release(term.evaluate(np.full(LIST_FEATURES, 0.01 * (turn + 1)), None))
                times.append(time.perf_counter() - started)
            found[place.name] = 1e9 * min(times[1:]) / data.n_rows
        yield length, found


# -- the page ----------------------------------------------------------------------------------------------------------


def correctness(found: list[Check]) -> str:
    """A sentence with the verdict, and a table of all checks."""
    failed = [check.name for check in found if not check.passed]
    verdict_of_all = "all passed" if not failed else f"**FAILED: {'; '.join(failed)}**"
    rows = [
        (c.name, f"{c.difference:.1e}", f"{c.certificate:.1e}", "yes" if c.repeated else "**NO**", c.error)
        for c in found
    ]
    return (
        f"## Correctness\n\n{len(found)} fits at tol=1e-8 beside the processor's: {verdict_of_all}. Objectives may "
        f"differ by a relative {CLOSE:g}, or by the certificate where that is larger; two fits give the same bits.\n\n"
        + table(["fit", "difference (relative)", "certificate (relative)", "same bits", "error"], rows)
    )


def fits(found: list[Measured]) -> str:
    """Seconds until the certificate is reached, by processor."""
    others = [name for name in found[0].curves if name != "GPU"]
    header = ["data, C", "rows x features", "copy of X, s", "GPU, solver, s", "GPU, whole fit, s", "X on the GPU, s"]
    header += [f"{name}, {what}, s" for name in others for what in ("solver", "whole fit")]
    header += ["ratio of solvers, 2 threads", "of whole fits", "`auto` took", "s"]
    rows = []
    for one in found:
        gpu = one.curves["GPU"].at(CERTIFIED)[0]
        cells = [f"{one.copy:.4f}", f"{gpu:.4f}", f"{one.whole['GPU']:.4f}", f"{one.there:.4f}"]
        for name in others:
            cells += [f"{one.curves[name].at(CERTIFIED)[0]:.4f}", f"{one.whole[name]:.4f}"]
        two = one.curves["2 threads"].at(CERTIFIED)[0]
        cells += [
            f"{two / gpu:.2f}",
            f"{one.whole['2 threads'] / one.whole['GPU']:.2f}",
            one.auto[0],
            f"{one.auto[1]:.4f}",
        ]
        rows.append((one.name, "{:,} x {}".format(*one.data.X.shape), *cells))
    return (
        f"## Fits certified to {CERTIFIED:g}\n\nThe shortest of some fits. *Solver*: the solver alone, features and "
        "pairs on the device; *whole fit*: `fit`, with checks of the input, pairs, copies and the solver; *X on the "
        "GPU*: `fit` of an array that is there already. X is copied from memory that is not pinned, by all threads.\n\n"
        + table(header, rows)
    )


def objectives(found: list[Measured]) -> str:
    """Objectives at the smallest tolerance, and training accuracies."""
    rows = []
    for one in found:
        others = [curve for name, curve in one.curves.items() if name != "GPU"]
        (_, gpu, gap), (_, cpu, other) = one.curves["GPU"].at(TOLS[-1]), others[0].at(TOLS[-1])
        paper = one.case.published
        theirs = "" if paper is None or one.tuned else " / ".join(f"{value:.2f}" for value in paper.accuracies)
        accuracies = [f"{one.accuracy[name]:.4f}" for name in ("GPU", "2 threads")]
        difference = abs(gpu - cpu) / cpu
        allowed = max(CLOSE, max(gap, other) / cpu)
        verdict_of_it = "within" if difference <= allowed else "**BEYOND**"
        cells = f"{gpu:.10g}", f"{difference:.1e}, {verdict_of_it}", f"{gap / gpu:.1e}", *accuracies, theirs
        rows.append((one.name, *cells))
    header = [
        "data, C",
        "objective, GPU",
        "off the CPU's",
        "certificate",
        "accuracy, GPU, %",
        "CPU, %",
        "the paper's, %",
    ]
    return (
        f"## Objectives at tol={TOLS[-1]:g}, and pairwise accuracy on the training data\n\nThe paper's Table 3 "
        "(DCM / OST / GPU, on the real data) is of the training data; its three solvers minimize one function.\n\n"
        + table(header, rows)
    )


def beside_the_paper(found: list[Measured]) -> str:
    """The paper's seconds and ours, and the paper's settings on this GPU."""
    rows = []
    for one in found:
        paper = one.case.published
        if paper is None or one.tuned:
            continue
        taken, off = one.published_recipe
        theirs = paper.direct, paper.tree, paper.gpu, paper.direct / paper.gpu, paper.tree / paper.gpu
        cells = f"{taken:.4f}", f"{off:.1e}", f"{one.whole['GPU']:.4f}"
        rows.append((one.name, *(f"{value:.2f}" for value in theirs), *cells))
    header = ["data, C", "their DCM, s", "OST, s", "GPU, s", "speed-up over DCM", "over OST"]
    header += ["their recipe here, s", "over the optimum", f"our fit to {CERTIFIED:g}, s"]
    return (
        "## Beside the paper\n\nTheirs: Tesla C2050, Xeon E5620, real data; not comparable in seconds. *Their recipe*: "
        "float32 features, plain TRON until the gradient is 1e-5 of that at 0, on this GPU with our kernels, which sum "
        "in float64.\n\n" + table(header, rows)
    )


def bandwidths(found: list[Measured], peak: float) -> str:
    """How often X is read, and the time of an evaluation compared with reading X once."""
    rows = []
    for one in found:
        size = one.data.X.nbytes
        floor = size / peak
        rate = size * one.passes / one.curves["GPU"].at(CERTIFIED)[0]
        cells = f"{1e3 * one.evaluation:.3f}", f"{one.evaluation / floor:.2f}"
        cells += f"{1e3 * one.streamed:.3f}", f"{one.streamed / one.copy:.2f}"
        rows.append((one.name, f"{size / 1e6:,.1f}", f"{one.passes:.1f}", f"{rate / 1e9:,.1f}", *cells))
    header = ["data, C", "X, MB", "times X is read in a fit", "GB/s of X in the fit", "an evaluation, ms"]
    header += ["in floors (one read of X)", "X streamed, ms", "in copies of X"]
    return (
        f"## Bandwidth\n\nMemory: {peak / 1e12:.3f} TB/s, counting what `a + alpha (b - a)` of long vectors reads and "
        "writes. *Floor*: one read of X at that speed. "
        "*X streamed*: an evaluation with X in pinned memory of the host, copied once for each; "
        "*copies of X*: from memory that is not pinned, by all threads.\n\n" + table(header, rows)
    )


def profiles(found: list[Measured], peak: float, empty: float) -> str:
    """The time of each kernel."""
    parts = [
        "## Profile\n\nA fit to the same certificate, with a wait after each launch. The time of an empty launch, "
        f"{1e6 * empty:.1f} us, is subtracted from each. Bytes are the sizes of the arrays that a kernel takes, each "
        "counted once. *Limit*: memory, if the kernel reaches half of its speed; launches, if it takes no longer than "
        "an empty one; otherwise arithmetic and latency (visits of pairs, float64, uneven lists)."
    ]
    for one in found:
        total = sum(spent.seconds for spent in one.profile.values()) or 1.0
        rows = []
        for kernel, spent in sorted(one.profile.items(), key=lambda item: -item[1].seconds):
            share = spent.n_bytes / max(spent.seconds, 1e-12) / peak
            each = spent.seconds / spent.launches
            limit = "launches" if each < empty else "memory" if share >= 0.5 else "arithmetic, latency"
            numbers = (
                f"{1e3 * spent.seconds:.3f}",
                f"{100 * spent.seconds / total:.0f} %",
                f"{spent.n_bytes / 1e6:,.1f}",
            )
            rows.append((kernel, spent.launches, *numbers, f"{100 * share:.1f} %" if each >= empty else "", limit))
        header = ["kernel", "launches", "ms", "of all", "MB", "of memory's speed", "limit"]
        parts.append(f"### {one.name}\n\n{table(header, rows)}")
    return "\n\n".join(parts)


def lengths(found: list[tuple[int, dict[str, float]]], smoke: bool) -> str:
    """The time of evaluations by length of the lists."""
    n_rows = 256 if smoke else LIST_ROWS
    rows = [(length, *(f"{value:.2f}" for value in times.values())) for length, times in found]
    header = ["documents a list", *(f"{name}, ns a document" for name in found[0][1])]
    return (
        f"## Length of lists\n\nAn evaluation of {n_rows:,} x {LIST_FEATURES} in five levels, cut into lists of one "
        "length: all pairs are visited on the GPU, so its time grows with the length; the processor's does not.\n\n"
        + table(header, rows)
    )


def additive(found: list[AdditiveFit], peak: float) -> str:
    """Additive models: seconds by processor, and the kernels of the largest fit."""
    others = [name for name in found[0].whole if name != "GPU"]
    header = ["data, levels, C", "rows x features", "levels and codes, s"]
    header += [f"{name}, {what}" for name in found[0].whole for what in ("solver, s", "whole fit, s", "evaluation, ms")]
    header += ["an evaluation in floors", "objective off 2 threads'", "certificate"]
    rows = []
    for one in found:
        options = one.options
        name = f"{one.name}, {options.get('max_bins', 32)}, C = {options.get('C', 1.0):g}"
        cells = []
        for place in one.whole:
            cells += [f"{one.solver[place]:.4f}", f"{one.whole[place]:.4f}", f"{1e3 * one.evaluation[place]:.3f}"]
        off = abs(one.objectives["GPU"] / one.objectives[others[0]] - 1.0)
        floors = one.evaluation["GPU"] * peak / one.bytes
        rows.append(
            (
                name,
                "{:,} x {}".format(*one.shape),
                f"{one.levels:.4f}",
                *cells,
                f"{floors:.1f}",
                f"{off:.1e}",
                f"{one.gaps['GPU'] / one.objectives['GPU']:.1e}",
            )
        )
    last = found[-1]
    total = sum(spent.seconds for spent in last.profile.values()) or np.nan
    profile = [
        (kernel, spent.launches, f"{1e3 * spent.seconds:.3f}", f"{100 * spent.seconds / total:.0f} %")
        for kernel, spent in sorted(last.profile.items(), key=lambda item: -item[1].seconds)
    ]
    return (
        "## Additive models\n\nTo the default certificate, float32 features. *Levels and codes*: on the CPU, with all "
        "threads, part of each whole fit. *Floor*: one read of X and of the codes, one byte each.\n\n"
        + table(header, rows)
        + "\n\nThe kernels of the last fit, with a wait after each launch:\n\n"
        + table(["kernel", "launches", "ms", "of all"], profile)
    )


def kernels(found: KernelFit, large: tuple[int, float, float] | None, peak: float) -> str:
    """Exact kernel models."""
    rows = []
    for name, taken in found.fits.items():
        cells = f"{taken:.3f}", found.products[name], f"{found.objectives[name]:.10g}"
        more = f"{found.making[name]:.4f}", f"{1e3 * found.product[name]:.3f}", f"{found.fits['2 threads'] / taken:.2f}"
        rows.append((name, *cells, *more))
    header = ["place", "fit, s", "products", "objective", "making Q, s", "a product, ms", "2 threads over it"]
    text = (
        f"## Exact kernel fit\n\n{found.name}, {found.n_rows:,} rows, rbf, to the default certificate. The goal is 20 "
        f"times 2 threads.\n\n{table(header, rows)}"
    )
    if large is None:
        return text
    n_rows, making, product = large
    rate = 4.0 * n_rows**2 / product
    return text + (
        f"\n\nA Q that fills memory, {n_rows:,} x 46 features: made and "
        f"multiplied in {making:.2f} s, then a product in {1e3 * product:.2f} ms, {rate / 1e9:,.0f} GB/s, "
        f"{100 * rate / peak:.0f} % of memory's speed."
    )


def cost_model(found: list[Choice], costs: DeviceCosts) -> str:
    """The estimates of "auto", and the times of the fits."""
    rows = []
    for one in found:
        cells = (f"{value:.4f}" for pair in zip(one.estimated, one.taken, strict=True) for value in pair)
        rows.append((one.name, *cells, one.chose, f"{one.auto:.4f}", f"{one.regret:.2f}"))
    header = ["fit", "processor, estimated, s", "measured", "GPU, estimated", "measured", "`auto` took", "s"]
    worst = max(one.regret for one in found)
    read, visits = (1e-9 / max(cost, 1e-18) for cost in (costs.read_byte, costs.visit))
    measured_costs = (
        f"a round of launches {1e6 * costs.round:.1f} us, copies {1e-9 / costs.copy_byte:.1f} GB/s, reads {read:,.0f} "
        f"GB/s, {visits:,.1f} billion visits of pairs a second, kernels compiled in {1e3 * costs.compilation:.0f} ms"
    )
    return (
        "## The choice of `auto`\n\nThe kernels are compiled already, and the CPU uses all threads. No estimate "
        "includes the work that both have in common (checks of the input, pairs). Measured on the device "
        f"before the choice: {measured_costs}. *Regret*: seconds on the chosen device over seconds on the faster one: "
        f"at most {worst:.2f}.\n\n{table([*header, 'regret'], rows)}"
    )


def constants(found: list[Measured], chosen: list[Choice], costs: DeviceCosts) -> str:
    """Values for constants of `fits/work.py` that these evaluations and fits suggest."""
    equations, seconds = [], []
    for one in found:
        equations.append(np.array([costs.read_byte * one.data.X.nbytes, costs.visit * one.visits]) / one.evaluation)
        seconds.append(max(0.0, 1.0 - costs.round / one.evaluation))
    reads, visits = nnls(np.array(equations), np.array(seconds))[0]
    used = f"{work.READ_RATIO}, {work.VISIT_RATIO}"
    rows = [("`READ_RATIO`, `VISIT_RATIO`: of evaluations", f"{reads:.1f}, {visits:.1f}", used)]
    if chosen:
        fitted = (f"{value:.1e}" for value in fitted_preparation(chosen))
        used = f"{work.PREPARATION}, {work.PREPARATION_OF_ROW}"
        rows.append(("`PREPARATION`, `PREPARATION_OF_ROW`: of fits", ", ".join(fitted), used))
    rows.append(("passes over X in a fit (median)", f"{np.median([one.passes for one in found]):.1f}", ""))
    return "## Constants of `fits/work.py`\n\n" + table(["", "fitted to the figures of this page", "in use"], rows)


def goals(found: list[Measured], chosen: list[Choice], peak: float, first: float, optimum: float) -> str:
    """The goals, and whether each was met."""
    lines = [f"- first call, {first:.2f} s: at most {verdict(first, 1.0)}"]
    if np.isfinite(optimum):
        off = abs(optimum - OPTIMUM)
        lines.append(
            f"- MQ2008 fold 1 in float64, C = 1: objective off {OPTIMUM}, {off:.1e}: at most {verdict(off, 1e-4)}"
        )
    if chosen:
        worst = max(chosen, key=lambda one: one.regret)
        lines.append(f"- regret of `auto` at worst ({worst.name}): at most {verdict(worst.regret, 1.2)}")
    for one in found:
        floors = one.evaluation / (one.data.X.nbytes / peak)
        lines.append(f"- {one.name}: an evaluation in floors, {floors:.2f}: at most {verdict(floors, 3.0)}")
        gpu, cpu = one.curves["GPU"].at(CERTIFIED)[0], one.curves["2 threads"].at(CERTIFIED)[0]
        better = min(one.whole.values())
        lines.append(f"- {one.name}: `auto` over the better of both: at most {verdict(one.auto[1] / better, 1.2)}")
        if one.case.name.startswith("MSLR-WEB30K"):
            ratio, whole = gpu / cpu, one.whole["GPU"] / one.whole["2 threads"]
            lines.append(f"- {one.name}: solver, {1e3 * gpu:.1f} ms: at most {verdict(1e3 * gpu, 30)}")
            lines.append(f"- {one.name}: of the processor's solver, {ratio:.4f}: at most {verdict(ratio, 1 / 20)}")
            lines.append(f"- {one.name}: of its whole fit, {whole:.4f}: at most {verdict(whole, 1 / 5)}")
        if one.case.name.startswith("MQ2008 "):
            ratio = one.whole["GPU"] / min(value for name, value in one.whole.items() if name != "GPU")
            lines.append(f"- {one.name}: whole fit over the processor's, {ratio:.2f}: at most {verdict(ratio, 2.0)}")
    return "## Goals\n\n" + "\n".join(lines)


def plot(found: list[Measured], path) -> None:
    """Distance from the optimum against seconds, a panel for each data set at C = 1: the paper's Fig. 1."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    shown = [one for one in found if not one.tuned]
    columns = min(3, len(shown))
    shape = -(-len(shown) // columns), columns
    figure, axes = plt.subplots(*shape, figsize=(3.6 * columns, 3.0 * shape[0] + 0.4), squeeze=False, sharey=True)
    figure.set_layout_engine("constrained")
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    for axis, one in zip(axes.flat, shown, strict=False):
        for place, (name, curve) in enumerate(one.curves.items()):
            off = np.maximum(np.array(curve.objectives) / one.optimum - 1.0, 1e-12)
            axis.loglog(
                1e3 * np.array(curve.seconds), off, "o-", color=PALETTE[place], markersize=4, linewidth=1.2, label=name
            )
        axis.set_title(one.name, fontsize=9)
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
        axis.set_xlabel("milliseconds of the solver")
    for row in axes:
        row[0].set_ylabel("over the optimum (relative)")
    lines = {line.get_label(): line for line in axes.flat[0].get_lines()}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines))
    temporary = path.with_name(path.stem + ".part.png")
    figure.savefig(temporary, dpi=80)
    temporary.replace(path)
    plt.close(figure)


def checked_fits(device: str, smoke: bool, only: str = "") -> Iterator[Check]:
    """Run the checks; report each failure immediately."""
    wrong = n_checks = 0
    for check in checks(device, smoke, only):
        n_checks += 1
        if not check.passed:
            wrong += 1
            print(f"NOT CORRECT: {check}", file=sys.stderr, flush=True)
        yield check
    print(f"{n_checks - wrong} of {n_checks} fits are correct", file=sys.stderr, flush=True)


@dataclass
class Results:
    """The measurements so far; None, NaN or empty if there is none yet."""

    costs: DeviceCosts
    checks: list[Check] = field(default_factory=list)
    fits: list[Measured] = field(default_factory=list)
    peak: float = np.nan
    empty: float = np.nan
    first: float = np.nan
    optimum: float = np.nan
    by_length: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    additive: list[AdditiveFit] = field(default_factory=list)
    kernel: KernelFit | None = None
    large: tuple[int, float, float] | None = None
    choices: list[Choice] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def measure_all(options, device: Device, found: Results) -> Iterator[None]:
    """Measure as many parts as the time allows, the most important ones first.

    If a part raises an exception, the others are still measured, and the page says what failed.
    """
    started = time.perf_counter()
    smoke, name = options.smoke, device.name
    repeats = 1 if smoke else options.repeats

    def bandwidths_of() -> None:
        found.peak = bandwidth(device, 1 << 12 if smoke else BANDWIDTH_VALUES)
        found.empty = launch_seconds(device)

    def set_first() -> None:
        found.first = first_call(name)

    def set_optimum() -> None:
        if not smoke:
            found.optimum = optimum_of_mq2008(name)

    def set_kernel() -> None:
        found.kernel = kernel_fit(name, smoke)

    def set_large() -> None:
        found.large = large_product(device, smoke)

    parts: list[tuple[str, Callable[[], object]]] = [
        ("correctness", lambda: found.checks.extend(checked_fits(name, smoke))),
        ("the memory's speed", bandwidths_of),
        ("a first call", set_first),
        ("a known optimum", set_optimum),
        ("additive models", lambda: found.additive.extend(additive_fits(name, smoke, repeats))),
        ("the choice of auto", lambda: found.choices.extend(choices(device, found.costs, smoke))),
    ]
    for case in cases(smoke):
        parts.append((case.name, lambda case=case: found.fits.extend(measured(case, name, repeats))))
    # short parts come before the two largest data sets
    parts[-2:-2] = [
        ("lists of all lengths", lambda: found.by_length.extend(by_list_length(name, smoke))),
        ("exact kernel fit", set_kernel),
        ("a large kernel matrix", set_large),
    ]
    for title, action in parts:
        if options.only is not None and options.only not in title:
            continue
        try:
            if time.perf_counter() - started > options.seconds:
                raise TimeoutError("no time was left")
            action()
        except Exception as error:
            found.left_out.append(f"{title}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            print(f"FAILED: {found.left_out[-1]}", file=sys.stderr, flush=True)
        print(f"{time.perf_counter() - started:.0f} s: {title}", file=sys.stderr, flush=True)
        yield


def report(options, device: Device, found: Results) -> str:
    """Write the page with the measurements so far, and its plot."""
    on_host = isinstance(device, HostDevice)
    parts = [NOT_MEASURED] if on_host else [f"GPU: {gpu_name()}.{TINY_DATA if options.smoke else ''}"]
    if found.left_out:
        parts.append(f"Not measured: {'; '.join(found.left_out)}.")
    if found.fits and not any(one.case.real for one in found.fits):
        parts.append("The real data of MQ2008 and MQ2007 were not there: data of their shapes were made.")
    if found.fits and options.output is not None:
        path = options.output.with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        plot(found.fits, path)
        parts.append(f"![distance from the optimum against seconds]({path.name})")
    if not options.smoke:
        parts.append(goals(found.fits, found.choices, found.peak, found.first, found.optimum))
    if found.fits:
        parts += [fits(found.fits), objectives(found.fits), beside_the_paper(found.fits)]
        parts += [bandwidths(found.fits, found.peak), profiles(found.fits, found.peak, found.empty)]
        parts.append(constants(found.fits, found.choices, found.costs))
    if found.by_length:
        parts.append(lengths(found.by_length, options.smoke))
    if found.additive:
        parts.append(additive(found.additive, found.peak))
    if found.kernel is not None:
        parts.append(kernels(found.kernel, found.large, found.peak))
    if found.choices:
        parts.append(cost_model(found.choices, found.costs))
    if found.checks:
        parts.append(correctness(found.checks))
    return page("RankSVM on a GPU", "gpu", options, parts, "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc")


def opened(host: bool, smoke: bool) -> Device:
    """The first GPU; the host instead if requested, or for a smoke test without a GPU."""
    names.OPENERS["host"] = lambda number: HostDevice(name=f"host:{number}")
    try:
        return open_device("host:0" if host else "cuda:0")
    except RankSVMError as error:
        if smoke:
            return open_device("host:0")
        sys.exit(f"{error} (--host runs tiny data on the host, which measures nothing.)")


def main(argv=None):
    """Run from the command line."""
    host = {"action": "store_true", "help": "the host in the place of a GPU, on tiny data"}
    seconds = {"type": float, "default": 420.0, "help": "parts begun later are left out"}
    checks_only = {"action": "store_true", "help": "correctness alone, on tiny data: for compute-sanitizer"}
    only = {"metavar": "TEXT", "help": "parts alone whose name contains TEXT, such as WEB30K; with --checks, fits"}
    repeats = {"type": int, "default": 3, "help": "rounds of everything timed"}
    own = {"--host": host, "--checks": checks_only, "--only": only, "--seconds": seconds, "--repeats": repeats}
    options = arguments(__doc__, argv, *own.items())
    options.smoke = options.host or options.smoke
    device = opened(options.host, options.smoke)
    if options.checks:
        calibrate_device(device.name)  # run this, too, because it launches kernels that no fit launches
        found = list(checked_fits(device.name, smoke=True, only=options.only or ""))
        sys.exit(0 if all(check.passed for check in found) else 1)
    found = Results(calibrate_device(device.name))
    for _ in measure_all(options, device, found):
        if options.output is not None:
            publish(report(options, device, found), options)
    if options.output is None:
        print(report(options, device, found))
    wrong = [check.name for check in found.checks if not check.passed]
    if wrong or found.left_out:
        sys.exit(f"Not the results of the processor: {wrong}. Not measured: {found.left_out}.")


if __name__ == "__main__":
    main()
