"""Pin every package that Fathomer needs, also indirectly: python -m tests.constraints

The versions are those that are installed. Lines of packages that are not needed here, on this
version of Python, are kept. Run it after ``pip install -c constraints.txt -e '.[dev]'``.
"""

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

FILE = Path(__file__).parent.parent / "constraints.txt"


def canonical(name: str) -> str:
    """Return a package's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(name: str = "fathomer", extras: frozenset[str] = frozenset({"dev"})) -> dict[str, str]:
    """Return the versions of all packages that a package needs."""
    found: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(name, extras)]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        found[canonical(name)] = package.version.partition("+")[0]
        for line in package.requires or ():
            wanted = Requirement(line)
            if any(_applies(wanted, extra) for extra in ("", *extras)):
                waiting.append((canonical(wanted.name), frozenset(wanted.extras)))
    del found["fathomer"]
    return found


def _applies(wanted: Requirement, extra: str) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": extra})


def pinned() -> dict[str, str]:
    """Return the versions in ``constraints.txt``."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


if __name__ == "__main__":
    versions = {**pinned(), **needed()}
    head = "# Versions that are known to work together: pip install -c constraints.txt ...\n"
    head += "# Written by python -m tests.constraints\n"
    lines = [f"{name}=={versions[name]}\n" for name in sorted(versions)]
    FILE.write_text(head + "".join(lines), encoding="utf-8")
