"""Write docs/terminal.md: the main commands in a terminal of 80 columns. ``python -m tests.terminal``."""

import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fathomer.answer_file import csv_line
from fathomer.data.demo import demo_corpus

PAGE = Path(__file__).parents[1] / "docs" / "terminal.md"
COLUMNS = 80
COMMANDS = (
    "fathomer check reviews.csv --test test.csv",
    "fathomer train reviews.csv --out model --test test.csv --epochs 5",
    "fathomer evaluate model test.csv",
    'fathomer explain model "Nobody can say that the hotel wasn\'t clean."',
)
_INTRODUCTION = f"""# In a terminal of {COLUMNS} columns

The main commands on 400 texts of the demo corpus, saved as a csv file with semicolons, as
`python -m tests.terminal` captured them with tmux.
"""


def write_reviews(folder: Path) -> None:
    """Write a training file with a few problems, and a test file."""
    train, test = demo_corpus()
    for name, examples, count in (("reviews.csv", train, 400), ("test.csv", test, 100)):
        rows = [csv_line(example, ";") for example in examples.items[:count]]
        if name == "reviews.csv":
            rows += [rows[0], "What is this?;NaN\n", ";positive\n"]
        (folder / name).write_text("text;label\n" + "".join(rows), encoding="utf-8")


def capture(command: str, folder: Path) -> str:
    """Run a command in tmux and return what its screen shows at the end."""
    tmux = ["tmux", "-L", f"fathomer-{time.monotonic_ns()}"]  # a server of its own
    done = folder / "done"
    done.unlink(missing_ok=True)
    shell = f"clear; {shlex.quote(sys.executable)} -m {command}; touch done; sleep 600"
    size = ("-x", str(COLUMNS), "-y", "120")
    subprocess.run([*tmux, "new-session", "-d", *size, "-c", str(folder), shell], check=True)
    try:
        while not done.exists():
            time.sleep(0.2)
        screen = [*tmux, "capture-pane", "-p"]
        shown = subprocess.run(screen, check=True, capture_output=True, text=True).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
    return "\n".join(line.rstrip() for line in shown.rstrip().splitlines())


def main() -> None:
    """Capture all commands and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        write_reviews(Path(folder))
        blocks = [
            f"```text\n$ {command}\n{capture(command, Path(folder))}\n```\n" for command in COMMANDS
        ]
    PAGE.write_text("\n".join([_INTRODUCTION, *blocks]), encoding="utf-8")


if __name__ == "__main__":
    main()
