"""The page in a real browser: one text."""

import pytest

from tests.serve.browser import (
    CHROMIUM,
    classify,
    classify_all,
    colour,
    contrast,
    drop,
    expected,
    mock_error,
    mock_prediction,
    serving,
    shown_words,
)

pytest.importorskip("playwright", reason="the page is tested with playwright")
pytest.importorskip("fastapi", reason="the page is served by fathomer[serve]")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the page is tested in chromium")

HOSTILE = "<img src=x onerror=\"document.title='owned'\"> a bad film <script>alert(1)</script>"


def test_typing_a_text_shows_its_prediction(page):
    text = "The meal was awful, I think."
    classify(page, text)
    answer = expected(text)
    assert page.locator("#label").text_content() == answer.label
    assert page.locator("#probabilities li").count() == len(answer.probabilities)
    best = page.locator("#probabilities li").first.text_content()
    assert best == f"{answer.label}{answer.probabilities[answer.label]:.1%}".replace("%", " %")
    assert shown_words(page) == [(word.text, word.depth) for word in answer.words]
    assert answer.label in page.locator("#spoken").text_content()


def test_a_deeper_word_has_a_taller_bar_and_another_shade(page):
    shallow = {"text": "a", "start": 0, "end": 1, "depth": 1}
    deep = {"text": "b", "start": 2, "end": 3, "depth": 4}
    mock_prediction(page, label="x", words=[shallow, deep])
    classify(page, "a b")
    shallow, deep = (word.bounding_box() for word in page.locator(".word .text").all())
    assert shallow["y"] - deep["y"] > 40
    colour = "word => getComputedStyle(word).color"
    first, second = (word.evaluate(colour) for word in page.locator(".word .text").all())
    assert first != second


def test_histogram_and_table_show_the_depths(page):
    text = "The hotel was lovely and the book was poor."
    classify(page, text)
    depths = [word.depth for word in expected(text).words]
    counts = page.locator("#histogram li > span:first-child").all_text_contents()
    assert counts == [str(depths.count(depth)) for depth in range(1, 5)]
    page.locator("#strongest .line").first.wait_for()
    page.get_by_text("Show words as a table").click()
    table = [row.split("\t")[:2] for row in page.locator("#depths tr").all_inner_texts()]
    assert table == [[word.text, str(word.depth)] for word in expected(text).words]


def test_words_for_and_against_the_answer_are_underlined_and_listed(page):
    text = "The film was good, the film was great, the film was dull."
    classify(page, text)
    page.locator("#strongest .line").first.wait_for()
    answer = expected(text, contributions=True)
    found = {word.text: word.contribution for word in answer.words}
    for word in ("good", "dull"):
        shown = page.locator(".word", has_text=word).first
        kind = "for" if found[word] > 0 else "against"
        assert kind in shown.get_attribute("class").split()
        assert f"contribution {found[word]:+.1f}" in shown.get_attribute("data-tip")
    assert page.locator(".line.for").inner_text().startswith(f"For {answer.best}: ")
    assert "dull -" in page.locator(".line.against").inner_text()


def test_a_model_without_depths_shows_contributions(page):
    page.route("**/v1/model", lambda route: route.fulfill(
        json={"labels": ["x"], "max_depth": None, "limits": {}}))  # fmt: skip
    page.reload()
    page.get_by_label("Text to classify").fill("The film was awful.")
    page.locator("#strongest .line").first.wait_for()
    assert page.locator(".word .text").first.is_visible()
    assert page.locator(".word .bar").first.is_hidden()
    assert page.locator(".word").first.get_attribute("data-tip").startswith("contribution ")


def test_an_answer_stays_if_its_contributions_are_refused(page):
    error = {"error": {"code": "words_per_request", "message": "", "limit": 10}}
    refused = {"status": 422, "json": error}
    page.route("**/v1/predict?contributions", lambda route: route.fulfill(**refused))
    classify(page, "The film was good.")
    page.get_by_text("does not show contributions for a text of this length").wait_for()
    assert page.locator("#problem").is_hidden()
    assert page.locator("#label").text_content() == expected("The film was good.").label


def test_clicking_an_example_classifies_it(page):
    example = page.locator("#examples button").nth(1)
    with page.expect_request("**/v1/predict") as request:
        example.click()
    assert request.value.post_data_json["texts"] == [example.text_content()]
    page.locator("#answer[aria-busy=false]").wait_for()
    assert page.get_by_label("Text to classify").input_value() == example.text_content()
    assert page.locator(".word").first.locator(".text").text_content() == "Nobody"


def test_the_slider_limits_the_depth(page):
    text = "The hotel was lovely."
    classify(page, text)
    with page.expect_response("**/v1/predict") as response:
        page.get_by_role("slider").fill("1")
    sent = {"texts": [text], "depths": True, "max_depth": 1}
    assert response.value.request.post_data_json == sent
    page.locator("#trials tr").nth(1).wait_for()
    assert {depth for _, depth in shown_words(page)} == {1}
    deep, shallow = page.locator("#trials tr").all_inner_texts()
    assert deep.startswith("4\t")
    assert shallow.startswith("1\t")
    assert shallow.endswith(" ms")
    assert f"\t{len(expected(text).words)}\t" in shallow  # one step per word


def test_the_slider_sets_the_average_depth_if_the_model_has_budgets(page):
    answer = {"labels": ["x"], "max_depth": 9, "depth_budget": 2.5, "limits": {}}
    page.route("**/v1/model", lambda route: route.fulfill(json=answer))
    mock_prediction(page, label="x", words=[])
    with page.expect_request("**/v1/predict") as request:
        page.reload()
    assert request.value.post_data_json["depth_budget"] == 2.5
    assert page.get_by_role("slider").input_value() == "2.5"
    assert page.locator("#cap-title").inner_text().startswith("Average depth")
    with page.expect_request("**/v1/predict") as request:
        page.get_by_role("slider").fill("4.2")
    assert request.value.post_data_json["depth_budget"] == 4.2
    assert request.value.post_data_json["max_depth"] is None


def test_the_page_links_to_the_api_reference(page):
    page.get_by_role("link").click()
    assert "/v1/predict" in page.locator("body").text_content()


def test_the_slider_starts_at_the_maximum_depth_of_the_model(page):
    answer = {"labels": ["x"], "max_depth": 12, "limits": {}}
    page.route("**/v1/model", lambda route: route.fulfill(json=answer))
    with page.expect_request("**/v1/predict") as request:
        page.reload()
    assert request.value.post_data_json["max_depth"] is None
    assert page.get_by_role("slider").input_value() == "12"


def test_offsets_are_right_beyond_the_basic_multilingual_plane(page):
    text = "🐳 The 𝒻ilm 👩‍👩‍👧 was naïve, 😀😀 I think"
    classify(page, text)
    assert shown_words(page) == [(word.text, word.depth) for word in expected(text).words]
    assert "👩‍👩‍👧" in dict(shown_words(page))


def test_unread_words_are_marked(page):
    classify(page, "good " * 50 + "unseen tail")
    assert page.locator(".word").count() == 50
    assert page.locator(".unread").text_content() == "unseen tail"
    assert "The text was truncated" in page.locator("#caption").text_content()


def test_markup_in_a_text_is_shown_as_text(page):
    classify(page, HOSTILE)
    assert [word for word, _ in shown_words(page)][:2] == ["<", "img"]
    drop(page, "<b>x.csv", f'text\n"{HOSTILE.replace(chr(34), chr(34) * 2)}"\n')
    classify_all(page)
    assert page.locator("#rows td").first.text_content() == HOSTILE
    assert page.locator("main img, main script, main b").count() == 0


def test_markup_in_a_label_is_shown_as_text(page):
    label = "<img src=x onerror=alert(1)>"
    mock_prediction(page, label=label, words=[])
    classify(page, "anything")
    assert page.locator("#label").text_content() == label
    assert page.locator("main img").count() == 0


def test_further_labels_are_summed_for_single_label_models_and_bounded_for_multi_label_ones(page):
    shares = {f"label {n}": 0.4 - 0.04 * n for n in range(10)}
    for labels, summary in ((None, "12.0 % in total"), (["label 0"], "each at most 8.0 %")):
        more = {} if labels is None else {"labels": labels}
        mock_prediction(page, label="label 0", words=[], probabilities=shares, **more)
        classify(page, f"anything {summary}")
        assert page.locator("#probabilities li").last.text_content() == f"2 other labels: {summary}"


def test_an_exceeded_limit_is_shown_with_its_value(page):
    classify(page, "bad " * 100)
    message = page.get_by_role("alert").text_content()
    assert "at most 300 characters per text" in message
    assert page.locator("#answer").is_hidden()
    classify(page, "The film was good.")
    assert page.locator("#problem").is_hidden()
    assert page.locator("#answer").is_visible()


def test_a_busy_service_is_retried_after_the_time_it_gives(page):
    mock_error(page, 429, **{"Retry-After": "3"})
    page.get_by_label("Text to classify").fill("The film was good.")
    page.get_by_text("The service is busy. Retrying in 3 s.").wait_for()
    page.locator("#problem").wait_for(state="hidden")
    assert shown_words(page)[1][0] == "film"


def test_an_unreachable_service_can_be_retried(page):
    page.context.set_offline(True)
    page.get_by_label("Text to classify").fill("The film was good.")
    page.get_by_text("The service does not respond").wait_for()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    page.locator("#problem").wait_for(state="hidden")
    assert shown_words(page)[1][0] == "film"


def test_a_timeout_and_a_failure_have_different_messages(page):
    mock_error(page, 504)
    classify(page, "good")
    assert "took too long to respond" in page.get_by_role("alert").text_content()
    mock_error(page, 500)
    classify(page, "bad")
    assert "The service failed (500). a sentence" in page.get_by_role("alert").text_content()


def test_a_service_with_a_token_prompts_for_it(browser, model, tmp_path):
    (tmp_path / "token").write_text("open-sesame\n")
    with serving(model, "--token-file", str(tmp_path / "token")) as address:
        page = browser.new_page()
        page.goto(address)
        page.get_by_text("This service requires a token.").wait_for()
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        page.get_by_text("The service did not accept this token.").wait_for()
        page.get_by_label("Token").fill("open-sesame")
        page.keyboard.press("Enter")
        page.locator("#answer .word").first.wait_for()
        assert page.locator("#unlock").is_hidden()
        page.close()


def test_the_page_can_be_used_with_the_keyboard(page):
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
    assert sum("word" in stop for stop in stops) == 1  # all words are a single tab stop
    with page.expect_response("**/v1/predict") as response:
        page.keyboard.press("Home")
    assert response.value.request.post_data_json["max_depth"] == 1
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.querySelector('.text').textContent") == "was"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_and_has_enough_contrast(browser, address, scheme):
    page = browser.new_page(viewport={"width": 360, "height": 700}, color_scheme=scheme)
    page.goto(address)
    page.locator("#answer .word").first.wait_for()
    classify(page, "An" + "extremely" * 20 + " long word in the film was good.")
    page.locator(".word.for, .word.against").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for text in ("ink", "soft", "accent", "wrong", "for", "shallow-word", "deep-word"):
        for background in ("page", "page-bottom", "panel"):
            assert contrast(colour(page, text), colour(page, background)) >= 4.5, (text, background)
    page.close()
