"""Take the screenshots in docs/: ``python -m tests.serve.screenshots MODEL_DIR``."""

import sys
from pathlib import Path

from tests.serve.browser import browsing, serving

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "Nobody can say that the hotel wasn't clean."


def take_screenshots(model: Path) -> None:
    """Take one of the light theme on a desktop and one of the dark theme on a phone."""
    with serving(model) as address, browsing() as browser:
        for name, width, scheme in (("desktop", 1280, "light"), ("phone", 390, "dark")):
            size = {"width": width, "height": 844}
            page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
            page.goto(address)
            page.get_by_role("button", name=TEXT).click()
            page.locator(".word", has_text="Nobody").wait_for()
            for place, key in enumerate(("ArrowLeft", "ArrowLeft", "End")):
                page.get_by_role("slider").press(key)
                current = page.locator("#trials tr").nth((place + 1) % 3)
                current.and_(page.locator("[aria-current]")).wait_for()
            page.mouse.move(0, 0)
            page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
            page.locator("#examples").evaluate("list => list.scrollTo(0, 0)")
            page.screenshot(path=DOCS / f"page-{name}.png", full_page=True)
            page.close()


if __name__ == "__main__":
    take_screenshots(Path(sys.argv[1]))
