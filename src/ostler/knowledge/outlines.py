"""Lists the top-level names of a source file with their signatures, found with regular expressions."""

import re
from collections.abc import Mapping

from ostler.text.lazy_regex import lazy_regex

MAX_NAMES = 40
MAX_SIGNATURE = 100

_PYTHON = r"^(?P<sig>(?:async )?def (?P<name>\w+)\([^)]*\)?|class (?P<name2>\w+)|(?P<name3>[A-Z][A-Z0-9_]+)(?= *[:=]))"
_SCRIPT = (
    r"^(?P<sig>(?:export )?(?:default )?(?:async )?function\*? (?P<name>\w+)\([^)]*\)?"
    r"|(?:export )?(?:default )?(?:abstract )?(?:class|interface|type|enum) (?P<name2>\w+)"
    r"|(?:export )?(?:const|let|var) (?P<name3>\w+))"
)
_GO = r"^(?P<sig>func (?:\([^)]*\) )?(?P<name>\w+)\([^)]*\)?|type (?P<name2>\w+)|(?:var|const) (?P<name3>\w+))"
_RUST = (
    r"^(?P<sig>(?:pub(?:\([^)]*\))? )?(?:async )?fn (?P<name>\w+)[^{;]*"
    r"|(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|mod|type) (?P<name2>\w+)"
    r"|(?:pub(?:\([^)]*\))? )?(?:const|static) (?P<name3>\w+))"
)
_BRACES = (
    r"^\s{0,4}(?P<sig>(?:(?:public|private|protected|internal|static|final|abstract|inline|virtual|const|unsigned) )*"
    r"(?:(?:class|interface|enum|struct|record|namespace) (?P<name2>\w+)|[\w<>\[\],*&:]+[ *&]+(?P<name>\w+)\([^;)]*\))"
    r"(?P<name3>)(?=[^;]*\{))"
)
_RUBY = r"^\s{0,2}(?P<sig>def (?P<name>[\w.?!]+)(?:\([^)]*\))?|(?:class|module) (?P<name2>[\w:]+))(?P<name3>)"
_SHELL = r"^(?P<sig>(?:function )?(?P<name>[\w-]+) ?\(\)|(?P<name2>[A-Z][A-Z0-9_]+)(?==))(?P<name3>)"
_MARKDOWN = r"^(?P<sig>#{1,3} (?P<name>.+?))(?P<name2>)(?P<name3>)$"
_BY_LANGUAGE: Mapping[str, tuple[str, str]] = {
    "python": (_PYTHON, "py pyi"),
    "script": (_SCRIPT, "js jsx ts tsx mjs cjs vue svelte"),
    "go": (_GO, "go"),
    "rust": (_RUST, "rs"),
    "braces": (_BRACES, "java kt kts scala groovy c h cc cpp cxx hpp cs php swift"),
    "ruby": (_RUBY, "rb"),
    "shell": (_SHELL, "sh bash"),
    "markdown": (_MARKDOWN, "md"),
}
_PATTERNS = {
    ending: lazy_regex(pattern, re.MULTILINE)
    for pattern, endings in _BY_LANGUAGE.values()
    for ending in endings.split()
}


def outline(path: str, text: str) -> dict[str, str]:
    """Return the signature of each top-level name, in order; empty for languages that are not known."""
    pattern = _PATTERNS.get(path.rpartition(".")[2].lower())
    found: dict[str, str] = {}
    for match in pattern.finditer(text) if pattern else ():
        name = match["name"] or match["name2"] or match["name3"]
        if name and name not in found:
            found[name] = " ".join(match["sig"].split())[:MAX_SIGNATURE]
        if len(found) >= MAX_NAMES:
            break
    return found
