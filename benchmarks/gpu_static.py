"""RankSVM on GPUs, estimated without one: the compiler's report on each kernel, and the reads of an evaluation by card.

python benchmarks/gpu_static.py -o benchmarks/results/gpu_static.md

Needs pip install "ranksvm[cuda]", and no GPU.
"""

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from _common import arguments, page, publish, table
from _gpu_cards import CAPABILITIES, CARDS, Evaluation, evaluation
from _gpu_cases import SHAPES, made
from ranksvm import make_ranking
from ranksvm._util.threads import available_cpus
from ranksvm.device import Variant
from ranksvm.device.cuda import PARTS, kernel_source, macros_of

# Goals: occupancy of the kernels of a fit, the cards to which the goals apply, and seconds of the largest fit.
OCCUPANCY, GOAL_CARDS, GOAL_SECONDS = 0.25, ("A100", "L40S", "H100", "H200"), 0.030
# Data sets whose rows may be read from memory only once (in long lists, visits of pairs take most of the time), and the
# data set and card of the largest fit.
SHORT_LISTS, LARGEST = ("MSLR-WEB10K", "MSLR-WEB30K"), ("MSLR-WEB30K", "H200")
SMOKE_ARCHS = ("sm_75", "sm_90")
FUSED = ("fused_loss", "fused_laplacian")

_KERNEL = re.compile(r"Compiling entry function '(\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")


class Compiled(NamedTuple):
    """The assembler's report on a kernel: registers per thread, bytes on the stack, and spilled bytes."""

    kernel: str
    variant: Variant
    arch: str
    registers: int
    stack: int
    spilled: int


# -- the compiler ------------------------------------------------------------------------------------------------------


def compiled(variant: Variant, part: int, arch: str) -> Iterator[Compiled]:
    """Compile the kernels of a part with NVRTC and its assembler."""
    from cuda.bindings import nvrtc

    macros = [f"-D{name}={value}" for name, value in macros_of(variant, part)]
    options = ["--std=c++17", f"--gpu-architecture={arch}", "--ptxas-options=-v", *macros]
    _, program = nvrtc.nvrtcCreateProgram(kernel_source().encode(), b"ranksvm", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(program)
    text = log.decode(errors="replace")
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        sys.exit(f"{arch}, {variant}, part {part}: {text}")
    for section in _KERNEL.split(text)[1:]:
        if re.fullmatch(r"\w+", section):
            kernel = section
            continue
        stack, stores, loads = map(int, _STACK.search(section).groups())
        registers = int(_USED.search(section)[1])
        yield Compiled(kernel, variant, arch, registers, stack, stores + loads)


def units(smoke: bool) -> list[tuple[Variant, int, str]]:
    """All variants, parts and compute capabilities; for a smoke test, dense fits on two compute capabilities."""
    found = []
    for listed in (False,) if smoke else (False, True):
        for sparse in (False,) if smoke else (False, True):
            for real in ("float", "double"):
                for part in (1, 2, 3) if smoke else (2, *PARTS):
                    # skip parts that kernels.hpp does not have for this variant
                    if (part == 3 and sparse) or (part > 3 and (sparse or listed)):
                        continue
                    found += [(Variant(listed, sparse, real), part, arch) for arch in CAPABILITIES]
    return [unit for unit in found if not smoke or unit[2] in SMOKE_ARCHS]


def all_compiled(smoke: bool) -> list[Compiled]:
    """Compile all units, in several threads: the compiler releases the global interpreter lock."""
    with ThreadPoolExecutor(available_cpus()) as pool:
        return [one for found in pool.map(lambda unit: list(compiled(*unit)), units(smoke)) for one in found]


# -- the page ----------------------------------------------------------------------------------------------------------


def kernels(found: list[Compiled]) -> str:
    """Registers and occupancy of each kernel, for the variant that needs most registers."""
    archs = list(dict.fromkeys(one.arch for one in found))
    rows = []
    for kernel in sorted({one.kernel for one in found}):
        own = [one for one in found if one.kernel == kernel]
        cells = []
        for arch in archs:
            most = max(one.registers for one in own if one.arch == arch)
            cells.append(f"{most}, {100 * CAPABILITIES[arch].occupancy(most):.0f} %")
        stack = max(one.stack for one in own)
        rows.append((f"`{kernel}`", *cells, f"{stack} B" if stack else ""))
    spilled = sorted({f"{one.kernel} ({one.variant}, {one.arch})" for one in found if one.spilled})
    said = "No kernel spills registers." if not spilled else f"**Spilled: {', '.join(spilled)}.**"
    return (
        "## Kernels\n\nRegisters of a thread, and the share of a multiprocessor's warps that run at a time if nothing "
        "but registers counts, in blocks of 256 threads: of the variant (labels or listed pairs, dense or CSR, float32 "
        f"or float64) that takes most. {said}\n\n{table(['kernel', *archs, 'stack'], rows)}"
    )


def passes(found: dict[tuple[str, str], Evaluation], registers: dict[str, int]) -> str:
    """The reads of an evaluation, by shape and card."""
    rows = []
    for (shape, name), one in found.items():
        card = next(card for card in CARDS if card.name == name)
        shares = (f"{100 * part / one.n_rows:.0f} %" for part in (one.kept, one.cached, one.twice))
        occupancy = f"{100 * CAPABILITIES[card.arch].occupancy(registers[card.arch], one.shared):.0f} %"
        times = (f"{1e3 * value:.3f}" for value in one.seconds(card))
        block = (f"{one.shared / 1024:.0f} KB", occupancy) if one.shared else ("", "")
        size = f"{1e-6 * one.n_bytes:,.1f}"
        rows.append((shape, name, *shares, *block, one.launches, size, *times, f"{1e3 * one.fit:.1f}"))
    header = ["shape", "card", "shared", "cache", "twice", "a block", "warps", "launches", "MB", "memory, ms"]
    return (
        "## An evaluation of a linear model\n\nSquared hinge, float32, data of the shapes in Table 1 of Jin & Lin "
        "(2014), X on the GPU. The product's own code chose the launches for the sizes of each card; nothing was run. "
        "X is used twice: for the scores, and for the gradient.\n\n"
        "- *shared*: rows that stay in shared memory between the two uses.\n"
        "- *cache*: other rows that are used the second time while they are in the L2 cache.\n"
        "- *twice*: rows that are read from memory twice.\n"
        "- *a block*, *warps*: shared memory of a block of `fused_loss`, and the share of a multiprocessor's warps "
        "that run at a time.\n"
        "- *MB*, *memory*: what is read of X, and its time at the bandwidth of the data sheet.\n"
        "- *pairs*: visits of pairs from both documents, eight instructions in float64 each, at the rate of the data "
        "sheet.\n"
        '- *fit*: the estimate of `device="auto"` at these rates, certified to 1e-4, without the copy of X and the '
        "order of the rows.\n\n"
        f"{table([*header, 'pairs, ms', 'fit, ms'], rows)}"
    )


def goals(compiled: list[Compiled], found: dict[tuple[str, str], Evaluation]) -> list[tuple[str, str, bool]]:
    """Each goal, the result, and whether it is met."""
    registers, of = fused_registers(compiled), {card.name: card for card in CARDS}
    occupancies = [
        CAPABILITIES[of[name].arch].occupancy(registers[of[name].arch], one.shared)
        for (_, name), one in found.items()
        if name in GOAL_CARDS and one.shared
    ]
    twice = sum(one.twice for (shape, name), one in found.items() if shape in SHORT_LISTS and name in GOAL_CARDS)
    spilled = sum(one.spilled for one in compiled)
    cards, fit = ", ".join(GOAL_CARDS), found[LARGEST].fit if LARGEST in found else 0.0
    return [
        ("No kernel spills registers", f"{spilled} bytes", spilled == 0),
        (
            f"{' and '.join(f'`{kernel}`' for kernel in FUSED)}: 25 % of the warps run at least ({cards})",
            f"{100 * min(occupancies):.0f} %",
            min(occupancies) >= OCCUPANCY,
        ),
        (f"{' and '.join(SHORT_LISTS)}: rows are read from memory once ({cards})", f"{twice:,} rows twice", twice == 0),
        (
            f"{LARGEST[0]} on {LARGEST[1]}: a fit takes {1e3 * GOAL_SECONDS:.0f} ms at most, at the data sheet's rates",
            f"{1e3 * fit:.1f} ms",
            fit <= GOAL_SECONDS,
        ),
    ]


def fused_registers(found: list[Compiled]) -> dict[str, int]:
    """Registers of the kernels for short queries, by compute capability."""
    own = [one for one in found if one.kernel in FUSED]
    return {arch: max(one.registers for one in own if one.arch == arch) for arch in {one.arch for one in own}}


def measure(smoke: bool) -> tuple[list[Compiled], dict[tuple[str, str], Evaluation]]:
    """Compute everything that the page shows."""
    found = all_compiled(smoke)
    archs = {one.arch for one in found}
    shapes = ("tiny",) if smoke else tuple(SHAPES)
    evaluations = {}
    for shape in shapes:
        data = make_ranking(40, 30, 6, random_state=0) if smoke else made(shape)
        for card in CARDS:
            if card.arch in archs:
                evaluations[shape, card.name] = evaluation(card, data)
    return found, evaluations


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv)
    found, evaluations = measure(options.smoke)
    rows = [(goal, value, "met" if met else "**MISSED**") for goal, value, met in goals(found, evaluations)]
    parts = [
        "**Nothing here was measured on a GPU.** The compiler tells the registers; times are the best that data sheets "
        "allow.",
        f"## Goals\n\n{table(['goal', 'here', ''], rows)}",
        kernels(found),
        passes(evaluations, fused_registers(found)),
    ]
    publish(page("GPUs: what the compiler and data sheets say", "gpu_static", options, parts, "cuda-bindings"), options)


if __name__ == "__main__":
    main()
