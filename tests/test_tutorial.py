"""The tutorial, done by the letter: its commands run one after another and print what it shows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import FATHOMER, blocks, sessions
from tests.serve.process import service

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")
SERVING = (DOCS / "serving.md").read_text(encoding="utf-8")
SESSIONS = dict(sessions(PAGE))
PORT = "8000"


def find(start):
    """Find the command that begins so, and what is shown below it."""
    [found] = [item for item in SESSIONS.items() if item[0].startswith(start)]
    return found


def execute(command, folder):
    parts = shlex.split(command)
    own = {"fathomer": FATHOMER, "python": [sys.executable]}
    parts = [*own.get(parts[0], parts[:1]), *parts[1:]]
    done = subprocess.run(parts, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout or done.stderr  # a command without an answer tells what it has done


def without_numbers(text):
    return re.sub(r"[▁-█]?\d+(\.\d+)?", "0", text).split()


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    return tmp_path_factory.mktemp("tutorial")


@pytest.fixture(scope="module")
def printed(workplace):
    """Run all commands but the service and its client, in their order."""
    [code] = blocks(PAGE, "python")
    (workplace / "write_messages.py").write_text(code, encoding="utf-8")
    return {
        command: execute(command, workplace)
        for command in SESSIONS
        if not command.startswith(("fathomer serve", "curl"))
    }


@pytest.mark.parametrize("start", ["head -n 3 messages.csv", "fathomer check"])
def test_the_file_is_what_the_tutorial_shows(start, printed):
    command, shown = find(start)
    assert printed[command] == shown


def test_the_training_is_the_suggested_one_with_fewer_epochs(printed):
    suggested = printed[find("fathomer check")[0]].splitlines()[-1]
    assert suggested.startswith(find("fathomer train")[0] + " --set train.epochs=")


@pytest.mark.parametrize(
    "start", ["fathomer train", "fathomer explain", "fathomer predict", "head -n 3 answers.csv"]
)
def test_a_command_prints_what_the_tutorial_shows_but_for_figures(start, printed):
    command, shown = find(start)
    assert without_numbers(printed[command]) == without_numbers(shown)


def test_the_report_has_the_tables_and_names_the_wrong_labels(printed):
    command, shown = find("fathomer evaluate")
    tables, _, mistakes = printed[command].partition("worst mistakes")
    shown_tables, _, shown_mistakes = shown.partition("worst mistakes")
    assert without_numbers(tables) == without_numbers(shown_tables)
    texts = re.findall(r"%  (.*)", shown_mistakes)
    assert len(texts) == 4
    assert all(text in mistakes for text in texts)


def test_the_model_is_as_good_as_the_tutorial_says(printed):
    told = float(re.search(r"(\d+) % of them are answered\nright", PAGE)[1])
    accuracy = re.search(r"^test +200 +([\d.]+)", printed[find("fathomer train")[0]], re.M)[1]
    assert 100 * float(accuracy) == pytest.approx(told, abs=1)


def test_the_service_answers_as_the_tutorial_shows(printed, workplace):
    (command, announced), (question, shown) = find("fathomer serve"), find("curl")
    with service(workplace / command.split()[-1]) as running:
        assert announced == f"serving model at http://127.0.0.1:{PORT}\n"
        asked = question.replace(f":{PORT}", f":{running.port}")
        assert without_numbers(execute(asked, workplace)) == without_numbers(shown)
        [other] = re.findall(r"^curl .*", SERVING, re.MULTILINE)
        assert '"depth":' in execute(other.replace(f":{PORT}", f":{running.port}"), workplace)
        status, headers, _ = running.ask("GET", "/")
        assert (status, headers["content-type"].partition(";")[0]) == (200, "text/html")
