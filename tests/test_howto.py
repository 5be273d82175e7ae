"""The how-to pages: their commands and code run, and print what the pages show."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.documents import (
    blocks,
    code_blocks,
    mask_numbers,
    run,
    run_python,
    sessions,
    split_session,
)
from tests.forked import run_forked
from tests.tiny import tiny_examples, write_csv

HOWTO = Path(__file__).parents[1] / "docs" / "howto"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in HOWTO.glob("*.md")}
STANDALONE = ("multi-label", "probabilities", "scikit-learn")
"""Pages that make all their files and models themselves, from the first block to the last."""
CONSOLE_PAGES = sorted(PAGES.keys() - {*STANDALONE, "processes", "ray", "tune"})
PACKAGES = {
    "export": "onnxruntime",
    "hub": "transformers",
    "tune": "optuna",
    "vectors": "wordllama",
}
"""Optional packages that a page needs."""


@pytest.fixture
def folder(demo, tmp_path):
    """A working folder with the demo's model, as most pages assume."""
    (tmp_path / "model").symlink_to(demo.folder)
    return tmp_path


@pytest.fixture(scope="module")
def ran(demo, tmp_path_factory):
    """A function that runs the commands of a page once; it returns their folder and their results."""

    @cache
    def ran(name):
        skip_without_package(name)
        folder = tmp_path_factory.mktemp(name)
        (folder / "model").symlink_to(demo.folder)
        write_files(PAGES[name], folder)
        found = [command for command, _ in sessions(PAGES[name])]
        assert found
        # The demo's model is already trained by the fixture.
        commands = [each for each in found if each != "fathomer train demo --out model"]
        return folder, {command: run(command, folder) for command in commands}

    return ran


def write_files(page, folder):
    """Write the files that a page shows: a name in backquotes, a colon, and a code block."""
    for name, content in re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)^```", page, re.M | re.S):
        (folder / name).write_text(content, encoding="utf-8")


def skip_without_package(name):
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name], reason=f"{PACKAGES[name]} is not installed")


def assert_python_prints_what_is_shown(name, folder):
    [code], [shown] = blocks(PAGES[name], "python"), blocks(PAGES[name], "text")
    assert mask_numbers(run_python(code, folder, {})) == mask_numbers(shown)


@pytest.mark.parametrize("name", CONSOLE_PAGES)
def test_the_commands_of_a_page_run(name, ran):
    for command, done in ran(name)[1].items():
        assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.parametrize("name", STANDALONE)
def test_a_standalone_page_prints_what_it_shows(name, tmp_path):
    names = {}
    for language, content in code_blocks(PAGES[name]):
        if language == "python":  # a later block continues the earlier ones
            printed = run_python(content, tmp_path, names)
        elif language == "text":
            assert printed == content
        elif language == "console":
            for command, shown in split_session(content):
                done = run(command, tmp_path)
                assert done.returncode == 0, f"{command}\n{done.stderr}"
                same = mask_numbers(done.stdout).split() == mask_numbers(shown).split()
                assert shown == "" or same, command


def test_check_prints_exactly_what_its_page_shows(tmp_path):
    write_files(PAGES["check"], tmp_path)
    [(command, shown)] = sessions(PAGES["check"])
    assert run(command, tmp_path).stdout == shown


def test_evaluate_prints_the_tables_that_its_page_shows(ran):
    (command, shown), (with_json, _) = sessions(PAGES["evaluate"])
    folder, results = ran("evaluate")
    headers = [line for line in shown.splitlines() if not re.search(r"\d", line)]
    assert len(headers) > 5
    assert set(headers) <= set(results[command].stdout.splitlines())
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (folder / "confusion.png").stat().st_size > 5000
    keys = set(json.loads(results[with_json].stdout))
    documented = set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]*)", PAGES["evaluate"], re.M)))
    )
    assert keys <= documented


def test_export_prints_what_its_page_shows(ran):
    folder, results = ran("export")
    _, (command, shown) = sessions(PAGES["export"])
    assert mask_numbers(results[command].stdout) == mask_numbers(shown)
    assert_python_prints_what_is_shown("export", folder)


def test_explain_prints_what_its_page_shows(ran):
    [(command, shown)] = sessions(PAGES["explain"])
    folder, results = ran("explain")
    assert mask_numbers(results[command].stdout).split() == mask_numbers(shown).split()
    assert_python_prints_what_is_shown("explain", folder)


def test_the_pipeline_and_the_model_card_match_their_page(folder):
    skip_without_package("hub")
    [code], [shown] = blocks(PAGES["hub"], "python"), blocks(PAGES["hub"], "text")
    # Another process: here, another test may already have registered the model classes.
    done = run_forked(["-c", code], folder)
    assert done.returncode == 0, done.stderr
    assert mask_numbers(done.stdout) == mask_numbers(shown)
    [shown] = blocks(PAGES["hub"], "markdown")
    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    text = [line for line in shown.splitlines() if line and not re.search(r"\d", line)]
    assert len(text) == 5
    assert set(text) <= set(card.splitlines())


def test_predict_writes_the_file_that_its_page_shows(folder):
    given, answers, *_ = blocks(PAGES["predict"], "text")
    (folder / "reviews.csv").write_text(given, encoding="utf-8")
    command, shown = sessions(PAGES["predict"])[0]
    done = run(command, folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", shown)
    written = (folder / "answers.csv").read_text(encoding="utf-8")
    assert first_answers(written) == first_answers(answers)
    done = run(f"{command} --resume", folder)
    message = "fathomer: answers.csv: is complete; there is nothing to resume\n"
    assert (done.returncode, done.stderr) == (2, message)


def first_answers(content):
    """Return the answers to the first two texts, without probabilities and depths."""
    return re.sub(r"(positive|negative),[\d.,]+", r"\1", content.partition("\n3,")[0])


def test_predict_reports_a_bad_row_as_its_page_shows(folder):
    rows = "id,text,date\n" + "1,good,x\n" * 1200 + "1,a, b,x\n"
    (folder / "reviews.csv").write_text(rows, encoding="utf-8")
    message = run("fathomer predict model reviews.csv --out answers.csv", folder).stderr
    assert message
    assert message in PAGES["predict"]


@pytest.mark.filterwarnings("ignore:.* is experimental")
def test_tune_prints_the_table_that_its_page_shows(tmp_path, clock):
    """The search is shortened: few texts, and a clock that runs fast."""
    skip_without_package("tune")
    write_csv(tmp_path / "few.csv", tiny_examples())
    (search, shown), (train, _) = sessions(PAGES["tune"])
    quick = re.sub(r"trec (.*)--minutes \d+", r"few.csv \1--minutes 0.5", search)
    done = run(quick, tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert printed[0].split() == shown.splitlines()[0].split()
    assert mask_numbers(printed[-1]) == mask_numbers(shown.splitlines()[-1])
    done = run(train.replace("trec", "few.csv"), tmp_path)
    assert done.returncode == 0, done.stderr
