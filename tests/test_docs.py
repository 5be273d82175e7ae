"""The documents: their names, links and commands exist, and generated pages are up to date."""

import configparser
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import typer

import fathomer
from fathomer.cli import app
from fathomer.config import Recipe
from fathomer.recipes import shipped_recipes
from tests import terminal
from tests.documents import blocks
from tests.reference import PAGES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fathomer"
EQUATIONS = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
INDEX = ROOT / "docs" / "README.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def resolve(name):
    """Return the object named ``package.module.Class.method`` in fathomer."""
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


def equation_rows():
    table = re.findall(r"^\| (\d[^|]*)\| ([^|]*)\| ([^|]*)\| ([^|]*)\|$", EQUATIONS, re.MULTILINE)
    assert table
    return table


def test_every_equation_has_a_row():
    numbers = [number for row in equation_rows() for number in re.findall(r"\d+", row[0])]
    assert numbers == [str(number) for number in range(1, 18)]


@pytest.mark.parametrize("row", equation_rows(), ids=lambda row: row[0].strip())
def test_the_functions_and_tests_of_an_equation_exist(row):
    for name in re.findall(r"`([a-z_]+\.[\w.]+)`", row[2]):
        assert callable(resolve(name)) or isinstance(resolve(name), property), name
    for name in re.findall(r"`([\w/]+\.py)`", row[3]):
        assert (ROOT / "tests" / name).exists(), name


def test_the_code_refers_to_equations_that_exist():
    for path in SOURCE.rglob("*.py"):
        for numbers in re.findall(r"Eq\. \((\d+)\)", path.read_text(encoding="utf-8")):
            assert 1 <= int(numbers) <= 17, path


def map_entries():
    """Return the entries of the map, by module or package."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    block = text.split("src/fathomer/\n")[1].split("\nexperiments/")[0]
    entries = {}
    for line in block.splitlines():
        if not line.startswith("   "):
            name = line.split()[0]
        entries[name] = entries.get(name, "") + line
    return entries


def test_the_map_shows_every_module():
    entries = map_entries()
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).parts
        if path.name.startswith("__"):
            continue
        if len(parts) == 1:
            assert path.name in entries
        elif parts[0] != "cli" and "baselines" not in parts:
            assert path.name in entries[f"{parts[0]}/"], path


def test_the_map_shows_only_modules_that_exist():
    for name, line in map_entries().items():
        assert (SOURCE / name).exists(), name
        if name.endswith("/"):
            for module in re.findall(r"(\w+\.(?:py|toml))", line):
                assert list((SOURCE / name).rglob(module)), module


def test_the_map_has_the_order_of_the_import_contract():
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    layers = contract["importlinter:contract:layers"]["layers"].split("\n")
    levels = [[name.strip() for name in layer.split("|")] for layer in layers if layer.strip()]
    level = {name: number for number, names in enumerate(reversed(levels)) for name in names}
    shown = [name.removesuffix("/").removesuffix(".py") for name in map_entries()]
    assert sorted(shown) == sorted(set(level) - {"__main__"})
    assert [level[name] for name in shown] == sorted(level[name] for name in shown)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_point_to_files_that_exist(document):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_anchors_of_links_are_headings_of_the_document(document):
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)]+)\)", document.read_text("utf-8")):
        text = (document.parent / target if target else document).read_text("utf-8")
        headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
        slugs = [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]
        assert anchor in slugs, f"{target}#{anchor}"


def test_every_page_is_in_the_index():
    linked = re.findall(r"\]\(([^)#\s]+)\)", INDEX.read_text(encoding="utf-8"))
    found = {(INDEX.parent / target).resolve() for target in linked}
    pages = {path.resolve() for path in INDEX.parent.rglob("*.md")} - {INDEX.resolve()}
    assert not pages - found, "link these from docs/README.md"
    assert len(linked) == len(set(linked))


def test_the_readme_links_to_the_index_and_the_tutorial():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](docs/README.md)" in readme
    assert "](docs/tutorial.md)" in readme


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_generated_page_is_up_to_date(path):
    same = path.read_text(encoding="utf-8") == PAGES[path]()
    assert same, f"{path.name} is out of date; update it with: python -m tests.reference"


def test_every_public_name_and_command_is_in_the_reference():
    names = [*fathomer.__all__, "Predictor.predict", "TextClassifier.fit"]
    pages = {path.name: path.read_text(encoding="utf-8") for path in PAGES}
    for name in names:
        assert re.search(rf"^##+ {name}$", pages["python.md"], re.MULTILINE), name
    for name in ("train", "data get", "evaluate", "serve"):
        assert f"# `fathomer {name}`\n" in pages["commands.md"]
    assert "| `--set KEY=VALUE` |" in pages["commands.md"]


def test_every_option_and_argument_is_explained():
    for line in "".join(page() for page in PAGES.values()).splitlines():
        if line.startswith("| `") and "--" in line:
            assert not re.search(r"\|\s*(None)?\s*\|$", line), line


def shown_commands():
    """Yield the commands in all code blocks, including those that no test runs."""
    for document in DOCUMENTS:
        for block in re.findall(r"^```\w*\n(.*?)^```$", document.read_text("utf-8"), re.M | re.S):
            for command in re.findall(
                r"^(?:\$ )?(?:echo .* \| )?fathomer (.*)", block, re.MULTILINE
            ):
                yield pytest.param(command.partition(" > ")[0], id=f"{document.stem}: {command}")


@pytest.mark.parametrize("command", list(shown_commands()))
def test_the_options_and_settings_of_a_command_exist(command):
    found, arguments = typer.main.get_command(app), shlex.split(command, comments=True)
    while arguments and arguments[0] in getattr(found, "commands", ()):
        found = found.commands[arguments.pop(0)]
    given = found.make_context(
        "fathomer", arguments
    ).params  # parses the arguments without running the command
    Recipe().with_settings(given.get("set_") or [])
    if recipe := given.get("recipe"):
        assert recipe in (
            *shipped_recipes(),
            "paper",
            "tuned.toml",
        )  # tuned.toml is written by fathomer tune


def test_the_captured_terminal_is_up_to_date_and_fits_its_columns():
    page = terminal.PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\$ (.*)$", page, re.MULTILINE) == list(terminal.COMMANDS)
    shown = "".join(blocks(page, "text"))
    assert max(map(len, shown.splitlines())) <= terminal.COLUMNS
    assert "Traceback" not in shown
    assert "fathomer: " not in shown, "an error"
