"""A map of the workspace for models that cannot explore it: files ranked by the words of a prompt.

The same files and the same prompt always give the same map. Ignored, sensitive, binary and very large files are not
read, and the numbers of files and bytes are limited.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from ostler.knowledge.checks import is_build_output
from ostler.knowledge.outlines import outline
from ostler.knowledge.source_folder import SourceFolder
from ostler.text.lazy_regex import lazy_regex
from ostler.text.redact import is_sensitive_file
from ostler.workspace.gitignore import IgnoreRules
from ostler.workspace.jail import DIRECTORY_FLAGS
from ostler.workspace.listing import walk_files

MAX_PATHS = 3000
MAX_FILES_READ = 400
MAX_FILE_BYTES = 48_000
MAX_TOTAL_BYTES = 1_500_000
MAX_NAMES_LENGTH = 160
FEW_FILES = 12
STEM_LENGTH = 7  # "environ" for "environment"

_WORD = lazy_regex(r"[A-Za-z][A-Za-z0-9]+")
_IDENTIFIER = lazy_regex(r"[A-Za-z_][A-Za-z0-9_]*")
_PARTS = lazy_regex(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_TEST_FILE = lazy_regex(r"(^|/)(tests?|spec|__tests__)/|(^|/)(test_[^/]*|[^/]*[_.](test|spec)\.[^/]*)$")
_ENTRY_FILE = lazy_regex(r"(^|/)(__main__|main|app|index|cli|server|lib|mod)\.[a-z]+$")
_README = lazy_regex(r"^readme(\.\w+)?$", re.IGNORECASE)
_IMPORT = lazy_regex(
    r"""^\s*(?:from|import)\s+([\w.]+)|(?:require\(|from\s+|import\s+)['"]([\w./-]+)['"]""", re.MULTILINE
)
_FILE_NAME = lazy_regex(
    r"(?<![\w./:@-])[\w-]+(?:/[\w.-]+)*\."
    r"(?:py|js|ts|tsx|jsx|json|md|txt|csv|ya?ml|toml|html?|css|sh|go|rs|java|c|h|cpp|cs|rb|php|sql|ini|cfg|xml)\b(?![\w(])"
)
_CONTROL = lazy_regex(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SKIPPED = (".lock", ".min.js", ".min.css", ".map", ".svg", ".pyc", "-lock.json", "-lock.yaml")
_RENAME = lazy_regex(
    r"\b(renam\w*|everywhere|all (the )?files|every file|each file|throughout|across)\b", re.IGNORECASE
)
_RENAMED = lazy_regex(
    r"\brename\s+(?:the\s+)?(?:(?:function|method|class|variable|constant|field|type|module|parameter|argument)\s+)?"
    r"[`'\"]?([A-Za-z_]\w*)[`'\"]?(?:\(\))?\s+(?:to|into|as)\s+[`'\"]?([A-Za-z_]\w*)\b(?!\.\w)",
    re.IGNORECASE,
)
# Words of prompts that say nothing about the subject.
_STOP_WORDS_TEXT = """
the and for with that this from into what which where when how why who does not are was were has have had its it's can
could should would will you your please make makes made add adds added fix fixes fixed change changes changed write
writes create creates set sets use uses used file files function functions method class code line lines project program
folder all any each every return returns give gives show shows name names named new old one two wrong bug error test
tests fails fail failing correct there their then than instead also only some such
"""
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())


class MapFile(msgspec.Struct, frozen=True):
    """A file of the workspace: its path, text and rank for a prompt."""

    path: str
    text: str
    score: float = 0.0
    is_named: bool = False


class RepoMap(msgspec.Struct, frozen=True):
    """The files of a workspace that were read, best first, and the paths of all files.

    `is_guess` means that no word of the prompt was found in a file.
    """

    files: list[MapFile] = msgspec.field(default_factory=list)
    paths: list[str] = msgspec.field(default_factory=list)
    is_guess: bool = False

    @property
    def total_size(self) -> int:
        """The characters of all files that were read, with their paths."""
        return sum(len(file.text) + len(file.path) + 16 for file in self.files)

    def select(self, prompt: str, budget: int) -> list[MapFile]:
        """Return the files to show completely for a prompt, within a budget of bytes."""
        named = [file for file in self.files if file.is_named]
        if _RENAME.search(prompt):
            symbols = prompt_symbols(prompt)
            named += [file for file in self.files if not file.is_named and _mentions(file.text, symbols)]
        best = self.files[0].score if self.files else 0.0
        chosen = named or [file for file in self.files if file.score > 0 and file.score >= best * 0.45][:4]
        shown: list[MapFile] = []
        for file in chosen:
            size = len(file.text.encode()) + len(file.path) + 16
            if size <= budget:
                shown.append(file)
                budget -= size
        return shown

    def render(self, shown: Sequence[MapFile], budget: int) -> str:
        """Return one line for each file that is not shown, with its top-level names, within a budget of bytes.

        In a large workspace, files without a word of the prompt are only counted.
        """
        paths = {file.path for file in shown}
        others = [file for file in self.files if file.path not in paths]
        listed = others if len(others) <= FEW_FILES else [file for file in others if file.score > 0]
        lines: list[str] = []
        for file in listed:
            names = "; ".join(outline(file.path, file.text).values())
            line = f"{file.path}: {names[:MAX_NAMES_LENGTH]}" if names else file.path
            budget -= len(line) + 1
            if budget < 0:
                break
            lines.append(line)
        hidden = len(self.paths) - len(paths) - len(lines)
        return "\n".join([*lines, *([f"and {hidden} more files"] if hidden else [])])


def build_map(root: str, prompt: str, hints: Iterable[str] = ()) -> RepoMap:
    """Read the workspace's files and rank them; `hints` are paths that a failed check names."""
    paths = _list_paths(root, prompt)
    if not paths:
        return RepoMap()
    words, symbols = _words(prompt), prompt_symbols(prompt)
    ordered = sorted(paths, key=lambda path: (-_path_score(path, prompt, words), path.count("/"), path))
    folder = SourceFolder(root, "project", [])
    files: list[MapFile] = []
    total = 0
    for path in ordered[:MAX_FILES_READ]:
        source = folder.read(path, MAX_FILE_BYTES)
        if source is None or _CONTROL.search(source.text) or total > MAX_TOTAL_BYTES:
            continue
        if source.size <= MAX_FILE_BYTES or names_path(prompt, path):
            total += min(source.size, MAX_FILE_BYTES)
            files.append(MapFile(path, source.text))
    hinted = frozenset(hints) | _tested_files(files, frozenset(hints))
    ranked = _rank(files, prompt, words, symbols, hinted)
    is_guess = not any(file.score for file in ranked) and not new_paths(prompt, ())
    if is_guess:
        ranked = _sorted(msgspec.structs.replace(file, score=_plain_score(file)) for file in ranked)
    return RepoMap(ranked, paths, is_guess)


def _tested_files(files: Sequence[MapFile], hints: frozenset[str]) -> frozenset[str]:
    """Return the files that the hinted test files import."""
    found = set()
    for test in files:
        if test.path in hints and is_test_file(test.path):
            modules = {
                name.strip("./").replace(".", "/").replace("//", "/")
                for pair in _IMPORT.findall(test.text)
                for name in pair
            }
            found |= {
                file.path
                for file in files
                if any(_is_module(file.path.rpartition(".")[0], module) for module in modules if module)
            }
    return frozenset(found)


def _is_module(stem: str, module: str) -> bool:
    stem = stem.removesuffix("/__init__")
    return stem == module or stem.endswith(f"/{module}") or module.endswith(f"/{stem}")


def _list_paths(root: str, prompt: str) -> list[str]:
    try:
        top = os.open(root, DIRECTORY_FLAGS | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        found = walk_files(top, "", IgnoreRules(), hidden=False, limit=MAX_PATHS)
        return [path for path in found if _is_listed(path, prompt)]
    finally:
        os.close(top)


def _is_listed(path: str, prompt: str) -> bool:
    """Return whether the map lists a file. A file that may contain secrets must be named in the prompt."""
    if not path.isprintable() or path.endswith(_SKIPPED) or is_build_output(path):
        return False
    return not is_sensitive_file(path) or names_path(prompt, path)


def _words(prompt: str) -> list[str]:
    """Return the stems of the words that say something, in order."""
    words = (part.lower() for word in _WORD.findall(prompt) for part in _PARTS.findall(word))
    return list(dict.fromkeys(_stem(word) for word in words if len(word) > 2 and word not in _STOP_WORDS))


def prompt_symbols(prompt: str) -> frozenset[str]:
    """Return the words that look like names in code: with an underscore, a capital inside, quotes or brackets."""
    quoted = re.findall(r"[`'\"]([A-Za-z_]\w*)[`'\"]|\b([A-Za-z_]\w*)\(", prompt)
    after = re.findall(r"\b(?:function|method|class|variable|constant|field|type|rename)\s+([A-Za-z_]\w*)", prompt)
    styled = re.findall(r"\b(?:\w*[a-z0-9]_\w+|[a-z]+[A-Z]\w*|[A-Z]\w*[a-z]\w*[A-Z]\w*|[A-Z][A-Z0-9_]{2,})\b", prompt)
    names = {name for pair in quoted for name in pair if name} | {*after} | {*styled}
    return frozenset(name for name in names if name.lower() not in _STOP_WORDS)


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ions", "ion", "ies", "ers", "ed", "es", "er", "ly", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)][:STEM_LENGTH]
    return word[:STEM_LENGTH]


def _stems(text: str) -> frozenset[str]:
    return frozenset(_stem(part.lower()) for word in _IDENTIFIER.findall(text) for part in _PARTS.findall(word))


def _contained(words: Sequence[str], text: str) -> list[str]:
    """Return the words with which a word or a part of a name in the text starts."""
    lower = text.lower()
    found = []
    for word in words:
        if word in lower and re.search(rf"(?<![A-Za-z])(?i:{word})|(?<=[a-z0-9]){word.capitalize()}", text):
            found.append(word)
    return found


def names_path(prompt: str, path: str) -> bool:
    """Return whether a prompt names a file by its path, or by its name if that has an extension."""
    name = path.rpartition("/")[2]
    for candidate in (path, *([name] if "." in name else [])):
        if re.search(rf"(?<![\w./-]){re.escape(candidate)}(?![\w/-])(?!\.\w)", prompt):
            return True
    return False


def new_paths(prompt: str, existing: Iterable[str]) -> list[str]:
    """Return the file names in a prompt that do not exist."""
    known = [*existing]
    names = dict.fromkeys(name.rstrip(".") for name in _FILE_NAME.findall(prompt))
    return [name for name in names if not any(path == name or path.endswith(f"/{name}") for path in known)]


def _path_score(path: str, prompt: str, words: Sequence[str]) -> float:
    stems = _stems(path)
    return (1000.0 if names_path(prompt, path) else 0.0) + sum(8.0 for word in words if word in stems)


def _rank(
    files: Sequence[MapFile], prompt: str, words: Sequence[str], symbols: frozenset[str], hints: frozenset[str]
) -> list[MapFile]:
    contained = [_contained(words, file.text) for file in files]
    counts = Counter(word for found in contained for word in found)
    asks_tests = re.search(r"\btests?\b", prompt, re.IGNORECASE) is not None
    ranked: list[MapFile] = []
    for file, found in zip(files, contained, strict=True):
        mentions = _mentions(file.text, symbols)
        names = outline(file.path, file.text) if found or mentions else {}
        defined = _stems(" ".join(names))
        score = _path_score(file.path, prompt, words)
        score += 400.0 * (file.path in hints)
        score += sum(40.0 for symbol in symbols if symbol in names) + 15.0 * mentions
        score += sum(6.0 for word in words if word in defined)
        score += sum(3.0 * math.log(1 + len(files) / counts[word]) for word in found)
        if score and is_test_file(file.path) and not asks_tests:
            score *= 0.5
        ranked.append(msgspec.structs.replace(file, score=score, is_named=names_path(prompt, file.path)))
    return _sorted(ranked)


def _sorted(files: Iterable[MapFile]) -> list[MapFile]:
    return sorted(files, key=lambda file: (-file.score, file.path.count("/"), file.path))


def _plain_score(file: MapFile) -> float:
    """Return the rank of a file for a prompt whose words occur nowhere, such as "what does this project do?"."""
    if _README.match(file.path):
        return 10.0
    if is_test_file(file.path):
        return 1.0
    return 6.0 if _ENTRY_FILE.search(file.path) else 3.0 / (1 + file.path.count("/"))


def renamed_symbols(prompt: str) -> tuple[str, str] | None:
    """Return the old and the new name if a prompt asks to rename a name in the code."""
    match = _RENAMED.search(prompt)
    return (match[1], match[2]) if match else None


def files_with(files: Iterable[MapFile], symbol: str) -> list[str]:
    """Return the paths of the files that contain a name."""
    return [file.path for file in files if _mentions(file.text, frozenset([symbol]))]


def is_test_file(path: str) -> bool:
    """Return whether a file contains tests, judged by its path."""
    return _TEST_FILE.search(path) is not None


def _mentions(text: str, symbols: frozenset[str]) -> bool:
    return any(symbol in text and re.search(rf"\b{re.escape(symbol)}\b", text) for symbol in symbols)
