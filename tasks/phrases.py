"""Count unclear phrases in docs, messages, docstrings and comments; `./run check` fails above the limit.

`python -m tasks.phrases` prints the counts and every hit. CONTRIBUTING.md ("Style") says what to write instead.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MAX_PER_1000_WORDS = 0.5
MIN_MESSAGE_WORDS = 3

PHRASES = {
    "nobody home": r"nobody home|\bwho asks\b|nobody can be asked|needs a person's consent|without a person\b"
    r"|nobody is (?:here|there)|for want of",
    "told of": r"\b(?:is|are|was|were|be|being) told(?: of| to you)?\b|\btells? (?:of|how|what|which|when)\b"
    r"|\b(?:is|are) said\b|\bsays so\b|\btold as\b",
    "since N s": r"\bsince (?:\d+|…|N) ?s\b|\bwhile it lasts\b",
    "mend": r"\bmend(?:s|ed|ing)?\b",
    "what destroys": r"\bwhat destroys\b|\bcommands that destroy\b|\bputs? something where it runs later\b",
    "may:": r"\bmay: |\bwhere they change nothing\b|\bnothing by itself\b|\bpass by itself\b",
    "laid aside": r"\b(?:laid|lays|left|put) aside\b|\bleft alone\b|\bleft in peace\b|\bset right\b|\bleft behind\b"
    r"|\bstays? behind\b",
    "stands": r"\bas (?:it|they) stands?\b|\bstands? (?:in|as|at|below|above|there|between|beside)\b"
    r"|(?<!soon )\bas it (?:is|was|came)\b|\bhow things stand\b",
    "is no X": r"(?<!there )(?<!There )\b(?:is|are|was|were) (?:no|none) (?!longer\b|more\b|less\b|one\b)[a-z]+",
    "whoever": r"\bwh(?:o|ich|om)ever\b|\bwhere(?:ver)? (?:it|they) lies?\b|\bwhere (?:they|it) lie\b"
    r"|\bof (?:ours|its own accord)\b|\ba process of ours\b",
    "counts": r"\bcounts? (?:over|alone|at once|everywhere|only|as|once|there|too)\b|\bcounts?[.,;]",
    "taken back": r"\btak(?:e|es|en|ing) (?:it |them |that |one |this )?back\b|\btook back\b|\bgiven? back\b"
    r"|\bgives it back\b|\bgoes? along\b|\b(?:go|goes|going|went) on with\b",
    "vouch": r"\bvouch(?:es|ed)?\b|\bstrangers?\b|\bguards\b|\bfaces?\b|\bthe house\b|\bhouse's\b|\bthe same door\b",
    "lest, but for": r"\blest\b|\bbut for\b|\ball the same\b|\bbefalls?\b|\bthereby\b|\banew\b|\bshall\b|\bheeds?\b"
    r"|\bhitherto\b",
    "takes no words": r"\btakes? no words\b|\bnone of (?:these|yours|ours)\b|\byours to\b|\bit has no title\b"
    r"|\bthat is to mend\b",
    "What … is …": r"(?:^|[.;:(] |\n)What (?!is |are |does |do |to |should |happens)[^?.;\n]{3,90} "
    r"(?:is|are|was|has|goes|comes|stays|counts|waits|can|cannot|may)\b",
}
PATTERN = re.compile("|".join(f"(?P<p{index}>{phrase})" for index, phrase in enumerate(PHRASES.values())))
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
BACKQUOTED = re.compile(r"``[^`]*``|`[^`]*`")
CODE_BLOCK = re.compile(r"^(?:```.*?^```|(?: {4}|\t).*?$)", re.DOTALL | re.MULTILINE)


class Text(NamedTuple):
    """A piece of prose and where it starts."""

    kind: str  # "docs", "messages" or "docstrings and comments"
    path: Path
    line: int
    content: str


class Hit(NamedTuple):
    """An unclear phrase and where it is."""

    path: Path
    line: int
    phrase: str


def docs_texts() -> Iterator[Text]:
    """Yield the Markdown pages without code blocks; `*.md` files in `src` are prompts and belong to the messages."""
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    for path in pages:
        yield Text("docs", path, 1, CODE_BLOCK.sub(_blank, path.read_text("utf-8")))
    for path in sorted((ROOT / "src").rglob("*.md")):
        yield Text("messages", path, 1, CODE_BLOCK.sub(_blank, path.read_text("utf-8")))


def source_texts() -> Iterator[Text]:
    """Yield docstrings, comments, and strings of at least three words from `src`."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        source = path.read_text("utf-8")
        yield from _comments(path, source)
        yield from _strings(path, ast.parse(source))


def find_hits(text: Text) -> Iterator[Hit]:
    """Yield every unclear phrase in a text, except in backquotes."""
    content = BACKQUOTED.sub(_blank, text.content)
    for match in PATTERN.finditer(content):
        yield Hit(text.path, text.line + content[: match.start()].count("\n"), match[0].strip())


def count_words(text: Text) -> int:
    """Return the number of words outside backquotes."""
    return len(WORD.findall(BACKQUOTED.sub(" ", text.content)))


def main() -> int:
    """Print every hit and the rate for each kind of text. Return 1 if one rate is above the limit."""
    words: dict[str, int] = {}
    hits: dict[str, list[Hit]] = {}
    for text in (*docs_texts(), *source_texts()):
        words[text.kind] = words.get(text.kind, 0) + count_words(text)
        hits.setdefault(text.kind, []).extend(find_hits(text))
    for kind, found in hits.items():
        for hit in found:
            sys.stdout.write(f"{hit.path.relative_to(ROOT)}:{hit.line}: {hit.phrase}\n")
        sys.stdout.write(f"{kind}: {len(found)} in {words[kind]:,} words, {_rate(found, words[kind]):.2f} per 1,000\n")
    return int(any(_rate(found, words[kind]) > MAX_PER_1000_WORDS for kind, found in hits.items()))


def _rate(found: list[Hit], words: int) -> float:
    return 1000 * len(found) / max(words, 1)


def _blank(match: "re.Match[str]") -> str:
    return "".join("\n" if char == "\n" else " " for char in match[0])


def _comments(path: Path, source: str) -> Iterator[Text]:
    """Yield comments; consecutive comment lines are one text."""
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] != last + 1:
            yield Text("docstrings and comments", path, first, "\n".join(block))
            block = []
        if not block:
            first = token.start[0]
        last = token.start[0]
        block.append(token.string.lstrip("#: "))
    if block:
        yield Text("docstrings and comments", path, first, "\n".join(block))


def _strings(path: Path, tree: ast.AST) -> Iterator[Text]:
    docstrings = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in docstrings:
            yield Text("docstrings and comments", path, node.lineno, node.value)
        elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and id(node) not in inside):
            content = _string_content(node)
            if len(WORD.findall(content)) >= MIN_MESSAGE_WORDS and " " in content:
                yield Text("messages", path, node.lineno, content)


def _string_content(node: ast.Constant | ast.JoinedStr) -> str:
    """Return the text of a string, with `…` for each value of an f-string."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)


def _has_docstring(node: ast.AST) -> bool:
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, owners) and ast.get_docstring(node, clean=False) is not None


if __name__ == "__main__":
    sys.exit(main())
