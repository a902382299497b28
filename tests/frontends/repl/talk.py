"""What a model's server was told, and the flags that lead to it."""

import json
import re
import time
from contextlib import suppress

CLEARS = re.compile(rb"\x1b\[[23]J|\x1bc")


def press_until(term, key, wanted):
    """Press a key of an ask, now and then, until something is seen: keys that come while one types are no answers."""
    until = time.monotonic() + 60
    while wanted not in term.text:
        assert time.monotonic() < until, term.text
        term.type(key)
        with suppress(AssertionError):
            term.wait_for(wanted, timeout=1.0)


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def talk(server, number=-1):
    """What was said in a request, by whom; what the harness itself reminds of is left out."""
    said = json.loads(server.requests[number].body)["messages"]
    return [(one["role"], _words(one.get("content"))) for one in said if one["role"] != "system"]


def last_words(server):
    return talk(server)[-1][1]


def _words(content):
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
