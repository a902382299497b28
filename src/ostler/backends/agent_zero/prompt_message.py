"""Converts a prompt to a message: its text, the files that it mentions, and what the server has not been sent yet."""

import base64
import os
from collections.abc import Sequence

from ostler.backends.agent_zero.transport import ZeroAttachment, ZeroMessage
from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, ResourceLink

_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


def make_message(prompt: Prompt, notes: Sequence[str], context: str) -> ZeroMessage:
    """Return the message of a prompt; after notes or a context, `USER:` marks where the prompt begins."""
    links = [block.uri for block in prompt.blocks if isinstance(block, ResourceLink) and block.uri not in prompt.text]
    text = "\n".join((prompt.text, *links))
    before = [*notes, context] if context else list(notes)
    if before:
        text = "\n\n".join((*before, f"USER: {text}"))
    return ZeroMessage(text, _attachments(prompt))


def _attachments(prompt: Prompt) -> tuple[ZeroAttachment, ...]:
    """Return the mentioned files and images; names that occur twice get a number."""
    attachments: dict[str, ZeroAttachment] = {}
    for block in prompt.blocks:
        match block:
            case EmbeddedResource(uri, text):
                name, data = os.path.basename(uri.rstrip("/")) or "file", base64.b64encode(text.encode()).decode()
            case ImageContent(mime, data, name):
                name = os.path.basename(name) or f"image{_SUFFIXES.get(mime, '')}"
            case _:
                continue
        stem, dot, suffix = name.rpartition(".")
        number = 1
        while name in attachments:
            number += 1
            name = f"{stem}-{number}{dot}{suffix}" if stem else f"{suffix}-{number}"
        attachments[name] = ZeroAttachment(name, data)
    return tuple(attachments.values())
