"""Which files a search is about: globs and file types, as one linear-time test of paths."""

import re
from collections.abc import Sequence
from typing import Any

from ostler.core.errors import ToolError
from ostler.text.lazy_regex import lazy_regex

TYPES = {
    "c": "*.c *.h",
    "cpp": "*.cpp *.cc *.cxx *.hpp *.hh *.hxx *.h *.inl",
    "cs": "*.cs",
    "css": "*.css *.scss *.sass *.less",
    "dart": "*.dart",
    "docker": "Dockerfile *.dockerfile",
    "elixir": "*.ex *.exs",
    "go": "*.go",
    "haskell": "*.hs *.lhs",
    "html": "*.html *.htm",
    "java": "*.java",
    "js": "*.js *.jsx *.mjs *.cjs",
    "json": "*.json *.jsonc *.json5",
    "kotlin": "*.kt *.kts",
    "lua": "*.lua",
    "make": "Makefile makefile GNUmakefile *.mk",
    "md": "*.md *.mdx *.markdown",
    "php": "*.php",
    "proto": "*.proto",
    "py": "*.py *.pyi",
    "rb": "*.rb",
    "rst": "*.rst",
    "rust": "*.rs",
    "scala": "*.scala",
    "sh": "*.sh *.bash *.zsh",
    "sql": "*.sql",
    "svelte": "*.svelte",
    "swift": "*.swift",
    "toml": "*.toml",
    "ts": "*.ts *.tsx *.mts *.cts",
    "txt": "*.txt",
    "vue": "*.vue",
    "xml": "*.xml *.xsd *.xsl",
    "yaml": "*.yaml *.yml",
    "zig": "*.zig",
}
_TYPE_ALIASES = {
    "python": "py",
    "javascript": "js",
    "jsx": "js",
    "typescript": "ts",
    "tsx": "ts",
    "rs": "rust",
    "ruby": "rb",
    "golang": "go",
    "csharp": "cs",
    "c++": "cpp",
    "shell": "sh",
    "bash": "sh",
    "markdown": "md",
    "yml": "yaml",
}
_PLAIN_NAME = lazy_regex(r"(?:[\w.*?-]|\{[\w.*?,-]*\})+")
_PLAIN_ENDING = lazy_regex(r"[\w.-]+")
_MAX_GLOB_LENGTH = 1000


class FileFilter:
    """The files that globs and a type name; with neither, all of them."""

    def __init__(self, include: str = "", file_type: str = "") -> None:
        globs = split_globs(include)
        self._included = [glob for glob in globs if not glob.startswith("!")]
        self._excluded = [glob[1:] for glob in globs if glob.startswith("!")]
        self._type_globs = type_globs(file_type) if file_type else []
        tests = [(self._included, True), (self._excluded, False), (self._type_globs, True)]
        self._matchers = [(compile_globs(group), wanted) for group, wanted in tests if group]

    def matches(self, path: str, relative_path: str = "") -> bool:
        """Whether a file is meant, by its path from the root or from the folder that is searched."""
        if not self._matchers:
            return True
        names = [name.encode() for name in (path, relative_path) if name]
        return all(any(test.fullmatch(name) for name in names) is wanted for test, wanted in self._matchers)

    def name_globs(self) -> list[str]:
        """Globs of which the name of every file that is meant matches one."""
        return name_globs(self._included or self._type_globs)


def name_globs(globs: Sequence[str]) -> list[str]:
    """What globs say of names alone, if that can be told of each: a hint for a quicker search.

    One sign of a name as it is shown may be a part of one on the disk, so `?` says no more than `*`.
    """
    return [glob.rpartition("/")[2].replace("?", "*") for glob in globs] if all(map(_has_plain_name, globs)) else []


def _has_plain_name(glob: str) -> bool:
    name = glob.rpartition("/")[2]
    return bool(_PLAIN_NAME.fullmatch(name)) and "**" not in name and glob.count("{") == glob.count("}")


def plain_ending(glob: str) -> str:
    """What a path with a slash before it ends with, if that is all that a glob such as `**/*.py` or `a.py` asks for."""
    name = glob.removeprefix("**/")
    ending = name.removeprefix("*")
    if not _PLAIN_ENDING.fullmatch(ending):
        return ""
    return ending if name != ending else f"/{ending}"


def split_globs(text: str) -> list[str]:
    """Several globs in one text, parted by commas or blanks that stand outside braces and brackets."""
    pieces, depth, piece = [], 0, ""
    for char in text:
        depth += (char in "{[") - (char in "}]")
        if depth <= 0 and (char == "," or char.isspace()):
            pieces.append(piece)
            piece = ""
        else:
            piece += char
    return [piece for piece in [*pieces, piece] if piece and piece != "!"]


def type_globs(name: str) -> list[str]:
    """The globs of a file type, which may also be named by an extension."""
    wanted = name.strip().lstrip("*.").lower()
    globs = TYPES.get(_TYPE_ALIASES.get(wanted, wanted), "")
    if not globs and wanted.isalnum():
        return [f"*.{wanted}"]
    if not globs:
        raise ToolError(f"there is no file type {name!r}; give a glob in include, such as *.py", code="bad_pattern")
    return globs.split()


def compile_globs(globs: Sequence[str]) -> Any:
    """One expression for all globs, over the bytes of paths."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    for glob in globs:
        if ".." in glob.split("/"):
            raise ToolError(f"the glob {glob!r} leaves its folder; name the folder in path", code="bad_pattern")
        if len(glob) > _MAX_GLOB_LENGTH:
            raise ToolError(f"the glob {glob[:40]!r}… is too long", code="bad_pattern")
    try:
        return re2.compile("(?m)" + "|".join(f"^(?:{_glob_regex(glob)})$" for glob in globs), options)
    except re2.error:
        shown = ", ".join(globs)
        raise ToolError(f"{shown!r} is not a glob; write it as src/**/*.py", code="bad_pattern") from None


def _glob_regex(glob: str) -> str:
    """A glob as git reads one: without a slash it matches names at any depth, `*` stays in a folder, `**` does not."""
    anchored = glob.startswith(("/", "./"))
    glob = glob.removeprefix(".").lstrip("/") if anchored else glob
    if glob.endswith("/"):
        glob += "**"
    if not anchored and "/" not in glob:
        glob = f"**/{glob}"
    braces = glob.count("{") == glob.count("}")
    return "".join(_token_regex(found, braces) for found in _TOKENS.finditer(glob))


_TOKENS = lazy_regex(r"(?s)\*\*/|/\*\*$|\*+|\?|\[!?\]?[^\]/]*\]|[{},]|\\.|.")


def _token_regex(found: re.Match[str], braces_balanced: bool) -> str:
    piece = found.group()
    if piece in _TOKEN_REGEXES:
        return _TOKEN_REGEXES[piece]
    if piece in _BRACE_REGEXES and braces_balanced:
        inside = found.string.count("{", 0, found.start()) > found.string.count("}", 0, found.start())
        return _BRACE_REGEXES[piece] if piece != "," or inside else ","
    if piece[0] == "*":
        return r".*" if len(piece) > 1 else r"[^/\n]*"
    if piece[0] == "[" and len(piece) > 2:
        body = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return f"[^/{body[1:]}]" if body[0] in "!^" else f"[{body}]"
    return re.escape(piece[-1])


_TOKEN_REGEXES = {"**/": r"(?:.*/)?", "/**": r"/.+", "?": r"[^/\n]"}
_BRACE_REGEXES = {"{": "(?:", "}": ")", ",": "|"}
