"""The page in a real browser: several texts and CSV files."""

import csv

import pytest

from tests.serve.browser import CHROMIUM, classify_all, downloaded, drop, expected

pytest.importorskip("playwright", reason="the page is tested with playwright")
pytest.importorskip("fastapi", reason="the page is served by fathomer[serve]")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the page is tested in chromium")


def test_a_dropped_csv_is_downloaded_with_predictions(page):
    rows = [
        {"id": "-5", "text": "The film was good.", "label": '"q" x'},
        {"id": "2", "text": '=HYPERLINK("http://a") was bad,\r\nsaid "he"', "label": "@y"},
        {"id": "3", "text": "", "label": ""},
        *({"id": str(n), "text": f"The book was fine {n}.", "label": "z"} for n in range(4, 9)),
    ]
    sent = []
    page.route("**/v1/predict", lambda r: sent.append(r.request.post_data_json) or r.continue_())
    lines = [[row[name] for name in ("id", "text", "label")] for row in rows]
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines]
    drop(page, "reviews.csv", "\ufeffid,text,label\n" + "\n".join(quoted))
    classify_all(page)
    answers = downloaded(page)
    assert [len(body["texts"]) for body in sent] == [3, 3, 1]  # the limit of the service
    assert [row["text"] for row in answers][2:] == [row["text"] for row in rows][2:]
    assert (answers[0]["id"], answers[0]["label"]) == ("-5", '"q" x')
    assert answers[1]["text"] == "'" + rows[1]["text"]  # not run by a spreadsheet
    assert answers[1]["label"] == "'@y"
    assert answers[2]["error"] == "Empty text."
    for row, given in zip(answers, rows, strict=True):
        if given["text"]:
            answer = expected(given["text"])
            share = pytest.approx(answer.probabilities[answer.label], abs=1e-5)
            assert (row["predicted_label"], float(row["probability"])) == (answer.label, share)


def test_lines_are_texts_and_one_that_is_too_long_does_not_affect_the_others(page):
    page.get_by_label("Text to classify").fill("The meal was good.\n" + "bad " * 100 + "\nfine")
    page.get_by_role("button", name="Classify the 3 lines as separate texts").click()
    classify_all(page)
    first, second, third = page.locator("#rows tr").all_inner_texts()
    assert expected("The meal was good.").label in first
    assert "at most 300 characters" in second
    assert expected("fine").label in third
    page.locator("#rows button").first.click()
    page.locator("#answer .word").first.wait_for()
    assert page.get_by_label("Text to classify").input_value() == "The meal was good."


def test_classifying_several_texts_resumes_where_it_was_interrupted(page):
    page.get_by_role("radio", name="Several texts").check()
    page.locator("#lines").fill("\n".join(f"good film {n}" for n in range(9)))
    asked = []

    def fail_once(route):
        asked.append(route.request.post_data_json["texts"])
        return route.abort() if len(asked) == 2 else route.continue_()

    page.route("**/v1/predict", fail_once)
    classify_all(page)
    assert "3 of 9 texts classified" in page.locator("#progress-text").text_content()
    assert "does not respond" in page.get_by_role("alert").text_content()
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("9 of 9 texts classified").wait_for()
    assert [texts[0][-1] for texts in asked] == ["0", "3", "3", "6"]
    assert len(downloaded(page)) == 9


def test_tables_are_parsed_like_pythons_csv_module_does(page):
    tables = [
        "text\na\n\nb\n",
        'a,b\r\n"x, ""y""\r\nz",2\r\n',
        "a,b\n,\n1,\n",
        'a\n""\n"q"',
        'a,b\n"x"y,2\n',
    ]
    script = """async (tables) => {
        const { parseTable } = await import("./csv.js");
        return tables.map(parseTable);
    }"""
    read = [list(csv.reader(table.splitlines(keepends=True))) for table in tables]
    blank = ([], [""])
    assert page.evaluate(script, tables) == [
        [row for row in rows if row not in blank] for rows in read
    ]
    size = 4_000_000  # more than a regular expression could backtrack over
    lengths = """async (table) => {
        const { parseTable } = await import("./csv.js");
        return parseTable(table).map((row) => row.map((cell) => cell.length));
    }"""
    for cell in ('"' + "x" * size, '"' + '""' * size + '"'):
        assert page.evaluate(lengths, f"text\n{cell}") == [[4], [size]]
    [german] = page.evaluate(script, ['text;note\n"a;b";"1,5"\n'])
    assert german == [["text", "note"], ["a;b", "1,5"]]
