"""Files that are complete or absent: atomic writes, checksums, and strict JSON."""

import ctypes
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from fathomer.errors import ConfigError


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
            _write_synced(temporaries[target], data)
        for path, temporary in temporaries.items():
            keep_mode(path, temporary)
            temporary.replace(path)
        for folder in {path.parent for path in temporaries}:
            sync_folder(folder)
    except BaseException as error:
        for temporary in temporaries.values():
            with suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # not the temporary name
        raise


def keep_mode(old: Path, new: Path) -> None:
    """Copy the permissions of a file to the one that will replace it."""
    with suppress(FileNotFoundError):
        new.chmod(stat.S_IMODE(old.stat().st_mode))


def _write_synced(path: Path, content: bytes) -> None:
    """Write a new file, and wait until it is on disk."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the system supports that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def replace_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Replace files of a folder all at once, and keep its other files.

    A new folder is written beside the old one and takes its place in one step. Where the system
    cannot do that, the files are replaced one after another.
    """
    folder = Path(os.path.realpath(folder))
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
        for name, content in contents.items():
            _write_synced(fresh / name, content)
        if not _put_in_place(fresh, folder, contents):
            folder.mkdir(exist_ok=True)
            write_together({folder / name: content for name, content in contents.items()})
    except OSError as error:
        if error.filename is None or str(fresh) in str(error.filename):
            error.filename = str(folder)  # not the temporary name
        raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    sync_folder(folder.parent)


def _put_in_place(fresh: Path, folder: Path, contents: Mapping[str, bytes]) -> bool:
    """Replace a folder by a new one; return False if the file system does not allow it."""
    if not folder.exists():
        fresh.rename(folder)
        return True
    if Path.cwd().is_relative_to(folder):  # this process would be left in the old one
        return False
    others = [path for path in folder.iterdir() if path.name not in contents]
    try:
        for path in others:
            if not path.is_dir():
                os.link(path, fresh / path.name, follow_symlinks=False)
        shutil.copymode(folder, fresh)
    except OSError:  # a file system without links
        return False
    sync_folder(fresh)
    if not _exchange(fresh, folder):
        return False
    for path in others:
        if (fresh / path.name).is_dir():
            (fresh / path.name).rename(path)
    return True


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step, as only Linux can; return whether it worked."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


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


def parse_json(content: bytes | str) -> Any:
    """Parse JSON from an unknown source; raise ValueError if it is nested too deeply or not finite.

    >>> parse_json('{"loss": NaN}')
    Traceback (most recent call last):
    ...
    ValueError: the number NaN is not finite
    """

    def refuse(text: str) -> NoReturn:
        raise ValueError(f"the number {text[:40]} is not finite")

    def finite(text: str) -> float:
        return number if math.isfinite(number := float(text)) else refuse(text)

    try:
        return json.loads(content, parse_constant=refuse, parse_float=finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
