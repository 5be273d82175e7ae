"""The tutorial: its commands run in order and print what it shows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import blocks, mask_numbers, run, sessions
from tests.serve.process import service

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")
SERVING = (DOCS / "serving.md").read_text(encoding="utf-8")
SESSIONS = dict(sessions(PAGE))
PORT = "8000"


def find(start):
    """Return the command that starts with these words, and the output shown for it."""
    [found] = [item for item in SESSIONS.items() if item[0].startswith(start)]
    return found


def execute(command, folder):
    """Run a command of the tutorial; return what it prints."""
    if command.startswith("fathomer "):
        done = run(command, folder)
    else:
        program, *arguments = shlex.split(command)
        parts = [sys.executable if program == "python" else program, *arguments]
        done = subprocess.run(parts, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout or done.stderr  # `predict --out` reports on standard error


def masked_words(text):
    """Return the words of a text with all numbers masked; columns may differ in width."""
    return mask_numbers(text).split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tutorial")


@pytest.fixture(scope="module")
def printed(folder):
    """The outputs of all commands, run in order, except the service and its client."""
    [code] = blocks(PAGE, "python")
    (folder / "write_messages.py").write_text(code, encoding="utf-8")
    return {
        command: execute(command, folder)
        for command in SESSIONS
        if not command.startswith(("fathomer serve", "curl"))
    }


@pytest.mark.parametrize("start", ["head -n 3 messages.csv", "fathomer check"])
def test_the_file_is_what_the_tutorial_shows(start, printed):
    command, shown = find(start)
    assert printed[command] == shown


def test_the_training_command_is_the_suggested_one(printed):
    assert printed[find("fathomer check")[0]].splitlines()[-1] == find("fathomer train")[0]


@pytest.mark.parametrize(
    "start", ["fathomer train", "fathomer explain", "fathomer predict", "head -n 3 answers.csv"]
)
def test_a_command_prints_what_the_tutorial_shows_except_for_numbers(start, printed):
    command, shown = find(start)
    assert masked_words(printed[command]) == masked_words(shown)


def test_the_evaluation_has_the_tables_and_finds_the_wrong_labels(printed):
    command, shown = find("fathomer evaluate")
    tables, _, mistakes = printed[command].partition("worst mistakes")
    shown_tables, _, shown_mistakes = shown.partition("worst mistakes")
    assert masked_words(tables) == masked_words(shown_tables)
    texts = re.findall(r"%  (.*)", shown_mistakes)
    assert len(texts) == 4
    assert all(text in mistakes for text in texts)


def test_the_accuracy_is_what_the_tutorial_says(printed):
    stated = float(re.search(r"accuracy on it is\s(\d+) %", PAGE)[1])
    accuracy = re.search(r"^test +200 +([\d.]+)", printed[find("fathomer train")[0]], re.M)[1]
    assert 100 * float(accuracy) == pytest.approx(stated, abs=1)


def test_the_service_answers_as_the_tutorial_shows(printed, folder):
    (command, announced), (request, shown) = find("fathomer serve"), find("curl")
    with service(folder / command.split()[-1]) as running:
        assert announced == f"serving model at http://127.0.0.1:{PORT}\n"
        sent = request.replace(f":{PORT}", f":{running.port}")
        assert masked_words(execute(sent, folder)) == masked_words(shown)
        [other] = re.findall(r"^curl .*", SERVING, re.MULTILINE)
        assert '"depth":' in execute(other.replace(f":{PORT}", f":{running.port}"), folder)
        status, headers, _ = running.ask("GET", "/")
        assert (status, headers["content-type"].partition(";")[0]) == (200, "text/html")
