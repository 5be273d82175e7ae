"""Files that are complete or absent: atomic writes, resumable writes, and checksums."""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from fathomer.errors import ConfigError, DataError, MissingFileError


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace a file in one step: even if the process is killed, it is either old or new."""
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes | str]) -> None:
    """Write several files; none is replaced before all of them are on disk.

    Symbolic links are followed. Pipes and devices are written to directly.
    """
    temporaries: dict[Path, Path] = {}
    path = Path()
    try:
        for path, content in contents.items():
            # Lone surrogates cannot be encoded as UTF-8.
            data = content.encode("utf-8", "replace") if isinstance(content, str) else content
            if _is_special(path):
                path.write_bytes(data)
                continue
            target = real_path(path)
            temporaries[target] = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
            with temporaries[target].open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for path, temporary in temporaries.items():
            temporary.replace(path)
    except BaseException as error:
        for temporary in temporaries.values():
            with suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # not the temporary name
        raise


def real_path(path: Path) -> Path:
    """Return the target of a symbolic link, so that a write replaces the file and not the link."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _is_special(path: Path) -> bool:
    """Whether a path is a pipe or a device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def check_writable(path: Path) -> None:
    """Raise an error, before the work is done, if its result could not be written to ``path``."""
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder; name a file")
    if _is_special(path):
        return
    target = real_path(path)
    probe = target.with_name(f".{target.name}.probe")
    try:
        write_atomically(probe, "")
        probe.unlink()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None


def leftovers_of(path: Path) -> list[Path]:
    """Return the temporary files that a killed :func:`write_atomically` left next to ``path``."""
    named = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}")
    return [file for file in path.parent.glob(".*") if named.fullmatch(file.name)]


class GrowingFile:
    """A file that is written in steps and can be resumed after the process was killed.

    It has a temporary name until it is complete. A file of notes next to it records the progress
    after each step; on resuming, anything written after the last notes is truncated.
    """

    def __init__(self, path: Path, notes: dict[str, Any], *, resume: bool) -> None:
        self.path = path
        self.partial = path.with_name(f"{path.name}.partial")
        self._notes_file = path.with_name(f"{path.name}.partial.json")
        for leftover in leftovers_of(self._notes_file):
            leftover.unlink(missing_ok=True)
        if resume:
            self.notes = self._resume()
        else:
            self._start(notes)
            self.notes = notes

    def _start(self, notes: dict[str, Any]) -> None:
        if self.partial.exists():
            raise ConfigError(
                f"{self.partial}: left from a run that was stopped; continue it with --resume, "
                "or delete the file"
            )
        self._write_notes(notes, size=0)  # first, so that a partial file always has notes
        self._file: BinaryIO = self.partial.open("xb")

    def _resume(self) -> dict[str, Any]:
        if not self.partial.exists():
            if self.path.exists():
                raise ConfigError(f"{self.path}: is complete; there is nothing to resume")
            raise MissingFileError(f"{self.partial}: nothing to resume; run without --resume")
        try:
            content = json.loads(self._notes_file.read_bytes())
            notes, size = dict(content["notes"]), int(content["bytes"])
        except (OSError, ValueError, KeyError, TypeError):
            size, notes = 1 << 63, {}
        if size > self.partial.stat().st_size:
            raise DataError(f"{self.partial}: damaged; delete it and run without --resume")
        self._file = self.partial.open("r+b")
        self._file.truncate(size)
        self._file.seek(size)
        return notes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, content: bytes, notes: dict[str, Any]) -> None:
        """Write one step; if the process is killed meanwhile, the previous steps stay."""
        try:
            self._file.write(content)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            error.filename = str(self.partial)
            raise
        self._write_notes(notes, size=self._file.tell())
        self.notes = notes

    def _write_notes(self, notes: dict[str, Any], *, size: int) -> None:
        write_atomically(self._notes_file, json.dumps({"notes": notes, "bytes": size}))

    def finish(self) -> None:
        """Move the complete file to its final name."""
        self._file.close()
        self.partial.replace(self.path)
        self._notes_file.unlink(missing_ok=True)

    def discard(self) -> None:
        """Delete the partial file and its notes."""
        self._file.close()
        self.partial.unlink(missing_ok=True)
        self._notes_file.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
