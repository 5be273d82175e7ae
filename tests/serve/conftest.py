import pytest

from tests.serve.browser import browsing, serving
from tests.serve.process import service
from tests.tiny import supervised_artifact, tiny_artifact


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "model"
    tiny_artifact().save(folder)
    return folder


@pytest.fixture(scope="session")
def budgeted(tmp_path_factory):
    """A model with supervised depth, which can be set to an average depth."""
    folder = tmp_path_factory.mktemp("budgeted") / "model"
    supervised_artifact().save(folder)
    return folder


@pytest.fixture(scope="session")
def running(model):
    """One service shared by all tests that do not change its state."""
    with service(model, "--limit", "body_bytes=50000", "--limit", "body_seconds=1") as found:
        yield found


@pytest.fixture(scope="module")
def address(model):
    """The address of a page whose service has small limits."""
    limits = ("--limit", "texts_per_request=3", "--limit", "characters_per_text=300")
    with serving(model, *limits) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def window(browser):
    """One browser window for all tests of a module, which records requests and errors."""
    page = browser.new_page(reduced_motion="reduce")
    page.set_default_timeout(60_000)
    page.requests, page.errors = [], []
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("dialog", lambda dialog: page.errors.append(dialog.message) or dialog.dismiss())
    page.on("console", lambda m: "Content Security" in m.text and page.errors.append(m.text))
    return page


@pytest.fixture
def page(window, address):
    """The loaded page; after the test, check that it ran no foreign code and sent nothing elsewhere."""
    window.goto(address)
    window.locator("#answer .word").first.wait_for()
    yield window
    window.unroute_all()
    assert window.errors == []
    assert window.title().startswith("Fathomer")
    assert all(url.startswith((address, f"blob:{address}")) for url in window.requests)
