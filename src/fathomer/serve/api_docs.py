"""The HTML reference of the API at /docs, without scripts or external resources."""

import json
from html import escape
from typing import Any


def reference_page(openapi: dict[str, Any]) -> str:
    """Render all operations of an OpenAPI schema as HTML."""
    sections = [
        _section(path, method.upper(), operation)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = json.dumps(openapi["components"]["schemas"], indent=2)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>Fathomer API</title></head>\n<body><h1>Fathomer API</h1>\n"
        '<p>OpenAPI schema: <a href="/openapi.json">openapi.json</a>.</p>\n'
        f"{''.join(sections)}<h2>Schemas</h2>\n<pre>{escape(schemas)}</pre>\n</body></html>\n"
    )


def _section(path: str, method: str, operation: dict[str, Any]) -> str:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    shown = f"<pre>{escape(json.dumps(body['schema'], indent=2))}</pre>\n" if body else ""
    statuses = ", ".join(f"{s} {r['description']}" for s, r in operation["responses"].items())
    return (
        f"<h2>{escape(method)} {escape(path)}</h2>\n<p>{escape(operation['description'])}</p>\n"
        f"{shown}<p>Responses: {escape(statuses)}.</p>\n"
    )
