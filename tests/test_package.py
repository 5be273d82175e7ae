"""The package as a whole: what it exports, what it loads, and which module may import which."""

import ast
import doctest
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import fathomer
from fathomer import errors

SOURCE = Path(fathomer.__file__).parent

# A module imports only from what stands above it.
ORDER = [
    "errors", "config", "files",
    "text", "text.tokenizer", "text.vectors", "text.vocabulary",
    "data", "data.spool", "data.examples", "data.records", "data.readers", "data.demo", "data.batches",
    "data.layouts", "data.corpus", "data.catalogue", "data.amazon16", "data.places",
    "data.corpora", "data.pretrained", "data.download", "data.check", "data.survey", "data.doctor",
    "nn.graph", "nn.embedding", "nn.lstm", "nn.sequence", "nn.depth", "nn.steps", "nn.backward", "nn.slstm",
    "nn.pooling", "nn.interface", "nn.network", "nn", "nn.folded", "nn.int8", "nn.inference",
    "baselines.comparison", "baselines.spelling", "baselines.adasent", "baselines.bilstm", "baselines.capsule",
    "baselines.char_cnn", "baselines.dpcnn", "baselines.drnn", "baselines.fasttext", "baselines.rcrn",
    "baselines.region_embedding", "baselines.s_lstm", "baselines.swem", "baselines.text_cnn", "baselines.tfidf",
    "baselines.transformer", "baselines.star_transformer", "baselines", "baselines.sizes",
    "training", "training.reliability", "training.metrics", "training.schedule", "training.events",
    "training.prepare", "training.calibrate", "training.checkpoint", "training.loop",
    "card", "artifact", "recipes", "pages", "predictor", "tables", "report", "render", "threshold",
    "tracking", "fit", "estimator", "explain", "progress",
    "export.writer", "export.reading", "export.steps", "export", "hub", "tune",
    "serve", "serve.limits", "serve.batcher", "serve.metrics", "serve.schema", "serve.problems",
    "serve.body", "serve.gate", "serve.reference", "serve.worker", "serve.app", "serve.server",
    "lab", "lab.wire", "lab.hostile", "lab.served", "lab.load", "lab.workloads", "lab.machine",
    "lab.race", "lab.rivals", "lab.contestants", "lab.bench", "lab.charts", "lab.published",
    "lab.runs", "lab.experiments", "lab.clock", "lab.trial", "lab.crew",
    "lab.groups", "lab.tables", "lab.figures", "lab.claims", "lab.results", "lab.depths",
    "cli.options", "cli.output", "cli.scored", "cli.check", "cli.train", "cli.evaluate", "cli.predict",
    "cli.explain", "cli.threshold", "cli.data", "cli.serve", "cli.bench_serve", "cli.bench", "cli.experiment",
    "cli.models", "cli.export", "cli.tune", "cli",
    "__main__",
]  # fmt: skip


def modules() -> dict[str, Path]:
    """Name every module below the package by its path."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path) -> set[str]:
    """Name the modules of the package that a module imports, wherever in its text."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner.removeprefix("fathomer.") in ORDER else node.module)
    return {name.removeprefix("fathomer.") for name in found if name.startswith("fathomer.")}


def run(code: str) -> str:
    """Run code in a process of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_every_public_name_has_a_home_and_resolves():
    assert sorted(fathomer.__all__) == fathomer.__all__ == sorted(fathomer._HOMES)
    for name, home in fathomer._HOMES.items():
        found = getattr(fathomer, name)
        assert found is getattr(import_module(f"fathomer.{home}"), name)
        assert found.__module__ == f"fathomer.{home}"
        assert inspect.getdoc(found)
    assert {*fathomer.__all__, "__version__"} == set(dir(fathomer))


def test_type_checkers_see_the_same_names():
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("fathomer.")
        for alias in node.names
    }
    assert seen == {name: f"fathomer.{home}" for name, home in fathomer._HOMES.items()}


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'fathomer' has no attribute 'laod'"):
        fathomer.laod  # noqa: B018


@pytest.mark.parametrize(
    "module", ["fathomer", "fathomer.cli", "fathomer.config", "fathomer.recipes"]
)
def test_importing_stays_light(module):
    heavy = "{'torch', 'numpy', 'sklearn', 'tokenizers', 'safetensors', 'pooch', 'jaxtyping'}"
    assert run(f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_importing_the_package_loads_none_of_its_modules():
    code = "import sys, fathomer; print([m for m in sys.modules if m.startswith('fathomer.')])"
    assert run(code) == "[]"


def test_every_module_has_its_place_in_the_order():
    assert sorted(ORDER) == sorted(name for name in modules() if name)


@pytest.mark.parametrize("name", ORDER)
def test_a_module_imports_only_from_what_stands_above_it(name):
    above = set(ORDER[: ORDER.index(name)])
    assert imports_of(modules()[name]) <= above


def test_every_error_is_ours_and_a_builtin_one():
    found = {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and kind.__module__ == errors.__name__
    }
    assert len(found) > 5
    for name, kind in found.items():
        assert issubclass(kind, errors.FathomerError)
        assert name == "FathomerError" or any(
            base.__module__ == "builtins" and base not in (Exception, BaseException, object)
            for base in kind.__mro__
        ), name
        assert name in errors.__doc__, f"{name} is missing in the drawing"
        with pytest.raises(errors.FathomerError, match=r"^a line$"):
            raise kind("a line")


@pytest.mark.parametrize("name", [name for name in ORDER if name != "__main__"])
def test_the_examples_in_docstrings_run(name):
    try:
        module = import_module(f"fathomer.{name}")
    except (errors.MissingExtraError, ModuleNotFoundError) as error:
        if (error.name or "").startswith("fathomer"):
            raise
        pytest.skip(f"an extra is not installed ({error.name or error})")
    results = doctest.testmod(module)
    assert results.failed == 0


def test_there_are_examples_in_docstrings():
    assert doctest.testmod(import_module("fathomer.text.tokenizer")).attempted > 3
