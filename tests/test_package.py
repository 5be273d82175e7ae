"""The package as a whole: its exports, what importing it loads, and its docstring examples."""

import ast
import doctest
import inspect
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import pytest

import fathomer
from fathomer import errors
from tests.constraints import needed, pinned
from tests.tiny import tiny_artifact

SOURCE = Path(fathomer.__file__).parent
ROOT = Path(__file__).parents[1]


def modules() -> dict[str, Path]:
    """Return the path of every module of the package, by its name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def run(code: str) -> str:
    """Run code in a new process and return its output."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_every_public_name_can_be_imported_from_its_module():
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


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'fathomer' has no attribute 'laod'"):
        fathomer.laod  # noqa: B018


@pytest.mark.parametrize(
    "module", ["fathomer", "fathomer.cli", "fathomer.config", "fathomer.recipes"]
)
def test_importing_loads_no_heavy_packages(module):
    heavy = "{'torch', 'numpy', 'sklearn', 'tokenizers', 'safetensors', 'pooch', 'jaxtyping'}"
    assert run(f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_the_tasks_that_read_and_join_files_on_ray_load_no_pytorch():
    """Each of them is a process of its own, and importing PyTorch takes more than a second."""
    code = "import sys, fathomer.answer_dataset; print('torch' in sys.modules)"
    assert run(code) == "False"


def test_importing_the_package_loads_none_of_its_modules():
    code = "import sys, fathomer; print([m for m in sys.modules if m.startswith('fathomer.')])"
    assert run(code) == "[]"


def test_loading_a_model_does_not_load_the_compiler_of_pytorch(tmp_path):
    """It would double the time until the first answer."""
    tiny_artifact().save(tmp_path)
    code = f"import sys, fathomer; fathomer.load({str(tmp_path)!r}).predict(['good'])"
    assert run(f"{code}; print('torch._dynamo' in sys.modules)") == "False"


def test_every_error_is_a_fathomer_error_and_a_builtin_one():
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
        assert name in errors.__doc__, f"{name} is missing in the tree of the docstring"
        with pytest.raises(errors.FathomerError, match=r"^a line$"):
            raise kind("a line")


@pytest.mark.parametrize("name", [name for name in modules() if name and name != "__main__"])
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


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-q", "-w", tmp_path, ROOT], check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    names = ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if "dist-info" not in name} == {"fathomer"}
    for name in ("model/model.py", "data/datasets.toml", "recipes/demo.toml", "py.typed"):
        assert f"fathomer/{name}" in names
    unwanted = re.compile(r"lab/|rivals|benchmark|experiments|published|contestant")
    assert not [name for name in names if unwanted.search(name)]


def test_class_names_are_unique():
    folders = [SOURCE, ROOT / "experiments", ROOT / "benchmarks"]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    names = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    assert sorted(names) == sorted(set(names))


def test_no_module_is_long():
    """At most 340 lines each."""
    folders = [ROOT / "src", ROOT / "experiments", ROOT / "benchmarks"]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    assert len(files) > 100
    assert not [path for path in files if len(path.read_text("utf-8").splitlines()) > 340]


def test_every_package_is_pinned():
    """Also those that only other packages need; python -m tests.constraints writes the file."""
    assert set(needed()) <= set(pinned())


def test_the_cache_of_compiled_shapes_is_bounded():
    """It would grow with every new shape of a batch."""
    assert int(os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) <= 128
