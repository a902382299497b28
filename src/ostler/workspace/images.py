"""Reads images of the workspace, for models that see them."""

import base64
from typing import Protocol

from ostler.core.errors import PathError
from ostler.core.prompt import ImageContent
from ostler.core.protocols import ResolvedPath

MAX_IMAGE_BYTES = 5 * 1024 * 1024
_HEAD_BYTES = 16
_SIGNATURES = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
)


class ReadableFiles(Protocol):
    """The part of a workspace that reading an image needs."""

    async def read_bytes(self, path: str, limit: int) -> bytes: ...

    def resolve(self, path: str) -> ResolvedPath: ...


async def read_image(path: str, workspace: ReadableFiles) -> tuple[ImageContent, int] | None:
    """Return an image and its size in bytes, or None if the file has no format that models read.

    Raises `PathError` if it cannot be read or is too large.
    """
    head = await workspace.read_bytes(path, _HEAD_BYTES)
    mime = next((mime for offset, signature, mime in _SIGNATURES if head.startswith(signature, offset)), "")
    if not mime:
        return None
    raw = await workspace.read_bytes(path, MAX_IMAGE_BYTES + 1)
    name = workspace.resolve(path).display_path
    if len(raw) > MAX_IMAGE_BYTES:
        hint = "make a smaller copy of it with a command"
        raise PathError("too_large", name, f"the image is larger than {MAX_IMAGE_BYTES:,} bytes", hint=hint)
    return ImageContent(mime, base64.b64encode(raw).decode(), name), len(raw)
