"""The how-to about predicting is true: its commands run, and print what it shows."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "howto" / "predict.md").read_text(encoding="utf-8")


def without_figures(text):
    return re.sub(r"(positive|negative),[\d.,]+", r"\1", text)


def test_a_table_is_answered_as_the_page_shows(run, demo, tmp_path):
    given, answers, *_ = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "model").symlink_to(demo.folder)
    (tmp_path / "reviews.csv").write_text(given, encoding="utf-8")
    command, shown = re.search(r"\$ fathomer (predict .*--depths)\n(.*\n)", PAGE).groups()
    assert run(*command.split()) == (0, "", shown)
    found = (tmp_path / "answers.csv").read_text(encoding="utf-8")
    assert without_figures(found.partition("\n3,")[0]) == without_figures(
        answers.partition("\n3,")[0]
    )
    code, _, err = run(*command.split(), "--resume")
    assert (code, err) == (2, "fathomer: answers.csv: is complete; there is nothing to resume\n")


def test_a_bad_row_is_told_as_the_page_shows(run, demo, tmp_path):
    (tmp_path / "model").symlink_to(demo.folder)
    rows = "id,text,date\n" + "1,good,x\n" * 600 + "1,a, b,x\n"
    (tmp_path / "reviews.csv").write_text(rows, encoding="utf-8")
    _, _, err = run("predict", "model", "reviews.csv", "--out", "answers.csv")
    assert err in PAGE
