"""Compiles globs and file types into one path filter."""

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from ostler.core.errors import ToolError
from ostler.core.package_data import read_text
from ostler.text.lazy_regex import lazy_regex

_PLAIN_NAME = lazy_regex(r"(?:[\w.*?-]|\{[\w.*?,-]*\})+")
_PLAIN_ENDING = lazy_regex(r"[\w.-]+")
_MAX_GLOB_LENGTH = 1000


class FileFilter:
    """Matches files by globs and a file type; without either it matches all files."""

    def __init__(self, include: str = "", file_type: str = "") -> None:
        globs = split_globs(include)
        self._included = [glob for glob in globs if not glob.startswith("!")]
        self._excluded = [glob[1:] for glob in globs if glob.startswith("!")]
        self._type_globs = type_globs(file_type) if file_type else []
        tests = [(self._included, True), (self._excluded, False), (self._type_globs, True)]
        self._matchers = [(compile_globs(group), expected) for group, expected in tests if group]

    def matches(self, path: str, relative_path: str = "") -> bool:
        """Return whether a file matches, by its path or by its path relative to the searched folder."""
        if not self._matchers:
            return True
        names = [name.encode() for name in (path, relative_path) if name]
        return all(any(test.fullmatch(name) for name in names) is expected for test, expected in self._matchers)

    def name_globs(self) -> list[str]:
        """Return globs such that the name of every matching file matches one of them."""
        return name_globs(self._included or self._type_globs)


def name_globs(globs: Sequence[str]) -> list[str]:
    """Return the file name parts of globs, for a faster search; none if one of them is too complex.

    `?` becomes `*`, because a displayed character may be only a part of one on disk.
    """
    return [glob.rpartition("/")[2].replace("?", "*") for glob in globs] if all(map(_has_plain_name, globs)) else []


def _has_plain_name(glob: str) -> bool:
    name = glob.rpartition("/")[2]
    return bool(_PLAIN_NAME.fullmatch(name)) and "**" not in name and glob.count("{") == glob.count("}")


def plain_ending(glob: str) -> str:
    """Return the suffix that is equivalent to a glob such as `**/*.py` or `a.py`, or an empty string."""
    name = glob.removeprefix("**/")
    ending = name.removeprefix("*")
    if not _PLAIN_ENDING.fullmatch(ending):
        return ""
    return ending if name != ending else f"/{ending}"


def split_globs(text: str) -> list[str]:
    """Split globs at commas and whitespace outside braces and brackets."""
    globs, depth, glob = [], 0, ""
    for char in text:
        depth += (char in "{[") - (char in "}]")
        if depth <= 0 and (char == "," or char.isspace()):
            globs.append(glob)
            glob = ""
        else:
            glob += char
    return [glob for glob in [*globs, glob] if glob and glob != "!"]


def type_globs(name: str) -> list[str]:
    """Return the globs of a file type or extension."""
    key = name.strip().lstrip("*.").lower()
    globs = _file_types().get(key, "")
    if not globs and key.isalnum():
        return [f"*.{key}"]
    if not globs:
        raise ToolError(f"unknown file type {name!r}; use a glob in include, such as *.py", code="bad_pattern")
    return globs.split()


@cache
def _file_types() -> dict[str, str]:
    """Return the globs of the known file types, by each of their names."""
    types: dict[str, str] = json.loads(read_text("tools/file_types.json"))
    return {name: globs for names, globs in types.items() for name in names.split()}


def compile_globs(globs: Sequence[str]) -> Any:
    """Compile globs to one regular expression over the bytes of paths. Raises `ToolError`."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    for glob in globs:
        if ".." in glob.split("/"):
            raise ToolError(f"the glob {glob!r} contains ..; give the folder as path", code="bad_pattern")
        if len(glob) > _MAX_GLOB_LENGTH:
            raise ToolError(f"the glob {glob[:40]!r}… is too long", code="bad_pattern")
    try:
        return re2.compile("(?m)" + "|".join(f"^(?:{_glob_regex(glob)})$" for glob in globs), options)
    except re2.error:
        text = ", ".join(globs)
        raise ToolError(f"{text!r} is not a glob; write it as src/**/*.py", code="bad_pattern") from None


def _glob_regex(glob: str) -> str:
    """Translate a glob as git does: without a slash it matches at any depth; `**` crosses folders, `*` does not."""
    anchored = glob.startswith(("/", "./"))
    glob = glob.removeprefix(".").lstrip("/") if anchored else glob
    if glob.endswith("/"):
        glob += "**"
    if not anchored and "/" not in glob:
        glob = f"**/{glob}"
    braces_balanced = glob.count("{") == glob.count("}")
    return "".join(_token_regex(match, braces_balanced) for match in _TOKENS.finditer(glob))


_TOKENS = lazy_regex(r"(?s)\*\*/|/\*\*$|\*+|\?|\[!?\]?[^\]/]*\]|[{},]|\\.|.")


def _token_regex(match: re.Match[str], braces_balanced: bool) -> str:
    token = match.group()
    if token in _TOKEN_REGEXES:
        return _TOKEN_REGEXES[token]
    if token in _BRACE_REGEXES and braces_balanced:
        inside = match.string.count("{", 0, match.start()) > match.string.count("}", 0, match.start())
        return _BRACE_REGEXES[token] if token != "," or inside else ","
    if token[0] == "*":
        return r".*" if len(token) > 1 else r"[^/\n]*"
    if token[0] == "[" and len(token) > 2:
        body = token[1:-1].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return f"[^/{body[1:]}]" if body[0] in "!^" else f"[{body}]"
    return re.escape(token[-1])


_TOKEN_REGEXES = {"**/": r"(?:.*/)?", "/**": r"/.+", "?": r"[^/\n]"}
_BRACE_REGEXES = {"{": "(?:", "}": ")", ",": "|"}
