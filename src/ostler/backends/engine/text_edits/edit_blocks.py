"""Finds edits in the text of an answer: files in code blocks, complete or as search-and-replace blocks."""

import re
from collections.abc import Collection, Sequence

import msgspec

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_SEARCH, _DIVIDER, _REPLACE = (
    re.compile(rf"^{sign}{{5,9}}\s*{word}\s*$") for sign, word in (("<", "SEARCH"), ("=", ""), (">", "REPLACE"))
)
_PATH = re.compile(r"[\w@+-][\w./@+-]*\.[A-Za-z][A-Za-z0-9]{0,9}|(?:[\w@+-]+/)+[\w.@+-]+|Makefile|Dockerfile")
_LEADING_PATH_COMMENT = re.compile(
    r"^\s*(?:#|//|--|;|/\*|<!--|\"\"\")\s*(?:file(?:name)?:\s*)?(\S+?)\s*(?:\*/|-->|\"\"\")?\s*$", re.IGNORECASE
)
_DECORATION = re.compile(r"[*`#>:\"'()\[\]]+|^\s*(?:[-+]|\d+\.)\s|\b(?:file|path|filename)\b", re.IGNORECASE)
_OUTPUT_LANGUAGES = frozenset(
    ["bash", "sh", "shell", "console", "zsh", "output", "diff", "patch", "log", "terminal", "powershell", "cmd"]
)
_LANGUAGE_ENDINGS = {
    "python": "py pyi", "py": "py pyi", "javascript": "js mjs cjs jsx", "js": "js mjs cjs jsx", "typescript": "ts tsx",
    "ts": "ts tsx", "json": "json", "yaml": "yml yaml", "yml": "yml yaml", "toml": "toml", "markdown": "md", "md": "md",
    "html": "html htm", "css": "css", "go": "go", "rust": "rs", "java": "java", "c": "c h", "cpp": "cpp cc h hpp",
    "csv": "csv", "sql": "sql", "ruby": "rb", "php": "php", "xml": "xml svg", "ini": "ini cfg", "csharp": "cs",
}  # fmt: skip


class Replace(msgspec.Struct, frozen=True):
    """One search-and-replace block."""

    old: str
    new: str


class EditBlock(msgspec.Struct, frozen=True):
    """A code block that belongs to a file: new content, or replacements. `path` is empty if no file was named."""

    path: str
    content: str = ""
    replaces: tuple[Replace, ...] = ()
    language: str = ""
    is_closed: bool = True


class _Fence(msgspec.Struct, frozen=True):
    before: Sequence[str]
    info: str
    lines: Sequence[str]
    is_closed: bool


def find_blocks(text: str, known: Collection[str]) -> list[EditBlock]:
    """Return the edits in an answer, in order. `known` are the paths of the workspace's files.

    A block belongs to the file that its opening line, the line before it, or a comment in its first line names.
    Blocks with commands or output are skipped.
    """
    blocks: list[EditBlock] = []
    pending = ""
    for fence in _find_fences(text):
        if len(fence.lines) == 1 and (alone := _as_path(fence.lines[0], known)):
            pending = alone  # a path in a block of its own belongs to the next block
            continue
        words = fence.info.replace(":", " ").replace("=", " ").replace('"', " ").split()
        language = words[0].lower() if words and not _PATH.fullmatch(words[0]) else ""
        path = (
            next((found for word in words if (found := _as_path(word, known))), "")
            or _path_before(fence.before, known)
            or pending
        )
        pending = ""
        lines = fence.lines
        if lines and (comment := _LEADING_PATH_COMMENT.match(lines[0])) and (named := _as_path(comment[1], known)):
            path, lines = path or named, lines[1:] if not path or named == path else lines
        if not path and language in _OUTPUT_LANGUAGES:
            continue
        content = "\n".join(lines)
        replaces = _find_replaces(lines)
        blocks.append(EditBlock(path, content, replaces, language, fence.is_closed))
    return blocks


def fits_language(block: EditBlock, path: str) -> bool:
    """Return whether a block's language may be that of a file."""
    endings = _LANGUAGE_ENDINGS.get(block.language, "")
    return not endings or path.rpartition(".")[2].lower() in endings.split()


def _find_fences(text: str) -> list[_Fence]:
    """Return the fenced blocks. A longer fence may contain shorter ones; a block in a list is indented."""
    fences: list[_Fence] = []
    before: list[str] = []
    inside: list[str] | None = None
    indent, mark, info = "", "", ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if inside is None:
            if match:
                indent, mark, info, inside = match[1], match[2], match[3].strip(), []
            else:
                before.append(line)
        elif match and match[2].startswith(mark) and not match[3].strip() and len(match[1]) <= len(indent):
            fences.append(_Fence(before, info, inside, is_closed=True))
            before, inside = [], None
        else:
            inside.append(line.removeprefix(indent))
    if inside is not None:
        fences.append(_Fence(before, info, inside, is_closed=False))
    return fences


def _path_before(lines: Sequence[str], known: Collection[str]) -> str:
    """Return the path that the text before a block names: alone on the last line, or as the only one there."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return ""
    alone = _as_path(_DECORATION.sub(" ", filled[-1]).strip(), known)
    if alone:
        return alone
    for line in reversed(filled[-3:]):
        paths = dict.fromkeys(found for word in _PATH.findall(line) if (found := _as_path(word, known, strict=True)))
        if paths:
            return next(iter(paths)) if len(paths) == 1 else ""
    return ""


def _as_path(word: str, known: Collection[str], *, strict: bool = False) -> str:
    """Return the path that a word names, or an empty string. With `strict`, only of existing files."""
    word = word.strip("`*\"'():,").removeprefix("./")
    if word in known:
        return word
    matches = [path for path in known if path.endswith(f"/{word}") or word.endswith(f"/{path}")] if word else []
    if len(matches) == 1:
        return matches[0]
    is_path = _PATH.fullmatch(word) is not None and not re.fullmatch(r"[\d.]+|\w+\.\w+\(.*|e\.g|i\.e", word)
    return word if is_path and not strict and not matches else ""


def _find_replaces(lines: Sequence[str]) -> tuple[Replace, ...]:
    """Return the search-and-replace blocks among the lines; none if a marker is missing."""
    found: list[Replace] = []
    old: list[str] = []
    new: list[str] = []
    state = ""
    for line in lines:
        if not state and _SEARCH.match(line):
            state, old, new = "old", [], []
        elif state == "old" and _DIVIDER.match(line):
            state = "new"
        elif state == "new" and _REPLACE.match(line):
            found.append(Replace("\n".join(old), "\n".join(new)))
            state = ""
        elif state:
            (old if state == "old" else new).append(line)
    return () if state else tuple(found)
