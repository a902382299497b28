"""Exports a session as one self-contained HTML page."""

import re
from collections.abc import Callable, Iterable, Iterator
from html import escape

from ostler.core.prompt import ImageContent
from ostler.journal.conversation import ConversationMessage
from ostler.journal.export_markdown import ROLE_NAMES, arguments_text, header_fields
from ostler.journal.session_meta import SessionMeta, format_time
from ostler.text.sanitise import sanitise

HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #8884; --soft: #8881; }}
body {{ max-width: 54rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.55 system-ui, sans-serif; }}
h1 {{ font-size: 1.5rem; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .9rem; }}
dt {{ opacity: .7; }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
article {{ margin: 1.2rem 0; padding: .8rem 1rem; border: 1px solid var(--line); border-radius: .5rem; }}
article.user {{ background: var(--soft); }}
header {{ font-size: .85rem; opacity: .7; }}
pre, p {{ white-space: pre-wrap; overflow-wrap: anywhere; margin: .6rem 0 0; }}
pre {{ font: .85rem/1.45 ui-monospace, monospace; }}
details {{ margin-top: .6rem; }}
summary {{ cursor: pointer; }}
img {{ max-width: 100%; }}
</style>
</head>
<body>
"""
_IMAGE = re.compile(r"image/(png|jpeg|gif|webp)")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def to_html(meta: SessionMeta, messages: Iterable[ConversationMessage], redact: Callable[[str], str]) -> Iterator[str]:
    """Yield the page in chunks; `redact` is applied to every text."""

    def escape_text(text: str) -> str:
        return escape(sanitise(redact(text)).strip("\n"))

    title = escape_text(meta.title) or escape(meta.id)
    yield HEAD.format(title=title) + f"<h1>{title}</h1>\n<dl>\n"
    for name, value in header_fields(meta):
        yield f"<dt>{name}</dt><dd>{escape_text(value)}</dd>\n"
    yield "</dl>\n"
    names: dict[str, str] = {}
    for message in messages:
        names |= {call.id: call.tool for call in message.calls}
        yield from _message(message, names, escape_text)
    yield "</body>\n</html>\n"


def _message(message: ConversationMessage, names: dict[str, str], escape_text: Callable[[str], str]) -> Iterator[str]:
    if message.role == "tool":
        name = escape_text(names.get(message.call_id, "call"))
        yield _details(f"{name}: {message.status}", escape_text(message.text)) + "".join(map(_image, message.images))
        return
    head = f"{escape_text(message.who) or ROLE_NAMES[message.role]} · {message.number} · {format_time(message.time)}"
    yield f'<article class="{message.role}" id="m{message.number}">\n<header>{head}</header>\n'
    if message.thought:
        yield _details("thought", escape_text(message.thought))
    if message.text:
        yield f"<p>{escape_text(message.text)}{' [cut off here]' if message.cut else ''}</p>\n"
    yield from map(_image, message.images)
    for call in message.calls:
        yield _details(f"<strong>{escape_text(call.tool)}</strong>", escape_text(arguments_text(call)))
    yield "</article>\n"


def _details(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary><pre>{text}</pre></details>\n"


def _image(image: ImageContent) -> str:
    """Return an image tag, or a placeholder if the data is not a supported image."""
    if _IMAGE.fullmatch(image.mime) and _BASE64.fullmatch(image.data):
        return f'<img alt="{escape(sanitise(image.name))}" src="data:{image.mime};base64,{image.data}">\n'
    return f"<p>(image {escape(sanitise(image.name))} {escape(sanitise(image.mime))})</p>\n"
