"""Converts the result of an MCP call: text for the model once, images, and a note for everything that is left out."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ostler.core.display import Display, DisplayText
from ostler.core.errors import Fault
from ostler.core.prompt import ImageContent
from ostler.core.tools import ToolResult
from ostler.text.sanitise import sanitise

MAX_IMAGES = 8
MAX_IMAGE_CHARACTERS = 7_000_000  # base64, about 5 MB
MAX_TEXT_CHARACTERS = 2_000_000  # base64
MAX_DATA_BYTES = 50_000
MAX_SUMMARY = 120
MAX_SHOWN = 20_000
_INVALID_BLOCK = "[an invalid content block was left out]"
_TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml", "application/javascript"})
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def convert_result(result: Mapping[str, Any], read_tool: str = "") -> ToolResult:
    """Return the result for the model and the user. `structuredContent` is used if `content` has no text or image.

    `read_tool` is the tool that reads linked resources.
    """
    content = result.get("content")
    parts = list(convert_blocks(content, read_tool)) if isinstance(content, list) else []
    images = tuple(part for part in parts if isinstance(part, ImageContent))
    text = "\n".join(part for part in parts if isinstance(part, str))
    structured = result.get("structuredContent")
    failed = result.get("isError") is True
    if structured is not None:
        encoded = msgspec.json.encode(structured).decode()
        if not parts:
            text = encoded
        elif failed and encoded not in text and _is_richer(structured, text):
            text = f"{text}\n{encoded}"
    text = text or ("(image)" if images else "(no output)")
    display = Display(_summary(text), (DisplayText(_shown(text), "error" if failed else "output"),))
    if failed:
        return ToolResult("", "failed", text, display, images=images, fault=Fault("tool_failed", _summary(text)))
    return ToolResult("", "ok", text, display, _limited_data(structured), images)


def convert_blocks(blocks: list[Any], read_tool: str = "") -> Iterator[str | ImageContent]:
    """Yield texts, images, and a note for each block that cannot be shown."""
    count = 0
    for block in blocks:
        part = _convert_block(block, read_tool) if isinstance(block, dict) else _INVALID_BLOCK
        if isinstance(part, ImageContent):
            count += 1
            if count > MAX_IMAGES:
                part = f"[an image was left out: more than {MAX_IMAGES}]"
        if part:
            yield part


def _convert_block(block: Mapping[str, Any], read_tool: str) -> str | ImageContent:
    match block.get("type"):
        case "text":
            return _text(block.get("text"))
        case "image":
            return _image(block.get("mimeType"), block.get("data"), "")
        case "audio":
            return f"[audio ({_label(block.get('mimeType'))}) was left out]"
        case "resource":
            return convert_resource(block.get("resource"))
        case "resource_link":
            name, uri = _label(block.get("name")), _label(block.get("uri"), 500)
            return f"[resource {name}: {uri}{f'; {read_tool} reads it' if read_tool else ''}]"
        case kind:
            return f"[content of type {_label(kind)} was left out]"


def convert_resource(resource: Any) -> str | ImageContent:
    """Return a resource as text with its URI, as an image, or as a note that it was left out."""
    if not isinstance(resource, dict):
        return "[an invalid resource was left out]"
    uri, mime = _label(resource.get("uri"), 500), resource.get("mimeType")
    if isinstance(resource.get("text"), str):
        return f"[resource {uri}]\n{resource['text']}"
    if isinstance(mime, str) and mime.startswith("image/"):
        return _image(mime, resource.get("blob"), uri)
    if (text := _decoded_text(mime, resource.get("blob"))) is not None:
        return f"[resource {uri}]\n{text}"
    return f"[resource {uri} ({_label(mime)}, binary) was left out]"


def _decoded_text(mime: Any, blob: Any) -> str | None:
    """Return the text of binary content that is text by its type, or None."""
    if not isinstance(mime, str) or not isinstance(blob, str) or len(blob) > MAX_TEXT_CHARACTERS:
        return None
    kind = mime.partition(";")[0].strip().lower()
    if not (kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+json", "+xml"))):
        return None
    try:
        return base64.b64decode(blob, validate=True).decode("utf-8")
    except ValueError:
        return None


def _image(mime: Any, data: Any, name: str) -> str | ImageContent:
    if not isinstance(mime, str) or mime not in _IMAGE_TYPES or not isinstance(data, str) or not data:
        return f"[an image ({_label(mime)}) was left out: unsupported]"
    if len(data) > MAX_IMAGE_CHARACTERS:
        return f"[an image ({mime}) was left out: it is too large]"
    return ImageContent(mime, data, name)


def _is_richer(structured: Any, text: str) -> bool:
    """Return whether structured content of an error contains a text that the message does not."""
    values = structured.values() if isinstance(structured, dict) else [structured]
    return any(str(value) not in text for value in values)


def _limited_data(structured: Any) -> Any:
    return structured if structured is None or len(msgspec.json.encode(structured)) <= MAX_DATA_BYTES else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _label(value: Any, limit: int = 80) -> str:
    return sanitise(value).replace("\n", " ")[:limit] if isinstance(value, str) else "unknown"


def _shown(text: str) -> str:
    """Return a text for the user, shortened: a giant line would fill the screen."""
    left_out = len(text) - MAX_SHOWN
    return text if left_out <= 0 else f"{text[:MAX_SHOWN]}… ({left_out:,} more characters)"


def _summary(text: str) -> str:
    line = sanitise(text.strip().partition("\n")[0])
    return line if len(line) <= MAX_SUMMARY else f"{line[: MAX_SUMMARY - 1]}…"
