"""Helpers: the flags for a scripted model server, and the messages it received."""

import json
import re
import time

from ostler.interaction.answer_keys import TYPING_PAUSE_SECONDS

CLEARS = re.compile(rb"\x1b\[[23]J|\x1bc")


def answer_after_pause(term, key, wanted):
    """Answer a dialog that interrupted typing: pause, press a key and Enter, and wait until a text appears."""
    time.sleep(TYPING_PAUSE_SECONDS + 0.1)
    term.type(f"{key}\r")
    term.wait_for(wanted)


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def conversation(server, number=-1):
    """Return the roles and texts of a request's messages, without system messages."""
    messages = json.loads(server.requests[number].body)["messages"]
    return [(message["role"], _text(message.get("content"))) for message in messages if message["role"] != "system"]


def last_message(server):
    return conversation(server)[-1][1]


def _text(content):
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
