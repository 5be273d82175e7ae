"""The command evaluate: what it prints and writes, and test texts that training has seen."""

import json
import re

import pytest

from fathomer.data.demo import demo_corpus
from fathomer.data.examples import Example, Examples
from fathomer.train.fit import fit
from tests.data.small import write_files
from tests.tiny import TINY, supervised_artifact, tiny_examples, write_csv


@pytest.fixture
def mislabelled(tmp_path):
    """Examples of which some have the wrong label."""
    wrong = [Example(e.text, "negative") for e in tiny_examples(6)]
    write_csv(tmp_path / "data.csv", Examples([*tiny_examples(40), *wrong]))
    return "data.csv"


def test_json_has_the_agreed_keys(run, model, data):
    code, out, _ = run("evaluate", model, data, "--json")
    found = json.loads(out)
    assert code == 0
    assert {"accuracy", "macro_f1", "examples", "mean_depth", "per_label"} <= set(found)
    assert set(found["per_label"]) == {"negative", "positive"}
    assert found["examples"] == 60


def test_evaluating_on_the_training_file_prints_a_warning(run, data, recipe):
    assert run("train", data, "--out", "new", "--recipe", recipe)[0] == 0
    code, _, err = run("evaluate", "new", f"./{data}")
    assert code == 0
    assert err == "warning: the model was trained on this file, so the scores mean little\n"


def test_all_parts_of_the_report_are_printed(run, model, mislabelled):
    code, out, err = run("evaluate", model, mislabelled)
    assert (code, err) == (0, "")
    parts = out.split("\n\n")
    assert [part.split()[0] for part in parts] == ["texts", "label", "true", "words", "worst"]
    matrix = [list(map(int, re.findall(r"\d+", line))) for line in parts[2].splitlines()[1:]]
    found = json.loads(run("evaluate", model, mislabelled, "--json")[1])
    assert matrix == [
        [found["confusion"][true].get(predicted, 0) for predicted in ("negative", "positive")]
        for true in ("negative", "positive")
    ]
    wrong = matrix[0][1] + matrix[1][0]
    assert wrong >= 3
    assert len(parts[4].splitlines()) == 1 + len(found["mistakes"]) == 1 + min(10, wrong)
    assert all(len(line) <= 100 for line in parts[4].splitlines())
    assert parts[4].splitlines()[1].startswith("negative → positive ")


def test_with_many_labels_the_most_frequent_confusions_are_printed(run, tmp_path):
    examples = Examples([Example(f"word{n % 12} here", f"label{n % 12}") for n in range(48)])
    short = TINY.updated({"train": {"epochs": 1}})
    fit(examples, short).artifact.save(tmp_path / "many")
    write_csv(tmp_path / "data.csv", examples)
    code, out, _ = run("evaluate", "many", "data.csv")
    assert code == 0
    assert "true \\ predicted" not in out
    pairs = out.partition("most confused")[2].split("\n\n")[0].splitlines()[1:]
    assert 1 <= len(pairs) <= 10
    assert all(re.fullmatch(r"label\d+ +→ label\d+ +\d+", pair) for pair in pairs)


def test_a_page_and_a_picture_are_written(run, model, mislabelled, tmp_path):
    arguments = ["--html", "page.html", "--plot", "matrix.png", "--json"]
    code, out, err = run("evaluate", model, mislabelled, *arguments)
    assert (code, err) == (0, "matrix.png: written\npage.html: written\n")
    assert json.loads(out)["examples"] == 46
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<title>model on data.csv</title>" in page
    assert (tmp_path / "matrix.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("command", [["evaluate"], ["threshold", "--precision", "0.5"]])
def test_rows_that_cannot_be_scored_are_counted(run, model, tmp_path, command):
    rows = "text,label\nThe film was good.,positive\nThe film was bad.,\n ,negative\n"
    (tmp_path / "gaps.csv").write_text(rows, encoding="utf-8")
    name, *options = command
    code, _, err = run(name, model, "gaps.csv", *options)
    said = "gaps.csv: 1 example read, 2 skipped (1 empty label, 1 empty text)\n"
    assert (code, err) == (0, said)


def test_json_counts_the_skipped_rows(run, model, tmp_path):
    (tmp_path / "gaps.csv").write_text("text,label\na,positive\nb,\n", encoding="utf-8")
    code, out, _ = run("evaluate", model, "gaps.csv", "--json")
    assert (code, json.loads(out)["skipped"]) == (0, {"empty label": 1})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plot", "matrix.jpg"], "matrix.jpg: --plot writes a PNG file; "),
        (["--plot", "no/matrix.png"], "no: no such folder"),
        (["--html", "no/page.html"], "no: no such folder"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_evaluation(
    run, monkeypatch, model, data, arguments, message
):
    monkeypatch.setattr("fathomer.predictor.Predictor.answer", lambda *a, **k: 1 / 0)
    code, out, err = run("evaluate", model, data, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"fathomer: {message}")


BOOKS = {
    "books.task.train": "1\tThe film was lovely.\n0\tThe film was bad.\n0\tThe film was great.\n",
    "books.task.test": "1\tThe film was bad.\n0\tThe meal was awful.\n1\tThe book was lovely.\n",
}


def test_a_second_accuracy_leaves_out_test_texts_seen_in_training(run, model, tmp_path):
    write_files(tmp_path / "amazon16", BOOKS)
    found = json.loads(run("evaluate", model, "amazon16/books", "--json")[1])
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert (found["accuracy_unseen"], found["examples_unseen"]) == (1.0, 2)
    out = run("evaluate", model, "amazon16/books")[1]
    assert "without the 1 that also occur in the training set: accuracy 1.0000 on 2\n" in out


def test_a_corpus_without_its_training_set_has_no_second_accuracy(run, model, data, tmp_path):
    write_files(tmp_path / "amazon16", {"books.task.test": BOOKS["books.task.test"]})
    code, out, _ = run("evaluate", model, "amazon16/books", "--json")
    assert code == 0
    assert "accuracy_unseen" not in json.loads(out)
    assert "accuracy_unseen" not in json.loads(run("evaluate", model, data, "--json")[1])


def test_texts_of_a_fold_that_occur_in_other_folds_count_as_seen(run, model, tmp_path):
    lines = {"rt-polarity.pos": "the film was good .\n" * 12, "rt-polarity.neg": ""}
    lines["rt-polarity.neg"] = "".join(f"the film number {n} was bad .\n" for n in range(12))
    write_files(tmp_path / "mr", lines)
    found = json.loads(run("evaluate", model, "mr", "--folds", "4", "--json")[1])
    assert (found["examples"], found["examples_unseen"]) == (6, 3)


def test_the_depth_curve_is_shown_unless_a_depth_is_set(run, tmp_path):
    supervised_artifact().save(tmp_path / "deep")
    examples = Examples([e for e in demo_corpus(train=1, test=40)[1] if '"' not in e.text])
    file = str(write_csv(tmp_path / "demo.csv", examples))
    code, out, _ = run("evaluate", "deep", file, "--json")
    assert code == 0
    curve = json.loads(out)["depth_curve"]
    assert list(curve[0]) == ["budget", "mean_depth", "accuracy", "texts_per_second"]
    assert [point["budget"] for point in curve] == [1, 1.5, 2, 3, 4.5, 6, 9]
    assert "texts per second" in run("evaluate", "deep", file)[1]
    found = json.loads(run("evaluate", "deep", file, "--depth-budget", "4", "--json")[1])
    assert "depth_curve" not in found
    assert found["mean_depth"] == pytest.approx(4, rel=0.2)
    assert run("evaluate", "deep", file, "--depth-budget", "10")[::2] == (
        2, "fathomer: depth budget 10; use 1 to 9\n"
    )  # fmt: skip


def test_training_to_an_average_depth(run, data, recipe, tmp_path):
    code, out, _ = run(
        "train", data, "--out", "deep", "--recipe", recipe, "--target-depth", "3", "--json"
    )
    assert code == 0
    assert json.loads(out)["depth_curve"][0]["budget"] == 1
    config = json.loads((tmp_path / "deep" / "config.json").read_text("utf-8"))
    assert config["recipe"]["model"]["depth"] == "supervised"
    assert config["depth_budgets"]["target"] == config["recipe"]["train"]["target_depth"] == 3
    answers = [json.loads(run("explain", "deep", "a good film", "--json", *b)[1])
               for b in (["--depth-budget", "1"], ["--depth-budget", "4"])]  # fmt: skip
    shallow, deep = (sum(word["depth"] for word in answer["words"]) for answer in answers)
    assert shallow < deep
