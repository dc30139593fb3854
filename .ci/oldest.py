"""Print pip constraints for the oldest releases that pyproject.toml admits: `name>=1.2` becomes `name==1.2`.

python .ci/oldest.py > constraints.txt
"""

import re
import tomllib
from pathlib import Path

BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[.*\])?>=(?P<version>[0-9.]+)(?P<marker>;.*)?$")
# The groups that `make test-oldest` installs.
GROUPS = ("build", "test")


def constraints(groups: tuple[str, ...] = GROUPS) -> list[str]:
    """A line for each requirement with a lower bound: of the package, its extras and the given groups."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    requirements = [*project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        requirements += extra
    for group in groups:
        requirements += project["dependency-groups"][group]
    found = {}
    for requirement in requirements:
        if match := BOUND.match(requirement):
            line = f"{match['name']}=={match['version']}{match['marker'] or ''}"
            if found.setdefault(match["name"], line) != line:
                raise SystemExit(f"pyproject.toml has two lower bounds of {match['name']}: they have to agree.")
    return sorted(found.values())


if __name__ == "__main__":
    print("\n".join(constraints()))
