"""Finds secrets in command lines and statements: `mysql -pX`, `curl -u user:X`."""

import re
from collections.abc import Iterator

from ostler.text.lazy_regex import regex
from ostler.text.plain_view import Span
from ostler.text.secret_values import is_placeholder

WORD = r"(?:\"(?P<double>[^\"\n]{1,4096})\"|'(?P<single>[^'\n]{1,4096})'|(?P<plain>[^\s\"'|;&<>]{1,4096}))"
_ARGUMENTS = r"\b[^\n|;&]{0,200}?\s"
_USER = r"[\"']?[\w.@+\-]{1,64}:(?P<plain>[^\s\"']{1,256})"

# A literal that the text must contain (for speed), and the pattern of the statement.
_STATEMENTS: tuple[tuple[str, str], ...] = (
    ("mysql", r"mysql(?:dump|admin)?" + _ARGUMENTS + r"-p(?=\S)" + WORD),
    ("mariadb", r"mariadb" + _ARGUMENTS + r"-p(?=\S)" + WORD),
    ("curl", r"curl" + _ARGUMENTS + r"(?:-u|--user|-U|--proxy-user)[ =]?" + _USER),
    ("curl", r"curl" + _ARGUMENTS + r"(?:-b|--cookie)[ =]?(?=[\"']?[\w.\-]{1,64}=)" + WORD),
    ("http", r"http(?:ie)?" + _ARGUMENTS + r"(?:-a|--auth)[ =]" + _USER),
    ("sshpass", r"sshpass\s+-p\s*" + WORD),
    ("docker", r"docker" + _ARGUMENTS + r"login" + _ARGUMENTS + r"-p[ =]" + WORD),
    ("podman", r"podman" + _ARGUMENTS + r"login" + _ARGUMENTS + r"-p[ =]" + WORD),
    ("helm", r"helm" + _ARGUMENTS + r"login" + _ARGUMENTS + r"-p[ =]" + WORD),
    ("az login", r"az login" + _ARGUMENTS + r"-p[ =]" + WORD),
    ("mongo", r"mongo(?:sh|dump|restore|export|import)?" + _ARGUMENTS + r"-p[ =]" + WORD),
    ("twine", r"twine" + _ARGUMENTS + r"-p[ =]" + WORD),
    ("redis-cli", r"redis-cli" + _ARGUMENTS + r"-a[ =]" + WORD),
    ("ldap", r"ldap(?:search|add|modify|whoami|passwd|delete)" + _ARGUMENTS + r"-w[ =]?" + WORD),
    ("htpasswd", r"htpasswd\s+-\w*b\w*\s+\S{1,200}\s+\S{1,64}\s+" + WORD),
    ("smbclient", r"smbclient" + _ARGUMENTS + r"-U[ =]?[\"']?[\w\\/.\-]{1,64}%(?P<plain>[^\s\"']{1,128})"),
    ("pass:", r"pass:(?<=[ =\"']pass:)(?P<plain>[^\s\"']{3,256})(?=[\"']?(?:\s|$))"),
    ("IDENTIFIED", r"IDENTIFIED\s+(?:WITH\s+\w{1,40}\s+)?BY\s+(?:PASSWORD\s+)?(?=[\"'])" + WORD),
    ("identified", r"user\b[^\n;]{0,100}?\bidentified\s+(?:with\s+\w{1,40}\s+)?by\s+(?=[\"'])" + WORD),
    ("SecureString", r"SecureString\s+(?:-String\s+)?(?=[\"'])" + WORD),
    ("BasicAuth(", r"BasicAuth\(\s*[\"'][^\"'\n]{0,64}[\"']\s*,\s*(?=[\"'])" + WORD),
    ("basic_auth(", r"basic_auth\(\s*[\"'][^\"'\n]{0,64}[\"']\s*,\s*(?=[\"'])" + WORD),
    (":5432:", r":5432:[\w.*\-]{1,64}:[\w.*\-]{1,64}:(?P<plain>[^\s:]{1,128})(?=\s|$)"),
)


def find_in_commands(text: str) -> Iterator[Span]:
    """Yield the spans of secrets in commands and statements."""
    for needle, source in _STATEMENTS:
        if needle not in text:
            continue
        for match in regex(source).finditer(text):
            span, value = matched_word(match)
            inside_word = match.group()[0].isalnum() and text[match.start() - 1 : match.start()].isalnum()
            if not inside_word and not is_placeholder(value):
                yield span


def matched_word(match: re.Match[str]) -> tuple[Span, str]:
    """Return the span and the text of the word that a pattern with `WORD` matched."""
    groups = match.groupdict()
    name = next(group for group in ("double", "single", "plain") if groups.get(group) is not None)
    return match.span(name), groups[name]
