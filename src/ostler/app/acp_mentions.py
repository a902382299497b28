"""A prompt with its mentions: the words as they are, then a link for each `@path` and `@https://…` in them."""

import os

from ostler.core.prompt import PromptContent, ResourceLink, TextContent
from ostler.knowledge.mentions import find_mentions

# What Python's table lacks or calls otherwise.
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
    """Nothing is opened and nothing is fetched: what the agent does with a link is its own affair."""
    found = dict.fromkeys(name for _, _, name in find_mentions(text))
    return (TextContent(text), *(_link(name, cwd) for name in found))


def _link(name: str, cwd: str) -> ResourceLink:
    if "://" in name:
        from urllib.parse import unquote, urlsplit  # only a mention pays for these

        address = urlsplit(name)
        last = unquote(address.path.rstrip("/").rpartition("/")[2]) or address.netloc
        return ResourceLink(name, last, mime_type(address.path))
    path = os.path.normpath(os.path.join(cwd, os.path.expanduser(name)))
    return ResourceLink(_file_uri(path), os.path.basename(path), mime_type(path))


def _file_uri(path: str) -> str:
    from urllib.request import pathname2url

    return f"file://{pathname2url(path)}"


def mime_type(path: str) -> str:
    """By the name's ending, or nothing."""
    import mimetypes

    ending = os.path.splitext(path)[1].lower()
    return _MIME_TYPES.get(ending) or mimetypes.guess_type(path, strict=False)[0] or ""
