"""Write man pages of ranksvm and its commands from their --help texts, with click-man.

python .ci/man_pages.py build/man
"""

import re
import sys
from pathlib import Path

from click_man.core import write_man_pages

import ranksvm
from ranksvm.cli import main

# a list or examples whose lines are not wrapped: click marks them with a backspace, which click-man leaves in the text
LINES = re.compile(r"^\.PP\n\x08\n(.*?)(?=^\.(?:PP|SH))", re.MULTILINE | re.DOTALL)
# a line of the help that begins with a period, such as a file extension, which man would read as a macro
PLAIN_LINE = re.compile(r"^\.(?!(?:TH|SH|B|TP|PP|sp|br|nf|fi)\b)", re.MULTILINE)


def write(folder: Path) -> None:
    """Write ranksvm.1, ranksvm-train.1 and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in main.list_commands(None):
        main.get_command(None, name)  # import the command, because click imports commands only on request
    write_man_pages("ranksvm", main, version=ranksvm.__version__, target_dir=str(folder))
    for path in folder.glob("*.1"):
        text = PLAIN_LINE.sub(r"\\&.", path.read_text(encoding="utf-8"))
        path.write_text(LINES.sub(r".PP\n.nf\n\1.fi\n", text), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
