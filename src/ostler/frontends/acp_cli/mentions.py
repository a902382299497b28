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


def prompt_blocks(text: str, cwd: str) -> tuple[PromptContent, ...]:
    """Return the text and a link for each mention of a URL or an existing file; the links are not opened here."""
    found = dict.fromkeys(name.removeprefix("file:") for _, _, name in find_mentions(text))
    return (TextContent(text), *(_link(name, cwd) for name in found if "://" in name or _exists(name, cwd)))


def _exists(name: str, cwd: str) -> bool:
    """Return whether a mention names a file; others, such as `@property`, are ordinary text."""
    return "\0" not in name and os.path.lexists(os.path.join(cwd, os.path.expanduser(name)))


def _link(name: str, cwd: str) -> ResourceLink:
    if "://" in name:
        from urllib.parse import unquote, urlsplit  # imported only if there is a mention

        address = urlsplit(name)
        last = unquote(address.path.rstrip("/").rpartition("/")[2]) or address.netloc
        return ResourceLink(name, last, mime_type(address.path))
    path = os.path.normpath(os.path.join(cwd, os.path.expanduser(name)))
    return ResourceLink(_file_uri(path), os.path.basename(path), mime_type(path))


def _file_uri(path: str) -> str:
    from urllib.request import pathname2url

    return f"file://{pathname2url(path)}"


def mime_type(path: str) -> str:
    """Guess the MIME type from the extension; empty if unknown."""
    import mimetypes

    extension = os.path.splitext(path)[1].lower()
    return _MIME_TYPES.get(extension) or mimetypes.guess_type(path, strict=False)[0] or ""
