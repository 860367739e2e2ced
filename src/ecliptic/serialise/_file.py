"""Opening what a tree is written to or read from."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

SUFFIX = ".eqx"


def with_suffix(path: str | os.PathLike[str], suffix: str = SUFFIX) -> Path:
    """The path with a suffix added if it has none of its own."""
    path = Path(path)
    return path if path.suffix else path.with_name(path.name + suffix)


@contextlib.contextmanager
def opened_for_reading(path_or_file: Any) -> Iterator[Any]:
    """Open a path for reading; pass a file through."""
    if isinstance(path_or_file, str | os.PathLike):
        with open(with_suffix(path_or_file), "rb") as f:
            yield f
    else:
        yield path_or_file


@contextlib.contextmanager
def opened_for_writing(path_or_file: Any) -> Iterator[Any]:
    """Open a path so that it gets the new contents whole or not at all; pass a file through."""
    if not isinstance(path_or_file, str | os.PathLike):
        yield path_or_file
        return
    # A link stays a link: the file that it points to is replaced.
    path = Path(os.path.realpath(with_suffix(path_or_file)))
    if path.exists() and not path.is_file():
        with open(path, "wb") as f:
            yield f
        return
    with _replaced(path) as f:
        yield f


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[IO[bytes]]:
    with written_beside(path) as beside, open(beside, "wb") as f:
        yield f


@contextlib.contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Give the path of an empty file to write; it takes the place of `path` at the end, whole."""
    # Beside the target, because a file can be renamed over another within one file system only.
    # Made by mode, not by `tempfile`, to give the file the permissions that any new file gets.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(beside, "xb") as f:
            mode = (path if path.exists() else beside).stat().st_mode
        yield beside
        # Opened anew: whoever wrote it may have put another file there.
        with open(beside, "r+b") as f:
            beside.chmod(stat.S_IMODE(mode))
            os.fsync(f.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # The renaming itself is on disk once the folder is. Not every system can open folders.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
