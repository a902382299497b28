"""The error that says how the user can get access to a remote server."""

from ostler.mcp.connection import Challenge, LoginNeeded
from ostler.mcp.server_entry import ServerEntry


def login_needed(entry: ServerEntry, challenge: Challenge) -> LoginNeeded:
    """Return the error for a refused request."""
    token = f"store a token with `ostler mcp token {entry.name}`"
    if entry.oauth:
        more = " with more permissions" if challenge.error == "insufficient_scope" else ""
        return LoginNeeded(f"needs login{more}: ostler mcp login {entry.name}", challenge, hint=f"or {token}")
    if entry.has_authorization:
        token = "check its Authorization header"
    elif entry.is_passed_in:
        token = "the program that passed it in must send its Authorization header"
    return LoginNeeded("the server refused the request (HTTP 401)", challenge, hint=token)
