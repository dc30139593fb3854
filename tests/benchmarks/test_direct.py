"""`benchmarks/direct.py` for a device, by the host in its place."""

import pytest

import direct
from ranksvm.objectives.device_inversion import DeviceInversion


@pytest.mark.usefixtures("host_devices")
def test_the_page_has_the_largest_factor_of_direct_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(DeviceInversion, "cost", lambda *_: 0.0)
    options = ["--smoke", "--device", "host", "--only", "kernels", "-o", str(tmp_path / "page.md")]
    direct.main(options)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "On a GPU" in page
    assert "## Fewer rows than features" not in page
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith(("| squared", "| hinge"))]
    assert [cells[2].strip() for cells in rows] == ["auto", "newton"] * 2
    for cells in rows:
        n_rows, factor, inverse = (cell.strip() for cell in cells[-3:])
        if cells[2].strip() == "auto":
            assert 0 < int(n_rows) < 200
            assert 0.0 <= float(factor) <= float(inverse)
        else:
            assert (n_rows, factor, inverse) == ("", "", "")
