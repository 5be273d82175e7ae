"""A file that is written in steps, and continued after the process was killed."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO, Self

from fathomer.errors import ConfigError, DataError, MissingFileError
from fathomer.files import keep_mode, leftovers_of, parse_json, sync_folder, write_atomically


class ResumableFile:
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
        self._digest = hashlib.sha256()
        self._write_notes(notes, size=0)  # first, so that a partial file always has notes
        self._file: BinaryIO = self.partial.open("xb")

    def _resume(self) -> dict[str, Any]:
        if not self.partial.exists():
            if self.path.exists():
                raise ConfigError(f"{self.path}: is complete; there is nothing to resume")
            raise MissingFileError(f"{self.partial}: nothing to resume; run without --resume")
        try:
            content = parse_json(self._notes_file.read_bytes())
            notes, size, digest = dict(content["notes"]), content["bytes"], content["sha256"]
            if content["notes_sha256"] != _digest_of(notes):
                raise ValueError("changed")
            with self.partial.open("rb") as file:
                self._digest = _digest_of_start(file, size)
            if self._digest.hexdigest() != digest:
                raise ValueError("changed")
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            message = f"{self.partial}: damaged; delete it and run without --resume"
            raise DataError(message) from None
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
        self._digest.update(content)
        self._write_notes(notes, size=self._file.tell())
        self.notes = notes

    def _write_notes(self, notes: dict[str, Any], *, size: int) -> None:
        content = {
            "notes": notes,
            "notes_sha256": _digest_of(notes),
            "bytes": size,
            "sha256": self._digest.hexdigest(),
        }
        write_atomically(self._notes_file, json.dumps(content))

    def finish(self) -> None:
        """Move the complete file to its final name."""
        self._file.close()
        keep_mode(self.path, self.partial)
        self.partial.replace(self.path)
        sync_folder(self.path.parent)
        self._notes_file.unlink(missing_ok=True)

    def discard(self) -> None:
        """Delete the partial file and its notes."""
        self._file.close()
        self.partial.unlink(missing_ok=True)
        self._notes_file.unlink(missing_ok=True)


def _digest_of(notes: dict[str, Any]) -> str:
    """Return the checksum of notes."""
    return hashlib.sha256(json.dumps(notes, sort_keys=True).encode()).hexdigest()


def _digest_of_start(file: BinaryIO, size: int) -> "hashlib._Hash":
    """Return the digest of the first ``size`` bytes of a file; raise ValueError if it has fewer."""
    digest, left = hashlib.sha256(), size
    while left:
        piece = file.read(min(left, 1 << 20))
        if not piece or left < 0:
            raise ValueError("too short")
        digest.update(piece)
        left -= len(piece)
    return digest
