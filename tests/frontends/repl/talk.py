"""Helpers: the flags for a scripted model server, and the messages it received."""

import json
import re
import time
from contextlib import suppress

CLEARS = re.compile(rb"\x1b\[[23]J|\x1bc")


def press_until(term, key, wanted):
    """Press a key of a dialog repeatedly until a text appears, because keys during typing are ignored."""
    deadline = time.monotonic() + 60
    while wanted not in term.text:
        assert time.monotonic() < deadline, term.text
        term.type(key)
        with suppress(AssertionError):
            term.wait_for(wanted, timeout=1.0)


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def talk(server, number=-1):
    """Return the roles and texts of a request's messages, without system messages."""
    messages = json.loads(server.requests[number].body)["messages"]
    return [(message["role"], _text(message.get("content"))) for message in messages if message["role"] != "system"]


def last_words(server):
    return talk(server)[-1][1]


def _text(content):
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
