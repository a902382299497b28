"""The address of an Ostler server, as users write it."""

from ostler.core.errors import UsageError
from ostler.http.url import ServerOrigin, match_url, origin_from_match


def server_url(origin: ServerOrigin) -> str:
    """Return the URL under which a server's login is stored."""
    return f"{origin.scheme}://{origin.address}"


def parse_server(text: str) -> ServerOrigin:
    """Return the server of a URL without path, user and query. Raises `UsageError`."""
    match = match_url(text)
    if match is None or match["user"] or match["query"] is not None or (match["path"] or "/") != "/":
        raise UsageError("the server's URL must be written as https://host:port", hint="it has no path and no token")
    return origin_from_match(match)
