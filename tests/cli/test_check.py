"""The command ``fathomer check``, as a user calls it."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from fathomer.cli.settings import VECTOR_GAINS
from tests.data import small
from tests.tiny import tiny_examples, write_csv


@pytest.fixture
def data(tmp_path):
    write_csv(tmp_path / "data.csv", tiny_examples(120))
    return "data.csv"


def test_findings_are_printed_with_their_lines(run, data, tmp_path):
    with (tmp_path / data).open("a", encoding="utf-8") as file:
        file.write('"A lovely day.",Positive\n"",negative\n')
    code, out, err = run("check", data)
    assert (code, err) == (0, "")
    assert out.startswith("data.csv: 121 examples; columns text, label; utf-8\n")
    assert "\npositive        60  49.6%\n" in out
    assert "\nwarning: data.csv: 1 row with empty text, skipped (line 123)\n" in out
    assert "labels that look the same: 'positive' (60), 'Positive' (1) (line 122)\n" in out
    assert "lines" in out.partition("note: data.csv: ")[2]  # the short opinions repeat themselves


def test_the_suggested_command_runs(run, data, recipe):
    found = json.loads(run("check", data, "--test", data, "--json")[1])
    command = found["command"]
    assert command == "fathomer train data.csv --out model --test data.csv"
    code, _, err = run(*shlex.split(command)[1:], "--recipe", recipe)
    assert code == 0, err
    found = json.loads(run("check", "demo", "--data-dir", "my data", "--json")[1])
    assert shlex.split(found["command"])[-2:] == ["--data-dir", "my data"]


def test_json_contains_everything_that_is_printed(run, data):
    code, out, _ = run("check", data, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["ok"] is True
    assert found["labels"] == {"positive": 60, "negative": 60}
    assert (found["examples"], found["columns"]) == (120, ["text", "label"])
    assert (found["average_words"], found["longest_words"]) == (5.0, 5)
    kinds = {finding["problem"]: finding for finding in found["findings"]}
    assert kinds["duplicates"]["level"] == "note"
    assert kinds["duplicates"]["count"] > len(kinds["duplicates"]["lines"]) == 5


def test_data_that_nothing_can_be_learned_from_has_exit_code_one(run, tmp_path):
    (tmp_path / "one.csv").write_text("text,label\nx,a\ny,a\n", encoding="utf-8")
    code, out, err = run("check", "one.csv")
    assert (code, err) == (1, "")
    assert "error: one.csv: only one label ('a')" in out
    assert "train with" not in out
    code, out, _ = run("check", "one.csv", "--json")
    found = json.loads(out)
    assert (code, found["ok"], found["command"]) == (1, False, None)
    (tmp_path / "list.jsonl").write_text('[{"text": "a", "label": "b"}, {}]', encoding="utf-8")
    code, out, err = run("check", "list.jsonl")
    assert (code, err) == (1, "")
    assert "error: list.jsonl, line 1: a JSON list; write one object per line" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.csv"], "no.csv: no such file"),
        (["dem"], "dem: no such file or corpus; did you mean 'demo'?"),
        (["data.csv", "--test", "no.csv"], "no.csv: no such file"),
        (["data.csv", "--encoding", "klingon"], "unknown encoding 'klingon'"),
        (["trec"], ""),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(run, data, arguments, message):
    code, out, err = run("check", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"fathomer: {message}")
    assert err.count("\n") == 1


def test_a_folder_is_an_error_in_the_data(run, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    code, out, _ = run("check", "folder.csv")
    assert code == 1
    assert "error: folder.csv: expected a file, found a folder" in out


def test_a_corpus_is_checked_with_its_test_set(run, tmp_path):
    code, out, _ = run("check", "demo")
    assert code == 0
    assert "demo (test part): 600 examples\n" in out
    assert "no problems found" in out
    assert out.endswith("\ntrain with:\nfathomer train demo --out model\n")
    books = {name: content * 2 for name, content in small.BOOKS.items()}
    small.write_files(tmp_path / "amazon16", books)
    _, out, _ = run("check", "amazon16/books")
    assert out.endswith("\ntrain with:\nfathomer train amazon16/books --out model\n")


@pytest.mark.parametrize("name", ["small", "demo"])
def test_a_file_with_the_name_of_a_recipe_is_not_read_as_one(run, data, tmp_path, name):
    (tmp_path / name).write_text("notes", encoding="utf-8")
    assert run("check", data if name == "small" else "demo")[0] == 0


def test_the_suggested_command_overwrites_no_model(run, data, tmp_path):
    (tmp_path / "model").mkdir()
    assert run("check", data)[1].endswith("\nfathomer train data.csv --out model-2\n")


def test_in_a_terminal_the_suggested_command_fits_and_can_be_copied(run, tmp_path, monkeypatch):
    rows = [f"a {word} thing {n},{word}\n" for n in range(30) for word in ("good", "bad")]
    content = "Review Text,The Sentiment\n" + "".join(rows)
    (tmp_path / "reviews of the shop.csv").write_text(content, encoding="utf-8")
    (tmp_path / "test.csv").write_text(content, encoding="utf-8")
    command = ("check", "reviews of the shop.csv", "--test", "test.csv")
    _, out, _ = run(*command)
    plain = out.splitlines()[-1]
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = run(*command)[1].partition("train with:\n")[2]
    assert max(map(len, shown.splitlines())) <= 80 < len(plain)
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(plain)
    assert [line.split()[0] for line in shown.splitlines()[1:]] == ["--text-column"]


def test_long_lists_of_labels_are_shortened(run, tmp_path):
    rows = [f"text {n},label{n % 30}\n" for n in range(300)]
    (tmp_path / "many.csv").write_text("text,label\n" + "".join(rows), encoding="utf-8")
    code, out, _ = run("check", "many.csv")
    assert code == 0
    assert "and 10 more labels\n" in out


def test_word_vectors_are_suggested_where_they_help(run, data, monkeypatch):
    lines = (
        "word vectors often help with few texts: add --vectors wordllama\n"
        "gains on samples of TREC, MR and kitchen: -0.3 to +5.0 points, 2.2 on average"
    )
    assert f"\n{lines}\n\ntrain with:\nfathomer train data.csv" in run("check", data)[1]
    assert json.loads(run("check", data, "--json")[1])["suggestion"] == lines
    monkeypatch.setattr("fathomer.train.automatic.VECTORS_HELP", 50)
    assert "word vectors" not in run("check", data)[1]


def test_the_gains_of_word_vectors_are_those_in_the_log():
    log = Path(__file__).parents[2] / "docs" / "log.md"
    entry = log.read_text(encoding="utf-8").partition("Vectors of `wordllama` against none")[2]
    rows = re.findall(
        r"^\| (\w+) \| [\d,]+ \| ([\d.]+) \| ([\d.]+) \|", entry.partition("\n## ")[0], re.M
    )
    gains = [float(after) - float(before) for _, before, after in rows]
    corpora = list(dict.fromkeys(name for name, _, _ in rows))
    assert (
        f"gains on samples of {', '.join(corpora[:-1])} and {corpora[-1]}: {min(gains):+.1f} to "
        f"{max(gains):+.1f} points, {sum(gains) / len(gains):.1f} on average"
    ) == VECTOR_GAINS
