"""Turns `@path` and `@https://…` mentions in a prompt into resource links."""

import os

from ostler.core.prompt import PromptContent, ResourceLink, TextContent
from ostler.knowledge.mentions import find_mentions

# Types that Python's table does not have or names differently.
_MIME_TYPES = {
    ".md": "text/markdown",
    ".ts": "text/typescript",
    ".tsx": "text/typescript",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".jsonl": "application/jsonl",
    ".dart": "text/x-dart",
    ".rs": "text/x-rust",
    ".go": "text/x-go",
}


def prompt_blocks(typed: str, cwd: str, piped: str = "") -> tuple[tuple[PromptContent, ...], list[str]]:
    """Return the text and a link for each mention of a URL or an existing file, and notices about unusual files.

    The links are not opened here. Only what the user typed is searched, because piped text may come from others.
    """
    text = "\n\n".join(filter(None, (typed, piped)))
    found = dict.fromkeys(name.removeprefix("file:") for _, _, name in find_mentions(typed))
    linked = [name for name in found if "://" in name or _exists(name, cwd)]
    reasons = ((name, _why_unusual(name, cwd)) for name in linked)
    notices = [f"@{name} is sent to the agent as a link: it {reason}" for name, reason in reasons if reason]
    return (TextContent(text), *(_link(name, cwd) for name in linked)), notices


def _why_unusual(name: str, cwd: str) -> str:
    """Return why a mentioned file should be named to the user: it is outside the workspace or may contain secrets."""
    from ostler.text.redact import is_sensitive_file

    local = _local_path(name)
    if not local:
        return ""
    path = _absolute(local, cwd)
    real = os.path.realpath(path)
    if any(map(is_sensitive_file, (path, real))):
        return "may contain secrets"
    return "" if real == (root := os.path.realpath(cwd)) or real.startswith(f"{root}/") else "is outside the workspace"


def _local_path(name: str) -> str:
    """Return the path of a file that a mention names, also as a `file://` URL; empty for other URLs."""
    if "://" not in name:
        return name
    from urllib.parse import unquote, urlsplit

    try:
        address = urlsplit(name)
    except ValueError:
        return ""
    return unquote(address.path) if address.scheme in ("file", "") else ""


def _absolute(name: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(name)))


def _exists(name: str, cwd: str) -> bool:
    """Return whether a mention names a file; others, such as `@property`, are ordinary text."""
    return "\0" not in name and os.path.lexists(os.path.join(cwd, os.path.expanduser(name)))


def _link(name: str, cwd: str) -> ResourceLink:
    if "://" in name:
        from urllib.parse import unquote, urlsplit  # imported only if there is a mention

        address = urlsplit(name)
        last = unquote(address.path.rstrip("/").rpartition("/")[2]) or address.netloc
        return ResourceLink(name, last, mime_type(address.path))
    path = _absolute(name, cwd)
    return ResourceLink(_file_uri(path), os.path.basename(path), mime_type(path))


def _file_uri(path: str) -> str:
    from urllib.request import pathname2url

    return f"file://{pathname2url(path)}"


def mime_type(path: str) -> str:
    """Guess the MIME type from the extension; empty if unknown."""
    import mimetypes

    extension = os.path.splitext(path)[1].lower()
    return _MIME_TYPES.get(extension) or mimetypes.guess_type(path, strict=False)[0] or ""
