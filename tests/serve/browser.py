"""A running service and a real browser, for the tests and screenshots of the page."""

import csv
import json
import shutil
from contextlib import contextmanager
from pathlib import Path

from fathomer.predictor import Predictor
from tests.serve.process import service
from tests.tiny import tiny_artifact

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def serving(folder, *options):
    """Serve a model; yield the address of its page."""
    with service(folder, *options) as running:
        yield f"http://127.0.0.1:{running.port}/"


@contextmanager
def browsing():
    """Start the installed Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def classify(page, text):
    """Type a text and wait for its prediction."""
    with page.expect_response("**/v1/predict"):
        page.get_by_label("Text to classify").fill(text)
    page.locator("#answer[aria-busy=false]").wait_for(state="attached")


def expected(text, **settings):
    """Return the prediction made without a service."""
    [prediction] = Predictor(tiny_artifact()).predict([text], **settings)
    return prediction


def shown_words(page):
    """Return the words on the page as pairs of text and depth."""
    words = page.locator(".word").all()
    return [
        (word.locator(".text").text_content(), int(word.locator(".depth").text_content()))
        for word in words
    ]


def drop(page, name, content):
    """Drop a file on the page."""
    script = """([name, content]) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([content], name));
        return transfer;
    }"""
    transfer = page.evaluate_handle(script, [name, content])
    for event in ("dragover", "drop"):
        page.dispatch_event("body", event, {"dataTransfer": transfer})


def classify_all(page):
    """Classify several texts and wait until that is done."""
    page.get_by_role("button", name="Classify all").click()
    page.locator("#stop").wait_for(state="hidden")


def downloaded(page):
    """Download the predictions; return the rows of the CSV file."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    with Path(download.value.path()).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def mock_error(page, status, **headers):
    """Answer the next request with an error."""
    body = json.dumps({"error": {"code": "a_code", "message": "a sentence"}})
    answer = {"status": status, "body": body, "headers": headers}
    page.route("**/v1/predict", lambda route: route.fulfill(**answer), times=1)


def mock_prediction(page, *, label, words, **more):
    """Answer the next request with this prediction."""
    answer = {"label": label, "probabilities": {label: 1}, "truncated": False, "words": words}
    answer.update(more)
    body = json.dumps({"predictions": [answer]})
    page.route("**/v1/predict", lambda route: route.fulfill(body=body), times=1)


def colour(page, name):
    """Return a colour of the style sheet as red, green and blue from 0 to 1."""
    script = "name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`)"
    digits = page.evaluate(script, name).strip().removeprefix("#")
    digits = "".join(d * 2 for d in digits) if len(digits) == 3 else digits
    return [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]


def contrast(one, other):
    """Return the contrast ratio of two colours, as defined by WCAG 2."""

    def luminance(channels):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)
