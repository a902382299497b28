"""The cookies that a server sets. They are kept in memory and sent to no other server."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ostler.text.lazy_regex import lazy_regex

MAX_COOKIES = 50
MAX_CHARACTERS = 4096  # of one cookie, as in browsers
_COOKIE = lazy_regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+=[!-:<-~]*")


class SessionCookies:
    """Cookies by name. All routes of one server get them, whatever path or domain they name."""

    def __init__(self) -> None:
        self._cookies: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._cookies)

    @property
    def header(self) -> str:
        """The value of the `cookie` header."""
        return "; ".join(self._cookies.values())

    def clear(self) -> None:
        self._cookies.clear()

    def store(self, lines: str) -> None:
        """Store the `set-cookie` headers of a response, one per line; invalid ones are left out."""
        for line in lines.split("\n"):
            cookie, *attributes = (part.strip() for part in line.split(";"))
            name = cookie.partition("=")[0]
            if not _COOKIE.fullmatch(cookie) or len(cookie) > MAX_CHARACTERS:
                continue
            if _is_expired(attributes):
                self._cookies.pop(name, None)
            elif name in self._cookies or len(self._cookies) < MAX_COOKIES:
                self._cookies[name] = cookie


def _is_expired(attributes: list[str]) -> bool:
    values = {name.strip().lower(): value.strip() for name, _, value in (text.partition("=") for text in attributes)}
    if (seconds := values.get("max-age", "")).lstrip("-").isdecimal():
        return seconds.startswith("-") or not seconds.strip("0")
    try:
        expires = parsedate_to_datetime(values.get("expires", ""))
    except (ValueError, TypeError):
        return False
    return expires.replace(tzinfo=expires.tzinfo or UTC) <= datetime.now(UTC)
