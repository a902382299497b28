"""A prompt with its mentions: the words as they are, then a link for each `@path` and `@https://…` in them."""

import os

from ostler.knowledge.mentions import mentions
from ostler.vocabulary.prompt import Block, Link, Text

# What Python's table lacks or calls otherwise.
_TYPES = {
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


def prompt_blocks(text: str, cwd: str) -> tuple[Block, ...]:
    """Nothing is opened and nothing is fetched: what the agent does with a link is its own affair."""
    found = dict.fromkeys(name for _, _, name in mentions(text))
    return (Text(text), *(_link(name, cwd) for name in found))


def _link(name: str, cwd: str) -> Link:
    if "://" in name:
        from urllib.parse import unquote, urlsplit  # only a mention pays for these

        address = urlsplit(name)
        last = unquote(address.path.rstrip("/").rpartition("/")[2]) or address.netloc
        return Link(name, last, mime_type(address.path))
    path = os.path.normpath(os.path.join(cwd, os.path.expanduser(name)))
    return Link(_file_uri(path), os.path.basename(path), mime_type(path))


def _file_uri(path: str) -> str:
    from urllib.request import pathname2url

    return f"file://{pathname2url(path)}"


def mime_type(path: str) -> str:
    """By the name's ending, or nothing."""
    import mimetypes

    ending = os.path.splitext(path)[1].lower()
    return _TYPES.get(ending) or mimetypes.guess_type(path, strict=False)[0] or ""
