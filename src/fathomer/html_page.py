"""The HTML frame shared by all pages that Fathomer writes.

Each page is one self-contained file with a light and a dark theme.
"""


def html_page(title: str, body: str, *, style: str = "") -> str:
    """Return a complete page; ``title`` and ``body`` are HTML, so escape their text first."""
    return _FRAME.format(title=title, body=body, style=style)


_FRAME = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: 20 70 140; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: 70 130 220; }} }}
body {{ font: 18px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; margin-bottom: 0; }}
th {{ text-align: left; font-weight: normal; padding-right: 1em; }}{style}
</style>
{body}
</html>
"""
