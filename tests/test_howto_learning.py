"""Every how-to page does what it says: its commands run, and its code prints what it shows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs" / "howto").glob("*.md"))
BLOCK = re.compile(r"^```(console|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FATHOMER = f"{shlex.quote(sys.executable)} -m fathomer"
WRITTEN_HERE = ("multi-label.md", "probabilities.md", "scikit-learn.md")


def run(command, folder, **options):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def without_numbers(text):
    return re.sub(r"\d+(\.\d+)?", "0", text).split()


@pytest.mark.parametrize("name", WRITTEN_HERE)
def test_a_page_does_what_it_says(name, tmp_path):
    [page] = [path for path in PAGES if path.name == name]
    code, printed = "", ""
    for kind, content in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":  # a later block goes on from the earlier ones
            before, code = printed, f"{code}\n{content}"
            printed = run([sys.executable, "-c", code], tmp_path)
            new = printed.removeprefix(before)
        elif kind == "text":
            assert new == content
        else:
            shown = ""
            for line in content.splitlines(keepends=True):
                if line.startswith("$ "):
                    assert shown == "" or without_numbers(output) == without_numbers(shown)
                    command = line.removeprefix("$ ").replace("fathomer ", f"{FATHOMER} ", 1)
                    output, shown = run(command, tmp_path, shell=True), ""
                else:
                    shown += line
            assert shown == "" or without_numbers(output) == without_numbers(shown)
