"""Which SQL changes or drops what is in a database, and what a database shell does beside SQL."""

import re

_CHANGES = re.compile(
    r"\b(?:drop\s+\w|truncate\s|delete\s+from|update\s+[^;]{1,500}?\sset\s|alter\s+\w|replace\s+into"
    r"|insert\s+or\s+replace|grant\s|revoke\s"
    r"|vacuum\s+into|reindex|copy\s[^;]{0,500}?\sto\s|into\s+(?:outfile|dumpfile)|load_extension|writefile\s*\("
    r"|edit\s*\(|rename\s+to)",
    re.IGNORECASE,
)
_DOT = re.compile(
    r"^\s*\.(?:sh\w*|sys\w*|ou\w*|on\w*|sav\w*|ba\w*|cl\w+|ex\w*|im\w*|lo\w*|ar\w*|res\w*|rea?d?\s*[|'\"]|open\s+-)",
    re.IGNORECASE | re.MULTILINE,
)
_BACKSLASH = re.compile(
    r"\\(?:!|o\s|w\s|copy\s|g\s*[|>\w/]|gset|gexec|i\s)|^\s*(?:system|tee|pager|host|ho|\\T|\\P)\s|^\s*!", re.MULTILINE
)
_HARMLESS_DOT = re.compile(
    r"^\s*\.(?:output|once)\s*$|^\s*\.(?:exit|explain|expert|import\b(?!\s*['\"]?\|))", re.I | re.M
)


_LITERAL = re.compile(r"'[^']*'")
_EXPLAINS = re.compile(r"\s*explain\s+(?!analy[sz]e|\()(?:query\s+plan\s+)?[^;]*;?\s*$|\s*\\h\s[^;\n]*$", re.IGNORECASE)
_EVALUATES = re.compile(r"exec|prepare|dblink|query_to|\bdo\b|eval", re.IGNORECASE)
_DESTROYS = re.compile(
    r"\b(?:drop\s+(?:table|database|schema|view|index|user|role|collection|keyspace)|truncate\s+table|delete\s+from|detach\s+delete)\b",
    re.IGNORECASE,
)


def destroys(text: str) -> bool:
    """Whether a text is SQL that drops or empties something, and no sentence that only sounds like it."""
    return bool(_DESTROYS.search(_LITERAL.sub("''", text))) and not _EXPLAINS.match(text)


def changes(text: str) -> bool:
    """Whether SQL loses data or writes elsewhere; what it only compares with does not count."""
    if _EXPLAINS.match(text):
        return False
    return bool(_CHANGES.search(text if _EVALUATES.search(text) else _LITERAL.sub("''", text)))


def sqlite_runs(text: str) -> bool:
    """Whether a dot command of sqlite3 runs a program or writes a file."""
    return any(_DOT.match(line) and not _HARMLESS_DOT.match(line) for line in text.splitlines())


def client_runs(text: str) -> bool:
    """Whether a backslash command of psql or mysql runs a program or writes a file."""
    return bool(_BACKSLASH.search(text))
