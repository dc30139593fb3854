"""Look for known vulnerabilities in the oldest releases of dependencies that pyproject.toml admits for users.

python .ci/audit.py    needs pip-audit and a network; if the advisories cannot be reached, it says so and exits with 0
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from oldest import constraints

# Advisories that do not affect this package, each with the reason.
IGNORED = {"CVE-2026-25087": "a fault of Arrow in C++ that pyarrow does not expose, by the advisory"}


def audited(requirements: list[str]) -> list[dict] | None:
    """What pip-audit found for each requirement; None if the advisories cannot be reached."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "requirements.txt")
        path.write_text("\n".join(requirements), encoding="utf-8")
        ignored = [word for advisory in IGNORED for word in ("--ignore-vuln", advisory)]
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(path), "--no-deps", "--disable-pip"]
        done = subprocess.run(
            [*command, *ignored, "--format", "json", "--progress-spinner", "off"], capture_output=True, text=True
        )
    if not done.stdout:
        if "ConnectionError" in done.stderr or "Timeout" in done.stderr:
            return None
        raise SystemExit(f"pip-audit failed:\n{done.stderr}")
    # with a mirror that has no advisories, pip-audit skips all packages
    return [one for one in json.loads(done.stdout)["dependencies"] if "skip_reason" not in one] or None


def main() -> None:
    """Print the vulnerabilities; exit with 1 if there are any."""
    requirements = constraints(groups=())
    found = audited(requirements)
    if found is None:
        print("The oldest dependencies were not audited: the service with the advisories cannot be reached from here.")
        return
    vulnerable = [(one, fault) for one in found for fault in one["vulns"]]
    for one, fault in vulnerable:
        fixed = ", ".join(fault["fix_versions"]) or "no release"
        print(f"{one['name']} {one['version']}: {fault['id']}, fixed in {fixed}")
    print(f"{len(found)} of {len(requirements)} oldest dependencies were audited. Vulnerabilities: {len(vulnerable)}.")
    if vulnerable:
        raise SystemExit("Raise the lower bounds in pyproject.toml, or give a reason in .ci/audit.py.")


if __name__ == "__main__":
    main()
