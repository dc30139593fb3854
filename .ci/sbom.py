"""Put a software bill of materials into wheels, ``.dist-info/sboms/ranksvm.cdx.json`` (PEP 770, CycloneDX 1.6).

python .ci/sbom.py wheelhouse/*.whl

The bill lists the packages that a wheel requires, and Cython, whose functions are compiled into it. The bill depends
only on the wheel.
"""

import base64
import csv
import hashlib
import io
import json
import re
import sys
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

PLACE = "sboms/ranksvm.cdx.json"
_CYTHON = re.compile(rb"_cython_(\d+_\d+(?:_\w+?)?)(?=[.\0])")


def purl(name: str, version: str = "") -> str:
    """The package URL of a project on PyPI."""
    return f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}" + (f"@{version}" if version else "")


def bill(metadata: str, cython: str) -> dict[str, Any]:
    """The bill of a wheel, given the text of its file METADATA.

    Parameters
    ----------
    metadata : str
        Text of the file METADATA.
    cython : str
        Version of Cython with which the modules were compiled.
    """
    found = Parser().parsestr(metadata)
    own = purl(found["Name"], found["Version"])
    required = [re.match(r"[\w.-]+", each)[0] for each in found.get_all("Requires-Dist", []) if "extra ==" not in each]
    compiled = {"type": "library", "name": "Cython", "version": cython, "purl": purl("Cython", cython)}
    license = {"license": {"id": "Apache-2.0"}}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": found["Name"],
                "version": found["Version"],
                "purl": own,
                "licenses": [{"license": {"id": "BSD-3-Clause"}}],
            }
        },
        "components": [
            {**compiled, "bom-ref": compiled["purl"], "scope": "required", "licenses": [license]},
            *(
                {"type": "library", "bom-ref": purl(name), "name": name, "purl": purl(name), "scope": "required"}
                for name in required
            ),
        ],
        "dependencies": [{"ref": own, "dependsOn": [compiled["purl"], *map(purl, required)]}],
    }


def cython_version(texts: dict[str, bytes]) -> str:
    """The version of Cython, which the compiled modules of a wheel contain in symbol names."""
    found = {match for name, content in texts.items() if "_compiled/" in name for match in _CYTHON.findall(content)}
    if len(found) != 1:
        raise SystemExit(f"the modules name {len(found)} versions of Cython: {sorted(found)}")
    return found.pop().decode().replace("_", ".")


def put(path: Path) -> None:
    """Rewrite a wheel: add the bill, and add its checksum to RECORD."""
    with zipfile.ZipFile(path) as wheel:
        entries = [(each, wheel.read(each)) for each in wheel.infolist()]
    texts = {each.filename: content for each, content in entries}
    (record,) = (name for name in texts if name.endswith(".dist-info/RECORD"))
    folder = record.removesuffix("RECORD")
    text = json.dumps(bill(texts[f"{folder}METADATA"].decode(), cython_version(texts)), indent=1).encode()
    place = folder + PLACE
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
    rows = [row for row in csv.reader(io.StringIO(texts[record].decode())) if row and row[0] != place]
    rows.insert(-1, [place, f"sha256={digest}", str(len(text))])
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    model = next(each for each, _ in entries if each.filename == record)
    own = zipfile.ZipInfo(place, model.date_time)
    own.external_attr, own.compress_type = model.external_attr, zipfile.ZIP_DEFLATED
    written = [(each, content) for each, content in entries if each.filename not in (record, place)]
    part = path.with_name(path.name + ".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as wheel:
        for each, content in [*written, (own, text), (model, out.getvalue().encode())]:
            wheel.writestr(each, content)
    part.replace(path)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        put(Path(argument))
