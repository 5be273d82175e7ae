"""The README: its commands and code blocks run, and print what it shows."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.documents import blocks, commands, run, run_python
from tests.tiny import tiny_examples, write_csv

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(demo, tmp_path_factory):
    """A working folder with the demo's model and the files that the README assumes."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "model").symlink_to(demo.folder)
    write_csv(folder / "reviews.csv", tiny_examples())
    write_csv(folder / "test.csv", tiny_examples(20))
    (folder / "new.csv").write_text("text\na fine film\n", encoding="utf-8")
    return folder


def test_the_demo_is_trained_as_the_readme_says(demo):
    trained = demo.metrics["command"].replace(str(demo.folder), "model").replace(" --json", "")
    assert trained in commands(README)


def test_the_commands_run(folder):
    for command in commands(README):
        if command.startswith(("python -m venv", "pip install")):
            assert (ROOT / "constraints.txt").exists()  # the test environment was installed with it
        elif not command.startswith("fathomer train demo"):  # already trained by the fixture
            done = run(command, folder)
            assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_explain_prints_what_the_readme_shows(folder):
    [command] = [c for c in commands(README) if c.startswith("fathomer explain model")]
    shown = blocks(README, "console")[0].partition(f"$ {command}\n")[2].split("\n")
    printed = run(command, folder).stdout.split("\n")
    assert printed[0].split()[0] == shown[0].split()[0] == "positive"
    assert printed[2].split() == shown[2].split()


def test_the_python_blocks_print_what_the_readme_shows(folder):
    printed = run_python("\n".join(blocks(README, "python")), folder, {})
    [shown] = blocks(README, "text")
    assert printed.splitlines()[0].split()[0] == shown.splitlines()[0].split()[0] == "positive"
    assert printed.splitlines()[1] == shown.splitlines()[1]


def test_the_accuracies_are_what_the_readme_says(demo):
    low, high = map(float, re.search(r"(\d+\.\d) to (\d+\.\d) %", README).groups())
    baseline = float(re.search(r"stays at (\d+\.\d) to", README)[1])
    assert low - 1 <= 100 * demo.metrics["test"]["accuracy"] <= high + 0.3
    assert 100 * demo.metrics["baseline"]["accuracy"] == pytest.approx(baseline, abs=0.5)


def test_training_prints_the_rows_that_the_readme_shows(demo):
    shown = blocks(README, "console")[0]
    names = {"held out": "held_out", "test": "test", "test, TF-IDF": "baseline"}
    for row, key in names.items():
        [(examples, accuracy)] = re.findall(rf"^{row} {{2,}}(\d+) +(\d\.\d+)", shown, re.MULTILINE)
        assert demo.metrics[key]["examples"] == int(examples)
        assert demo.metrics[key]["accuracy"] == pytest.approx(float(accuracy), abs=0.02)


def test_links_point_to_files_that_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_make_demo_runs_the_commands_of_the_readme():
    made = subprocess.run(
        ["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for command in ("train demo", "evaluate", "explain", "--html"):
        assert command in made
