"""What the compiler says of the kernels, and what an evaluation launches on the cards of data sheets."""

import pathlib

import numpy as np
import pytest

import gpu_static
from _gpu_cards import CAPABILITIES, CARDS, evaluation
from ranksvm import RankingData

FOLDER = pathlib.Path(gpu_static.__file__).parent


def test_the_page_meets_its_goals(tmp_path):
    pytest.importorskip("cuda.bindings")
    gpu_static.main(["--smoke", "-o", str(tmp_path / "page.md")])
    for page in (tmp_path / "page.md", FOLDER / "results" / "gpu_static.md"):
        text = page.read_text(encoding="utf-8")
        assert "No kernel spills registers | 0 bytes | met |" in text
        assert "MISSED" not in text
        assert "| `fused_loss` |" in text


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "expected"),
    [
        ("sm_90", 32, 0, 1.0),
        ("sm_90", 64, 0, 0.5),
        ("sm_90", 72, 0, 0.375),  # 3 blocks of 8 warps, of 64
        ("sm_90", 32, 113 << 10, 0.25),  # two blocks with 1 KB reserved each fill 228 KB
        ("sm_90", 32, (113 << 10) + 1, 0.125),
        ("sm_75", 32, 32 << 10, 0.5),  # nothing is reserved
        ("sm_89", 40, 0, 1.0),
    ],
)
def test_occupancy(arch, registers, shared, expected):
    assert CAPABILITIES[arch].occupancy(registers, shared) == expected


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_every_row_is_read(card):
    """Lists that fit into shared memory, lists that fit in part, and one that takes all blocks."""
    qid = np.repeat(np.arange(1401), [30] * 400 + [300] * 500 + [600] * 500 + [3000])
    data = RankingData(np.zeros((len(qid), 46), dtype=np.float32), np.arange(len(qid)) % 3.0, qid)
    found = evaluation(card, data)
    assert found.n_rows == data.n_rows
    assert found.kept > 400 * 30
    assert found.n_bytes == (found.n_rows + found.twice) * 46 * 4
    assert found.shared <= CAPABILITIES[card.arch].shared // 2
    assert min(found.seconds(card)) > 0.0
