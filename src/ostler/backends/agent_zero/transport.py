"""The seam between the backend and the ways to talk to a server. The backend knows no route and no message format.

A transport belongs to one session. It sends messages, reports what the server says to its `TurnListener`, and runs the
tools that the server requests through it.
"""

import asyncio
import base64
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from ostler.core.errors import BackendError
from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, ResourceLink
from ostler.core.sessions import SessionOption, SlashCommand
from ostler.wire.agent_zero.server_documents import ZeroLogItem
from ostler.wire.agent_zero.zero_events import ZeroEvent, ZeroToolRequest, ZeroToolResult

STEP_LIMIT, TIME_LIMIT = "step_limit", "time_limit"  # codes of errors that end a turn at a limit
TICK_SECONDS = 0.25  # how often a transport looks for an answer
COMMON_OPTIONS = {
    "agent_profile": "Agent Zero profile",
    "project": "Agent Zero project",
}  # of every server: name, label
_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


class ZeroAttachment(msgspec.Struct, frozen=True):
    """A file that is sent with a message."""

    filename: str
    base64: str


class ZeroMessage(msgspec.Struct, frozen=True):
    """A message to the agent. `tree` is the file tree of the workspace, for servers that want it apart.

    `for_new_conversation` returns the message to send if the conversation no longer exists; without it, as for the
    results of tools, the message makes no sense in another one.
    """

    text: str
    attachments: tuple[ZeroAttachment, ...] = ()
    tree: str = ""
    for_new_conversation: Callable[[], Awaitable["ZeroMessage"]] | None = None


class TurnListener(Protocol):
    """Receives what happens on the server. `run_tool` may only be awaited while a turn runs."""

    def on_event(self, event: ZeroEvent) -> None:
        """Show an event of the answer that is not a tool request."""

    def on_log_item(self, item: ZeroLogItem) -> None:
        """Show a new or changed item of the server's log; an item with the same number replaces the earlier one."""

    def on_waiting(self, seconds: float) -> None:
        """Show that the server has sent nothing for some time."""

    def on_conversation(self, context_id: str) -> None:
        """Store the id of the conversation with the session; an empty id forgets it."""

    def on_notice(self, text: str, *, is_warning: bool = False) -> None: ...

    async def confirm(self, text: str) -> bool:
        """Ask the user whether to continue; False if nobody can answer."""

    async def run_tool(self, request: ZeroToolRequest) -> ZeroToolResult:
        """Run a tool through the tool host, which asks for permission. Failures and denials are results."""


class ZeroTransport(Protocol):
    """One conversation with a server."""

    @property
    def context_id(self) -> str:
        """The server's id of the conversation; empty if there is none yet."""

    @property
    def seq(self) -> int:
        """The number of the last event that was shown; 0 if the server does not count them."""

    @property
    def requests_tools(self) -> bool:
        """Whether the agent requests tools in its answers, so that the description of the workspace must say how."""

    async def run(self, message: ZeroMessage) -> None:
        """Send a message and return when the answer to it, and to all tool results, is complete.

        Raises `BackendError` if the server cannot be reached or reports an error. On cancellation, only stop waiting;
        the backend then awaits `stop`.
        """

    async def steer(self, message: ZeroMessage) -> bool:
        """Send a message into the running turn. Return False if that is not possible now."""

    async def stop(self) -> str:
        """Stop the server's work on a cancelled turn as far as possible.

        Return what happened, for the user; an empty text if the server was not working.
        """

    def options(self) -> tuple[SessionOption, ...]: ...

    async def set_option(self, option_id: str, value: str) -> bool:
        """Set an option. Return False if there is no such option, or if it cannot be set now."""

    def commands(self) -> tuple[SlashCommand, ...]: ...

    async def run_command(self, name: str) -> str:
        """Run one of `commands` and return the message for the user. Raises `BackendError`."""

    async def compact(self) -> str:
        """Let the server summarise the conversation and return the message for the user; empty if it cannot."""

    async def tokens(self) -> tuple[int, int]:
        """Return how many tokens the conversation has and how many fit; 0 if that is unknown."""

    async def aclose(self) -> None: ...


class TransportStart(msgspec.Struct, frozen=True):
    """What a transport starts with: the conversation of a resumed session, and its last event."""

    context_id: str
    options: dict[str, str] = {}
    seq: int = 0


# Returns None if the server does not support this way. Raises `BackendError` only if no other way can work either.
TransportProbe = Callable[[TransportStart, TurnListener], Awaitable[ZeroTransport | None]]


async def choose_transport(
    probes: Sequence[TransportProbe], start: TransportStart, listener: TurnListener
) -> ZeroTransport:
    """Return the first transport that the server supports. Raises `BackendError` if it supports none."""
    for probe in probes:
        if (transport := await probe(start, listener)) is not None:
            return transport
    raise BackendError("the server supports no known way to send messages", code="protocol")


@asynccontextmanager
async def limit_time(seconds: float, address: str) -> AsyncIterator[None]:
    """End the turn of the block after this time. Raises `BackendError`; 0 means no limit."""
    try:
        async with asyncio.timeout(seconds or None) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise BackendError(
            f"Agent Zero at {address} did not finish within {seconds:g} s",
            code=TIME_LIMIT,
            hint="it may go on working; raise --max-time, limits.time or connection.max_wait_seconds",
        ) from None


class Silence:
    """How long the server has sent nothing. `timeout` and `keepalive` are seconds; 0 means none."""

    def __init__(self, timeout: float, keepalive: float, address: str, listener: TurnListener) -> None:
        self._timeout = timeout
        self._keepalive = keepalive
        self._address = address
        self._listener = listener
        self.restart()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def restart(self) -> None:
        """Count from now on, because something arrived."""
        self._began, self._shown_next = time.monotonic(), self._keepalive

    def check(self) -> None:
        """Show the silence every `keepalive` seconds. Raises `BackendError` at the timeout."""
        seconds = self.seconds
        if self._timeout and seconds >= self._timeout:
            raise BackendError(
                f"Agent Zero at {self._address} sent nothing for {self._timeout:g} s",
                code="timeout",
                hint="it may go on working; raise connection.timeout_seconds, or set it to 0",
            )
        if self._keepalive and seconds >= self._shown_next:
            self._shown_next = seconds + self._keepalive
            self._listener.on_waiting(seconds)


def make_message(prompt: Prompt, notes: Sequence[str], context: str) -> ZeroMessage:
    """Return the message of a prompt; after notes or a context, `USER:` marks where the prompt begins."""
    links = [block.uri for block in prompt.blocks if isinstance(block, ResourceLink) and block.uri not in prompt.text]
    text = "\n".join((prompt.text, *links))
    before = [*notes, context] if context else list(notes)
    if before:
        text = "\n\n".join((*before, f"USER: {text}"))
    return ZeroMessage(text, _attachments(prompt))


def _attachments(prompt: Prompt) -> tuple[ZeroAttachment, ...]:
    """Return the mentioned files and images; names that occur twice get a number."""
    attachments: dict[str, ZeroAttachment] = {}
    for block in prompt.blocks:
        match block:
            case EmbeddedResource(uri, text):
                name, data = os.path.basename(uri.rstrip("/")) or "file", base64.b64encode(text.encode()).decode()
            case ImageContent(mime, data, name):
                name = os.path.basename(name) or f"image{_SUFFIXES.get(mime, '')}"
            case _:
                continue
        stem, dot, suffix = name.rpartition(".")
        number = 1
        while name in attachments:
            number += 1
            name = f"{stem}-{number}{dot}{suffix}" if stem else f"{suffix}-{number}"
        attachments[name] = ZeroAttachment(name, data)
    return tuple(attachments.values())
