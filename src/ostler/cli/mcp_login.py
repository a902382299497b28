"""`ostler mcp login` and `ostler mcp logout`: the user signs in with a browser, here or on another machine."""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from ostler import __version__
from ostler.core.errors import UsageError
from ostler.credentials.store import open_credentials
from ostler.mcp.oauth_login import LoginFlow, find_challenge
from ostler.mcp.oauth_login import log_out as end_login
from ostler.mcp.oauth_logins import Logins
from ostler.mcp.server_entry import ServerEntry
from ostler.settings.home import require_home
from ostler.text.sanitise import sanitise

MAX_LINE = 16 * 1024
PASTE_NOTE = """Waiting for the browser. If it runs on another machine, it cannot open the last page: then copy the
address of this page (it begins with http://127.0.0.1) from the address bar and paste it here, followed by Enter.
"""


def log_in(entry: ServerEntry, *, open_browser: bool) -> int:
    """Log in to a remote server. Raises `OstlerError`."""
    if not entry.oauth:
        raise UsageError(
            f"the entry of {entry.name} does not use OAuth",
            hint="remove its Authorization header and its `oauth`: false",
        )
    if not sys.stdin.isatty():
        raise UsageError(
            "a login needs a person at a terminal",
            hint=f"run `ostler mcp login {entry.name}` in a terminal, or store a token with `ostler mcp token`",
        )
    asyncio.run(_log_in(entry, open_browser=open_browser))
    return 0


async def _log_in(entry: ServerEntry, *, open_browser: bool) -> None:
    def show(address: str, issuer: str) -> None:
        sys.stdout.write(f"Sign in at {sanitise(issuer)} to use {entry.url}. Open this address:\n\n{address}\n\n")
        if open_browser:
            start_browser(address)
        sys.stdout.write(PASTE_NOTE)
        sys.stdout.flush()

    challenge = await find_challenge(entry, os.environ, __version__)
    login = await LoginFlow(entry, Logins(open_credentials()), _lock_folder(), os.environ, show, _read_pasted).run(
        challenge
    )
    scope = f" for {sanitise(login.scope)}" if login.scope else ""
    sys.stdout.write(f"logged in to {entry.name} at {sanitise(login.issuer)}{scope}\n")


def log_out(entry: ServerEntry) -> int:
    """Delete the login at a remote server."""
    found = asyncio.run(end_login(entry, Logins(open_credentials()), _lock_folder(), os.environ))
    sys.stdout.write(f"logged out of {entry.name}\n" if found else f"there is no login at {entry.name}\n")
    return 0


def _lock_folder() -> Path:
    return require_home(os.environ) / "mcp"


def start_browser(address: str) -> None:
    """Open an address in the user's browser, if there is a screen; it may fail, because the address is printed too."""
    named = os.environ.get("BROWSER", "").partition(":")[0]
    has_screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    command = shlex.split(named) if named else ["open" if sys.platform == "darwin" else "xdg-open"]
    if not command or not (named or has_screen) or shutil.which(command[0]) is None:
        return
    quiet = subprocess.DEVNULL
    with suppress(OSError):
        subprocess.Popen([*command, address], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


async def _read_pasted(problem: str) -> str:
    """Return a line from the terminal. Nothing else of the process reads it meanwhile."""
    if problem:
        sys.stdout.write(f"{problem}\n")
        sys.stdout.flush()
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    line: asyncio.Future[str] = loop.create_future()
    data = b""

    def read() -> None:
        nonlocal data
        more = os.read(descriptor, MAX_LINE)
        data += more
        if not more:  # the input ended; only the browser can answer now
            loop.remove_reader(descriptor)
        elif not line.done() and (b"\n" in data or len(data) > MAX_LINE):
            line.set_result(data.decode("utf-8", "replace"))

    loop.add_reader(descriptor, read)
    try:
        return await line
    finally:
        loop.remove_reader(descriptor)
