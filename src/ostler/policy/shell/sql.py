"""Detects SQL and client commands that change or drop data."""

import re

_DATA_CHANGE = re.compile(
    r"\b(?:drop\s+\w|truncate\s|delete\s+from|update\s+[^;]{1,500}?\sset\s|alter\s+\w|replace\s+into"
    r"|insert\s+or\s+replace|grant\s|revoke\s"
    r"|vacuum\s+into|reindex|copy\s[^;]{0,500}?\sto\s|into\s+(?:outfile|dumpfile)|load_extension|writefile\s*\("
    r"|edit\s*\(|rename\s+to)",
    re.IGNORECASE,
)
_SQLITE_COMMAND = re.compile(
    r"^\s*\.(?:sh\w*|sys\w*|ou\w*|on\w*|sav\w*|ba\w*|cl\w+|ex\w*|im\w*|lo\w*|ar\w*|res\w*|rea?d?\s*[|'\"]|open\s+-)",
    re.IGNORECASE | re.MULTILINE,
)
_CLIENT_COMMAND = re.compile(
    r"\\(?:!|o\s|w\s|copy\s|g\s*[|>\w/]|gset|gexec|i\s)|^\s*(?:system|tee|pager|host|ho|\\T|\\P)\s|^\s*!", re.MULTILINE
)
_HARMLESS_SQLITE_COMMAND = re.compile(
    r"^\s*\.(?:output|once)\s*$|^\s*\.(?:exit|explain|expert|import\b(?!\s*['\"]?\|))", re.I | re.M
)


_STRING_LITERAL = re.compile(r"'[^']*'")
_EXPLAIN_STATEMENT = re.compile(
    r"\s*explain\s+(?!analy[sz]e|\()(?:query\s+plan\s+)?[^;]*;?\s*$|\s*\\h\s[^;\n]*$", re.IGNORECASE
)
_DYNAMIC_SQL = re.compile(r"exec|prepare|dblink|query_to|\bdo\b|eval", re.IGNORECASE)
_DESTRUCTIVE_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema|view|index|user|role|collection|keyspace)|truncate\s+table|delete\s+from|detach\s+delete)\b",
    re.IGNORECASE,
)


def is_destructive_sql(text: str) -> bool:
    """Return whether a text is SQL that drops or empties something; string literals are ignored."""
    return bool(_DESTRUCTIVE_SQL.search(_STRING_LITERAL.sub("''", text))) and not _EXPLAIN_STATEMENT.match(text)


def changes_data(text: str) -> bool:
    """Return whether SQL changes data or writes files; string literals are ignored where possible."""
    if _EXPLAIN_STATEMENT.match(text):
        return False
    return bool(_DATA_CHANGE.search(text if _DYNAMIC_SQL.search(text) else _STRING_LITERAL.sub("''", text)))


def has_sqlite_command(text: str) -> bool:
    """Return whether a dot command of sqlite3 runs a program or writes a file."""
    return any(_SQLITE_COMMAND.match(line) and not _HARMLESS_SQLITE_COMMAND.match(line) for line in text.splitlines())


def has_client_command(text: str) -> bool:
    """Return whether a client command of psql or mysql runs a program or writes a file."""
    return bool(_CLIENT_COMMAND.search(text))
