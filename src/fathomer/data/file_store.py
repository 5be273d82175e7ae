"""Folders on a disk or behind a URL, for the files of a run on Ray."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fathomer.errors import DataError


@dataclass(frozen=True)
class FileStore:
    """A folder on a disk, or in a store that pyarrow or fsspec can open."""

    system: Any
    base: str

    def path(self, name: str) -> str:
        """Return the path of a file in the folder."""
        return f"{self.base}/{name}"

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return bool(self.system.get_file_info(self.path(name)).is_file)

    def names(self) -> list[str]:
        """Return the names of everything in the folder; none if there is no folder."""
        from pyarrow.fs import FileSelector

        selector = FileSelector(self.base, allow_not_found=True)
        return [info.base_name for info in self.system.get_file_info(selector)]

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with self.system.open_input_stream(self.path(name), compression=None) as file:
            return bytes(file.read())

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        self.system.create_dir(self.base, recursive=True)
        with self.system.open_output_stream(self.path(name), compression=None) as file:
            file.write(content)

    def write_tables(self, name: str, schema: Any, tables: Iterable[Any]) -> None:
        """Write tables as one parquet file, which gets its name when it is complete.

        Columns that a table lacks are empty.
        """
        import pyarrow.parquet

        path = PurePosixPath(self.path(name))
        self.system.create_dir(str(path.parent), recursive=True)
        # Two workers can write the same part, if one of them seems to be dead.
        growing = str(path.with_name(f"_{path.name}.{os.getpid()}"))
        with pyarrow.parquet.ParquetWriter(growing, schema, filesystem=self.system) as writer:
            for table in tables:
                parts = [schema.empty_table(), table]
                writer.write_table(pyarrow.concat_tables(parts, promote_options="permissive"))
        self.system.move(growing, str(path))

    def common_schema(self, names: Iterable[str]) -> Any:
        """Return all columns of some parquet files."""
        import pyarrow.parquet

        read = pyarrow.parquet.read_schema
        schemas = [read(self.path(name), filesystem=self.system) for name in names]
        return pyarrow.unify_schemas(schemas)

    def read_table(self, name: str) -> Any:
        """Read a parquet file."""
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(self.path(name), filesystem=self.system) as file:
            return file.read()

    def delete(self, name: str) -> None:
        """Delete a file or a folder, if it exists."""
        from pyarrow.fs import FileType

        info = self.system.get_file_info(self.path(name))
        if info.type == FileType.Directory:
            self.system.delete_dir(self.path(name))
        elif info.type == FileType.File:
            self.system.delete_file(self.path(name))


def absolute(address: str) -> str:
    """Return an address that means the same to every worker, whatever folder it runs in."""
    return address if "://" in address else str(Path(address).absolute())


def folder_of(address: str) -> FileStore:
    """Return the folder with a path or a URL."""
    from pyarrow.fs import FileSystem, FSSpecHandler, LocalFileSystem, PyFileSystem

    if "://" not in address:
        return FileStore(LocalFileSystem(), absolute(address))
    if address.startswith(("http://", "https://")):
        import fsspec

        handler = FSSpecHandler(fsspec.filesystem("http"))
        return FileStore(PyFileSystem(handler), address.rstrip("/"))
    try:
        system, base = FileSystem.from_uri(address)
    except (ValueError, OSError) as error:
        raise DataError(f"{address}: {str(error).splitlines()[0]}") from None
    return FileStore(system, base.rstrip("/"))
