"""The documents stay true: names in them exist, and the map shows every module."""

import re
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

from fathomer.config import Recipe

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fathomer"
EQUATIONS = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
SETTINGS = ROOT / "docs" / "settings.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def resolve(name):
    """Find ``package.module.Class.method`` below fathomer."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module("fathomer." + ".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"no such module: {name}")


def rows():
    table = re.findall(r"^\| (\d[^|]*)\| ([^|]*)\| ([^|]*)\| ([^|]*)\|$", EQUATIONS, re.MULTILINE)
    assert table
    return table


def test_every_equation_has_its_row():
    numbers = [number for row in rows() for number in re.findall(r"\d+", row[0])]
    assert numbers == [str(number) for number in range(1, 18)]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0].strip())
def test_functions_and_tests_of_an_equation_exist(row):
    for name in re.findall(r"`([a-z_]+\.[\w.]+)`", row[2]):
        assert callable(resolve(name)) or isinstance(resolve(name), property), name
    for name in re.findall(r"`([\w/]+\.py)`", row[3]):
        assert (ROOT / "tests" / name).exists(), name


def test_code_names_equations_that_exist():
    for path in SOURCE.rglob("*.py"):
        for numbers in re.findall(r"Eq\. \((\d+)\)", path.read_text(encoding="utf-8")):
            assert 1 <= int(numbers) <= 17, path


def test_the_map_shows_every_module():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    for path in SOURCE.rglob("*.py"):
        if path.name.startswith("__"):
            continue
        shown = f"{path.parent.name}/" if path.parent.name in ("cli", "baselines") else path.name
        assert shown in text, path.relative_to(SOURCE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (document.parent / target).exists(), target


def test_every_document_can_be_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        document = waiting.pop()
        reached.add(document)
        for target in re.findall(r"\]\(([^)#\s]+\.md)", document.read_text(encoding="utf-8")):
            if not target.startswith("https://"):
                waiting += {(document.parent / target).resolve()} - reached
    assert set(DOCUMENTS) <= reached


def settings_page():
    """Write docs/settings.md from the settings themselves."""
    lines = [
        "# Settings",
        "",
        "Change one with `--set section.name=value`, or several with a recipe in TOML. The defaults are",
        "the paper's where it names them.",
        "",
    ]
    for section in fields(Recipe()):
        lines += [f"## {section.name}", "", "| setting | default | meaning |", "|---|---|---|"]
        lines += [
            f"| `{section.name}.{item.name}` | `{item.default}` | {item.metadata['doc']} |"
            for item in fields(getattr(Recipe(), section.name))
        ]
        lines.append("")
    return "\n".join(lines)


def test_every_setting_is_listed():
    """After a change: python -c "from tests.test_docs import *; write_settings()"."""
    assert SETTINGS.read_text(encoding="utf-8") == settings_page()


def write_settings():
    SETTINGS.write_text(settings_page(), encoding="utf-8")
