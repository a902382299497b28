"""Parses the base URLs of model servers as users write them."""

import re
from typing import Literal

from ostler.core.errors import UsageError
from ostler.http.url import BaseUrl, match_url, origin_from_match, percent_encode, strip_secrets
from ostler.text.lazy_regex import lazy_regex

_VERSION = lazy_regex(r"/v\d+[a-z0-9]*(?=/|$)")


def parse_base_url(text: str, kind: Literal["openai", "anthropic"] = "openai") -> BaseUrl:
    """Parse a base URL. Slashes, `/v1`, the endpoint and the scheme may be missing or extra. Raises `UsageError`."""
    if any(c <= " " or c == "\x7f" for c in text.strip()):
        raise UsageError("the base URL contains spaces or control characters", hint="write it as http://host:port/v1")
    match = match_url(text)
    if match is None:
        raise UsageError(
            f"invalid base URL {strip_secrets(text.strip())[:200]!r}", hint="write it as http://host:port/v1"
        )
    if match["user"]:
        raise UsageError("the base URL contains a user name or key", hint="set the key as the profile's apiKey")
    origin = origin_from_match(match)
    path = _strip_endpoint(match["path"] or "", "/chat/completions" if kind == "openai" else "/messages")
    if (kind == "anthropic" and not _VERSION.search(path)) or not path:
        path += "/v1"
    return BaseUrl(origin, percent_encode(path), percent_encode(match["query"] or ""))


def _strip_endpoint(path: str, endpoint: str) -> str:
    path = re.sub(r"/+", "/", path).rstrip("/")
    return path.removesuffix(endpoint).rstrip("/")
