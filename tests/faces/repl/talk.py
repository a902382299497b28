"""What a model's server was told, and the flags that lead to it."""

import json
import re

CLEARS = re.compile(rb"\x1b\[[23]J|\x1bc")


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
