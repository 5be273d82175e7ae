"""Files that are whole or not there: atomic writing, and checksums."""

import hashlib
import os
import secrets
from pathlib import Path


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that it is either the old or the new one, even if the process is killed."""
    if isinstance(content, str):
        content = content.encode("utf-8", "replace")  # a lone surrogate has no UTF-8 form
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(path: Path) -> None:
    """Delete what a killed :func:`write_atomically` has left beside ``path``."""
    for leftover in path.parent.glob(f".{path.name}.*"):
        leftover.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
