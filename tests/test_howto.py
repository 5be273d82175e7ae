"""Every command of the how-to pages runs, and prints what the page shows."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import blocks, run, sessions
from tests.tiny import tiny_examples, write_csv

HOWTO = Path(__file__).parents[1] / "docs" / "howto"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in HOWTO.glob("*.md")}
CONSOLE_PAGES = sorted(PAGES.keys() - {"multi-label", "probabilities", "scikit-learn", "tune"})
"""The others have tests of their own."""
PACKAGES = {"export": "onnxruntime", "hub": "transformers", "tune": "optuna"}
"""What a page needs from an extra."""


@pytest.fixture
def workplace(demo, tmp_path):
    """Set up what the pages take for granted: the demo's model, and the files that they show."""
    (tmp_path / "model").symlink_to(demo.folder)
    return tmp_path


def write_files(page, folder):
    """Write the files of a page: a name in backquotes, a colon, and a block."""
    for name, content in re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)^```", page, re.M | re.S):
        (folder / name).write_text(content, encoding="utf-8")


def require(name):
    """Skip what needs an extra that is not installed."""
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name], reason=f"{PACKAGES[name]} is not installed")


def without_figures(text):
    return re.sub(r"\d[\d.e-]*", "0", text)


@pytest.mark.parametrize("name", CONSOLE_PAGES)
def test_the_commands_of_a_page_run(name, workplace):
    require(name)
    write_files(PAGES[name], workplace)
    assert sessions(PAGES[name])
    for command, _ in sessions(PAGES[name]):
        if command == "fathomer train demo --out model":  # that one has run already
            continue
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


def test_export_prints_what_its_page_shows(workplace):
    require("export")
    _, (command, shown) = sessions(PAGES["export"])
    assert without_figures(run(command, workplace).stdout) == without_figures(shown)
    assert_python_prints_what_is_shown("export", workplace)


def test_the_pipeline_and_the_card_are_as_their_page_shows(workplace):
    require("hub")
    assert_python_prints_what_is_shown("hub", workplace)
    [shown] = blocks(PAGES["hub"], "markdown")
    card = (workplace / "model" / "README.md").read_text(encoding="utf-8")
    text = [line for line in shown.splitlines() if line and not re.search(r"\d", line)]
    assert len(text) == 5
    assert set(text) <= set(card.splitlines())


def assert_python_prints_what_is_shown(name, folder):
    [code], [shown] = blocks(PAGES[name], "python"), blocks(PAGES[name], "text")
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert without_figures(done.stdout) == without_figures(shown)


def test_tune_prints_the_table_that_its_page_shows(tmp_path):
    """Search among few texts, and not for minutes."""
    require("tune")
    write_csv(tmp_path / "few.csv", tiny_examples())
    (search, shown), (train, _) = sessions(PAGES["tune"])
    quick = re.sub(r"trec (.*)--minutes \d+", r"few.csv \1--minutes 0.2", search)
    done = run(quick, tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert printed[0].split() == shown.splitlines()[0].split()
    assert without_figures(printed[-1]) == without_figures(shown.splitlines()[-1])
    done = run(train.replace("trec", "few.csv"), tmp_path)
    assert done.returncode == 0, done.stderr
