"""Every command of the how-to pages runs, and prints what the page shows."""

import json
import re
from pathlib import Path

import pytest

from .documents import run, sessions

HOWTO = Path(__file__).parents[1] / "docs" / "howto"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in HOWTO.glob("*.md")}
CONSOLE_PAGES = sorted(PAGES.keys() - {"multi-label", "probabilities", "scikit-learn"})
"""The others have tests of their own."""


@pytest.fixture
def workplace(demo, tmp_path):
    """Set up what the pages take for granted: the demo's model, and the files that they show."""
    (tmp_path / "model").symlink_to(demo.folder)
    return tmp_path


def write_files(page, folder):
    """Write the files of a page: a name in backquotes, a colon, and a block."""
    for name, content in re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)^```", page, re.M | re.S):
        (folder / name).write_text(content, encoding="utf-8")


@pytest.mark.parametrize("name", CONSOLE_PAGES)
def test_the_commands_of_a_page_run(name, workplace):
    write_files(PAGES[name], workplace)
    assert sessions(PAGES[name])
    for command, _ in sessions(PAGES[name]):
        done = run(command, workplace)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_check_prints_exactly_what_its_page_shows(tmp_path):
    write_files(PAGES["check"], tmp_path)
    [(command, shown)] = sessions(PAGES["check"])
    assert run(command, tmp_path).stdout == shown


def test_evaluate_prints_the_tables_that_its_page_shows(workplace):
    (command, shown), (with_json, _) = sessions(PAGES["evaluate"])
    headers = [line for line in shown.splitlines() if not re.search(r"\d", line)]
    assert len(headers) > 5
    assert set(headers) <= set(run(command, workplace).stdout.splitlines())
    assert (workplace / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (workplace / "confusion.png").stat().st_size > 5000
    keys = set(json.loads(run(with_json, workplace).stdout))
    documented = set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]*)", PAGES["evaluate"], re.M)))
    )
    assert keys <= documented
