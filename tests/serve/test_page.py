"""The page in a real browser, against a real service with a tiny model."""

import csv

import pytest

from tests.serve.browser import (
    CHROMIUM,
    ask,
    browsing,
    colour,
    contrast,
    downloaded,
    drop,
    expected,
    invent,
    read_all,
    refuse,
    serving,
    shown_words,
)

pytest.importorskip("playwright", reason="the page is tested with playwright")
pytest.importorskip("fastapi", reason="the page is served by fathomer[serve]")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the page is tested in chromium")

HOSTILE = "<img src=x onerror=\"document.title='owned'\"> a bad film <script>alert(1)</script>"
LIMITS = ("--limit", "texts_per_request=3", "--limit", "characters_per_text=300")


@pytest.fixture(scope="module")
def address(model):
    with serving(model, *LIMITS) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def window(browser):
    """Open one window for all tests, and record what it asks for and what goes wrong in it."""
    page = browser.new_page(reduced_motion="reduce")
    page.set_default_timeout(60_000)
    page.requests, page.wrong = [], []
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("dialog", lambda dialog: page.wrong.append(dialog.message) or dialog.dismiss())
    page.on("console", lambda m: "Content Security" in m.text and page.wrong.append(m.text))
    return page


@pytest.fixture
def page(window, address):
    """Load the page; whatever a test does, it asks no one else and runs nothing that is not ours."""
    window.goto(address)
    window.locator("#answer .word").first.wait_for()
    yield window
    window.unroute_all()
    assert window.wrong == []
    assert window.title().startswith("Fathomer")
    assert all(url.startswith((address, f"blob:{address}")) for url in window.requests)


def test_typing_a_text_shows_what_the_predictor_answers(page):
    text = "The meal was awful, I think."
    ask(page, text)
    answer = expected(text)
    assert page.locator("#label").text_content() == answer.label
    assert page.locator("#probabilities li").count() == len(answer.probabilities)
    best = page.locator("#probabilities li").first.text_content()
    assert best == f"{answer.label}{answer.probabilities[answer.label]:.1%}".replace("%", " %")
    assert shown_words(page) == [(word.text, word.depth) for word in answer.words]
    assert answer.label in page.locator("#spoken").text_content()


def test_a_deeper_word_is_raised_higher_and_shaded_darker(page):
    shallow = {"text": "a", "start": 0, "end": 1, "depth": 1}
    deep = {"text": "b", "start": 2, "end": 3, "depth": 4}
    invent(page, label="x", words=[shallow, deep])
    ask(page, "a b")
    shallow, deep = (word.bounding_box() for word in page.locator(".word .text").all())
    assert shallow["y"] - deep["y"] > 40
    colour = "word => getComputedStyle(word).color"
    first, second = (word.evaluate(colour) for word in page.locator(".word .text").all())
    assert first != second


def test_histogram_and_table_hold_the_same_depths(page):
    text = "The hotel was lovely and the book was poor."
    ask(page, text)
    depths = [word.depth for word in expected(text).words]
    counts = page.locator("#histogram li > span:first-child").all_text_contents()
    assert counts == [str(depths.count(depth)) for depth in range(1, 5)]
    page.get_by_text("The words as a table").click()
    table = page.locator("#depths tr").all_inner_texts()
    assert table == [f"{word.text}\t{word.depth}" for word in expected(text).words]


def test_clicking_an_example_asks_about_it(page):
    example = page.locator("#examples button").nth(1)
    with page.expect_request("**/v1/predict") as request:
        example.click()
    assert request.value.post_data_json["texts"] == [example.text_content()]
    page.locator("#answer[aria-busy=false]").wait_for()
    assert page.get_by_label("Text to read").input_value() == example.text_content()
    assert page.locator(".word").first.locator(".text").text_content() == "Nobody"


def test_the_slider_asks_again_with_its_depth(page):
    text = "The hotel was lovely."
    ask(page, text)
    with page.expect_response("**/v1/predict") as response:
        page.get_by_role("slider").fill("1")
    asked = {"texts": [text], "depths": True, "max_depth": 1}
    assert response.value.request.post_data_json == asked
    page.locator("#trials tr").nth(1).wait_for()
    assert {depth for _, depth in shown_words(page)} == {1}
    deep, shallow = page.locator("#trials tr").all_inner_texts()
    assert deep.startswith("4\t")
    assert shallow.startswith("1\t")
    assert shallow.endswith(" ms")
    assert f"\t{len(expected(text).words)}\t" in shallow  # one step for each word


def test_the_page_leads_to_the_api(page):
    page.get_by_role("link").click()
    assert "/v1/predict" in page.locator("body").text_content()


def test_the_slider_reaches_as_deep_as_the_model(page):
    answer = {"labels": ["x"], "max_depth": 12, "limits": {}}
    page.route("**/v1/model", lambda route: route.fulfill(json=answer))
    with page.expect_request("**/v1/predict") as request:
        page.reload()
    assert request.value.post_data_json["max_depth"] is None
    assert page.get_by_role("slider").input_value() == "12"


def test_offsets_beyond_the_basic_plane_cut_at_the_right_characters(page):
    text = "🐳 The 𝒻ilm 👩‍👩‍👧 was naïve, 😀😀 I think"
    ask(page, text)
    assert shown_words(page) == [(word.text, word.depth) for word in expected(text).words]
    assert "👩‍👩‍👧" in dict(shown_words(page))


def test_words_that_were_not_read_are_shown_as_such(page):
    ask(page, "good " * 50 + "unseen tail")
    assert page.locator(".word").count() == 50
    assert page.locator(".unread").text_content() == "unseen tail"
    assert "The text was cut" in page.locator("#caption").text_content()


def test_markup_in_a_text_is_text(page):
    ask(page, HOSTILE)
    assert [word for word, _ in shown_words(page)][:2] == ["<", "img"]
    drop(page, "<b>x.csv", f'text\n"{HOSTILE.replace(chr(34), chr(34) * 2)}"\n')
    read_all(page)
    assert page.locator("#rows td").first.text_content() == HOSTILE
    assert page.locator("main img, main script, main b").count() == 0


def test_markup_in_a_label_is_text(page):
    label = "<img src=x onerror=alert(1)>"
    invent(page, label=label, words=[])
    ask(page, "anything")
    assert page.locator("#label").text_content() == label
    assert page.locator("main img").count() == 0


def test_many_labels_are_summed_up_where_one_is_right_and_bounded_where_several_may_be(page):
    shares = {f"label {n}": 0.4 - 0.04 * n for n in range(10)}
    for labels, told in ((None, "12.0 % together"), (["label 0"], "each at most 8.0 %")):
        more = {} if labels is None else {"labels": labels}
        invent(page, label="label 0", words=[], probabilities=shares, **more)
        ask(page, f"anything {told}")
        assert page.locator("#probabilities li").last.text_content() == f"2 other labels, {told}"


def test_a_dropped_csv_comes_back_with_answers(page):
    rows = [
        {"id": "-5", "text": "The film was good.", "label": '"q" x'},
        {"id": "2", "text": '=HYPERLINK("http://a") was bad,\r\nsaid "he"', "label": "@y"},
        {"id": "3", "text": "", "label": ""},
        *({"id": str(n), "text": f"The book was fine {n}.", "label": "z"} for n in range(4, 9)),
    ]
    asked = []
    page.route("**/v1/predict", lambda r: asked.append(r.request.post_data_json) or r.continue_())
    lines = [[row[name] for name in ("id", "text", "label")] for row in rows]
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines]
    drop(page, "reviews.csv", "\ufeffid,text,label\n" + "\n".join(quoted))
    read_all(page)
    answers = downloaded(page)
    assert [len(body["texts"]) for body in asked] == [3, 3, 1]  # what the service takes at a time
    assert [row["text"] for row in answers][2:] == [row["text"] for row in rows][2:]
    assert (answers[0]["id"], answers[0]["label"]) == ("-5", '"q" x')
    assert answers[1]["text"] == "'" + rows[1]["text"]  # no spreadsheet runs it
    assert answers[1]["label"] == "'@y"
    assert answers[2]["error"] == "There is no text."
    for row, given in zip(answers, rows, strict=True):
        if given["text"]:
            answer = expected(given["text"])
            share = pytest.approx(answer.probabilities[answer.label], abs=1e-5)
            assert (row["predicted_label"], float(row["probability"])) == (answer.label, share)


def test_lines_are_texts_and_one_that_is_too_long_does_not_stop_the_others(page):
    page.get_by_label("Text to read").fill("The meal was good.\n" + "bad " * 100 + "\nfine")
    page.get_by_role("button", name="Read the 3 lines as separate texts").click()
    read_all(page)
    first, second, third = page.locator("#rows tr").all_inner_texts()
    assert expected("The meal was good.").label in first
    assert "at most 300 characters" in second
    assert expected("fine").label in third
    page.locator("#rows button").first.click()
    page.locator("#answer .word").first.wait_for()
    assert page.get_by_label("Text to read").input_value() == "The meal was good."


def test_reading_several_texts_goes_on_where_it_was_interrupted(page):
    page.get_by_role("radio", name="Several texts").check()
    page.locator("#lines").fill("\n".join(f"good film {n}" for n in range(9)))
    asked = []

    def fail_once(route):
        asked.append(route.request.post_data_json["texts"])
        return route.abort() if len(asked) == 2 else route.continue_()

    page.route("**/v1/predict", fail_once)
    read_all(page)
    assert "3 of 9 texts read" in page.locator("#progress-text").text_content()
    assert "does not answer" in page.get_by_role("alert").text_content()
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("9 of 9 texts read").wait_for()
    assert [texts[0][-1] for texts in asked] == ["0", "3", "3", "6"]
    assert len(downloaded(page)) == 9


def test_tables_are_read_as_pythons_csv_module_reads_them(page):
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
    size = 12_000_000  # more than a regular expression goes back over
    lengths = """async (table) => {
        const { parseTable } = await import("./csv.js");
        return parseTable(table).map((row) => row.map((cell) => cell.length));
    }"""
    for cell in ('"' + "x" * size, '"' + '""' * size + '"'):
        assert page.evaluate(lengths, f"text\n{cell}") == [[4], [size]]
    [german] = page.evaluate(script, ['text;note\n"a;b";"1,5"\n'])
    assert german == [["text", "note"], ["a;b", "1,5"]]


def test_a_limit_is_told_by_its_number(page):
    ask(page, "bad " * 100)
    message = page.get_by_role("alert").text_content()
    assert "at most 300 characters in a text" in message
    assert page.locator("#answer").is_hidden()
    ask(page, "The film was good.")
    assert page.locator("#problem").is_hidden()
    assert page.locator("#answer").is_visible()


def test_a_busy_service_is_asked_again_when_it_says(page):
    refuse(page, 429, **{"Retry-After": "3"})
    page.get_by_label("Text to read").fill("The film was good.")
    page.get_by_text("The service is busy. Asking again in 3 s.").wait_for()
    page.locator("#problem").wait_for(state="hidden")
    assert shown_words(page)[1][0] == "film"


def test_a_service_that_is_gone_is_told_and_can_be_tried_again(page):
    page.context.set_offline(True)
    page.get_by_label("Text to read").fill("The film was good.")
    page.get_by_text("The service does not answer").wait_for()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    page.locator("#problem").wait_for(state="hidden")
    assert shown_words(page)[1][0] == "film"


def test_a_late_and_a_failing_service_are_told_apart(page):
    refuse(page, 504)
    ask(page, "good")
    assert "did not find the time" in page.get_by_role("alert").text_content()
    refuse(page, 500)
    ask(page, "bad")
    assert "The service has failed (500). a sentence" in page.get_by_role("alert").text_content()


def test_a_service_with_a_token_asks_for_it(browser, model, tmp_path):
    (tmp_path / "token").write_text("open-sesame\n")
    with serving(model, "--token-file", str(tmp_path / "token")) as address:
        page = browser.new_page()
        page.goto(address)
        page.get_by_text("This service asks for a token.").wait_for()
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        page.get_by_text("The service did not accept this token.").wait_for()
        page.get_by_label("Token").fill("open-sesame")
        page.keyboard.press("Enter")
        page.locator("#answer .word").first.wait_for()
        assert page.locator("#unlock").is_hidden()
        page.close()


def test_everything_can_be_done_with_the_keyboard(page):
    focused = "document.activeElement.id || document.activeElement.className"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "mode-one"
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    with page.expect_response("**/v1/predict"):
        page.keyboard.type("The film was dull.")
        page.keyboard.press("Enter")
    page.locator(".word", has_text="dull").wait_for()
    stops = []
    while not stops or stops[-1] != "cap":
        page.keyboard.press("Tab")
        stops.append(page.evaluate(focused))
        assert len(stops) < 20
    assert sum("word" in stop for stop in stops) == 1  # the words are one stop together
    with page.expect_response("**/v1/predict") as response:
        page.keyboard.press("Home")
    assert response.value.request.post_data_json["max_depth"] == 1
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.querySelector('.text').textContent") == "was"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_and_is_legible(browser, address, scheme):
    page = browser.new_page(viewport={"width": 360, "height": 700}, color_scheme=scheme)
    page.goto(address)
    page.locator("#answer .word").first.wait_for()
    ask(page, "An" + "extremely" * 20 + " long word in the film was good.")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for text in ("ink", "soft", "accent", "wrong", "shallow-word", "deep-word"):
        for ground in ("page", "depths", "panel"):
            assert contrast(colour(page, text), colour(page, ground)) >= 4.5, (text, ground)
    page.close()
