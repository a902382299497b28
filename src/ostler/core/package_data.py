"""Reads the data files of this package, also from a zip file."""

import os

_ROOT = os.path.dirname(os.path.dirname(__file__))


def read_data(path: str) -> bytes:
    """Return the content of a file, given by its path below the package, such as `tools/read.md`."""
    content: bytes = __loader__.get_data(os.path.join(_ROOT, *path.split("/")))  # type: ignore[name-defined]
    return content


def read_text(path: str) -> str:
    """Return the text of a file, without white space around it."""
    return read_data(path).decode("utf-8").strip()


def file_names(folder: str, suffix: str) -> list[str]:
    """Return the sorted names, without `suffix`, of the files in a folder that end with it."""
    try:
        names = os.listdir(os.path.join(_ROOT, *folder.split("/")))
    except NotADirectoryError:  # in a zip file
        from importlib.resources import files  # imported late: slow

        names = [entry.name for entry in files("ostler").joinpath(folder).iterdir()]
    return sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix))
