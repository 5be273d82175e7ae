"""The generator of the reference pages: ``python -m tests.reference`` rewrites them."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Literal, get_args, get_origin

import typer

import fathomer
from fathomer import errors
from fathomer.cli import app
from fathomer.config import Recipe
from fathomer.section import Section
from fathomer.train import automatic
from fathomer.train.automatic import DataSize, automatic_recipe

DOCS = Path(__file__).parents[1] / "docs"


def settings_page() -> str:
    """Return the page of all settings, with their defaults and meanings."""
    lines = [
        "# Settings",
        "",
        "Set one setting with `--set section.name=value`, or several in a TOML recipe. The defaults follow",
        "the paper where it states them.",
        "",
    ]
    lines += _rule()
    for section in fields(Recipe()):
        lines += [f"## {section.name}", "", "| setting | default | meaning |", "|---|---|---|"]
        lines += [
            f"| `{section.name}.{item.name}` | `{item.default}` | {item.metadata['doc']} |"
            for item in fields(getattr(Recipe(), section.name))
        ]
        lines.append("")
    return "\n".join(lines)


def _rule() -> list[str]:
    """Return the section on settings that follow from the data."""
    low, high = automatic.BATCH_WORDS
    least, most = automatic.EPOCHS
    few, many = (
        automatic_recipe(DataSize(texts, 100 * texts)) for texts in (1, automatic.MANY_TEXTS)
    )
    short = automatic_recipe(DataSize(1, 1)).model
    words = f"below {automatic.SHORT_TEXTS} words per text"
    steps, threshold = automatic.STEPS_PER_EPOCH, f"{automatic.FEW_TEXTS:,} texts"
    rows = {
        "model.hidden_size": f"{few.model.hidden_size} below {threshold}, "
        f"else {many.model.hidden_size}",
        "model.max_depth": f"{many.model.max_depth}",
        "model.word_size": f"{many.model.word_size}, unless vectors are given",
        "model.word_dropout": f"{short.word_dropout} {words}, else {many.model.word_dropout}",
        "model.hidden_dropout": f"{short.hidden_dropout} {words}, else {many.model.hidden_dropout}",
        "model.whole_word_dropout": f"{short.whole_word_dropout:g} {words}, else "
        f"{many.model.whole_word_dropout}",
        "model.ngrams": f"`True` up to {automatic.MANY_TEXTS:,} texts",
        "train.batch_words": f"the training words divided by {steps}, in whole hundreds from {low} to "
        f"{high:,}: about {steps} steps per epoch",
        "train.epochs": f"enough for {automatic.STEPS_OF_SHORT:,} steps {words}, else "
        f"{automatic.STEPS:,}; from {least} to {most}; fewer if "
        "`--minutes` requires it",
        "train.keep": f"`{many.train.keep}`",
        "train.precision": "`bfloat16` on processors with AVX512_BF16 or AMX, else `float32`",
        "train.held_out": f"{few.train.held_out} below {threshold}, else {many.train.held_out}",
    }
    return [
        "## Settings that follow from the data",
        "",
        "Without `--recipe`, `fathomer train` chooses these settings and prints the main ones. `--set`",
        "changes any of them. All other settings keep their defaults.",
        "",
        "| setting | value |",
        "|---|---|",
        *(f"| `{name}` | {value} |" for name, value in rows.items()),
        "",
        "`--recipe paper` trains with the paper's settings instead: the defaults below, with the epochs and",
        "batches of a corpus that has its own recipe. Without `--recipe`, the demo corpus is trained with the",
        "recipe `demo`.",
        "",
    ]


def commands_page() -> str:
    """Return the page of all commands, with their help texts and a table of options."""
    lines = [
        "# Commands",
        "",
        "The help texts of all commands, as printed by `fathomer COMMAND --help`. Results go to standard",
        "output, progress and messages to standard error. A user error is reported in one line, with exit",
        "code 2.",
        "",
    ]
    for path, command in _commands("fathomer", typer.main.get_command(app)):
        lines += [f"{'#' * path.count(' ')}# `{path}`", "", *_help(command.help or "")]
        rows = [_row(item) for item in command.params if item.name != "help"]
        if rows:
            lines += ["| option | default | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _commands(path: str, group) -> Iterator[tuple]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        yield f"{path} {name}", command
        if hasattr(command, "commands"):
            yield from _commands(f"{path} {name}", command)


def _help(text: str) -> list[str]:
    """Format the examples of a help text as code blocks."""
    lines = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        before, example, command = paragraph.partition("Example: ")
        lines += ["```", command, "```", ""] if example and not before else [paragraph, ""]
    return lines


def _row(item) -> str:
    """Return the table row of an argument or an option."""
    flag = getattr(item, "is_flag", False)
    value = "" if flag else item.metavar or "N"
    names = "" if item.param_type_name == "argument" else ", ".join(item.opts + item.secondary_opts)
    default = "required" if item.required else f"`{item.default}`"
    if item.default in (None, False) and not item.required:
        default = ""
    repeated = " May be repeated." if getattr(item, "multiple", False) else ""
    return _cells(f"`{f'{names} {value}'.strip()}`", default, f"{item.help}{repeated}")


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def python_page() -> str:
    """Return the page of the public Python API, with signatures and docstrings."""
    links = ",\n".join(f"[{name}](#{name.lower()})" for name in fathomer.__all__)
    lines = ["# Python", "", "The public names of the package `fathomer`:", f"{links}.", ""]
    for name in fathomer.__all__:
        lines += _entry(getattr(fathomer, name))
    tree = errors.__doc__.partition("::\n\n")[2]
    lines += ["## Errors", "", "```text", inspect.cleandoc(tree), "```", ""]
    return "\n".join(lines)


def _entry(found) -> list[str]:
    """Return the section of a function, or of a class with its fields and methods."""
    [node] = ast.parse(inspect.getsource(found)).body
    lines = [f"## {found.__name__}", ""]
    if isinstance(node, ast.FunctionDef):
        return [*lines, *_signature(node, found, found.__name__), *_prose(ast.get_docstring(node))]
    functions = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    for function in functions:
        if function.name == "__init__":
            lines += _signature(function, found, found.__name__)
    lines += _prose(ast.get_docstring(node))
    if issubclass(found, Section):
        return [*lines, "Its fields are [settings](../settings.md).", ""]
    lines += _fields(node)
    for function in functions:
        if not function.name.startswith("_"):
            lines += [f"### {found.__name__}.{function.name}", ""]
            prefix = f"{found.__name__}." if "classmethod" in _decorators(function) else ""
            lines += _signature(function, found, prefix + function.name)
            lines += _prose(ast.get_docstring(function))
    return lines


def _fields(node: ast.ClassDef) -> list[str]:
    """Return a table of the fields of a class, with the docstring below each field."""
    rows = []
    for part, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(part, ast.AnnAssign):
            doc = following.value.value if isinstance(following, ast.Expr) else ""
            kind = f"`{ast.unparse(part.annotation)}`"
            rows.append(_cells(f"`{part.target.id}`", kind, " ".join(_prose(doc)).strip()))
    return ["| field | type | meaning |", "|---|---|---|", *rows, ""] if rows else []


def _signature(node: ast.FunctionDef, owner, name: str) -> list[str]:
    """Return the signature of a function, with one argument per line if it is long."""
    if "property" in _decorators(node):
        return ["```python", f"{name}: {ast.unparse(node.returns)}", "```", ""]
    arguments = _split(node.args)
    returns = "" if node.name == "__init__" else f" -> {ast.unparse(node.returns)}"
    text = f"{name}({', '.join(arguments)}){returns}"
    if len(text) > 100:
        text = "\n".join([f"{name}(", *(f"    {each}," for each in arguments), f"){returns}"])
    return ["```python", _expand_literals(text, owner), "```", ""]


def _decorators(node: ast.FunctionDef) -> list[str]:
    return [ast.unparse(decorator) for decorator in node.decorator_list]


def _split(arguments: ast.arguments) -> list[str]:
    """Return each argument with its annotation and default, without ``self``."""
    missing = [None] * (len(arguments.args) - len(arguments.defaults))
    positional = list(zip(arguments.args, [*missing, *arguments.defaults], strict=True))
    keyword_only = list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    parts = [
        ast.unparse(item) + (f" = {ast.unparse(default)}" if default else "")
        for item, default in [*positional, *keyword_only]
    ]
    if keyword_only:
        parts.insert(len(positional), "*")
    return [part for part in parts if part not in ("self", "cls")]


def _expand_literals(text: str, owner) -> str:
    """Replace the names of ``Literal`` types by their choices."""
    for name, value in vars(sys.modules[owner.__module__]).items():
        if get_origin(value) is Literal:
            text = re.sub(rf"\b{name}\b", f"Literal{list(get_args(value))}", text)
    return text


def _prose(docstring: str | None) -> list[str]:
    """Convert a docstring to Markdown, with examples as code blocks."""
    lines: list[str] = []
    for paragraph in (docstring or "").split("\n\n"):
        if paragraph.startswith(">>>"):
            lines += ["```pycon", paragraph, "```", ""]
        elif paragraph:
            without_roles = re.sub(r":\w+:`([^`]+)`", r"`\1`", paragraph)
            lines += [without_roles.replace("``", "`"), ""]
    return lines


PAGES = {
    DOCS / "settings.md": settings_page,
    DOCS / "reference" / "commands.md": commands_page,
    DOCS / "reference" / "python.md": python_page,
}

if __name__ == "__main__":
    for path, page in PAGES.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(page(), encoding="utf-8")
