"""The public Python API: `open_session`, `run` and their result types."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypedDict, Unpack, get_args

import msgspec

from ostler.app.session_manager import LocalSessionManager
from ostler.core.errors import UsageError
from ostler.core.protocols import Backend
from ostler.core.sessions import OpenSessionRequest, Profile
from ostler.frontends.python.conversation import ApprovalCallback, CompletedCall, Conversation, TurnResult
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_choice import ModelChoice
from ostler.models.model_types import ModelClient
from ostler.settings.run_options import RunOptions

__all__ = ("CompletedCall", "Conversation", "TurnResult", "open_session", "run")


class SessionFlags(TypedDict, total=False):
    """The flags of `ostler run`, with the same meaning."""

    agent: str
    write: bool
    yolo: bool
    allow: tuple[str, ...]
    profile: str
    trust: bool
    max_steps: int
    max_tokens: int
    max_cost: float
    max_time: float
    ephemeral: bool


@asynccontextmanager
async def open_session(
    cwd: str = ".",
    *,
    model: str | ModelClient = "",
    backend: str | Backend | None = None,
    base_url: str = "",
    api_key: str = "",
    ask: ApprovalCallback | None = None,
    resume: str = "",
    **flags: Unpack[SessionFlags],
) -> AsyncIterator[Conversation]:
    """Open a session in a folder; it is closed at the end of the block.

    `model` is the name of a profile or model, or your own client; by default the same model as in `ostler run`.
    `backend` replaces the engine: your own, or a name such as `remote:URL`, as for `--backend`. `ask` answers approval
    requests; without it they are denied.
    """
    notes: list[str] = []
    _check_argument("model", model, ("name", "context_limit", "stream"), str)
    _check_argument("backend", backend or "", ("open", "run_turn", "apply", "aclose"), str)
    names = {"model": model if isinstance(model, str) else "", "base_url": base_url, "api_key": api_key}
    options = _make_options(cwd, {name: value for name, value in names.items() if value}, flags)
    choice = None if isinstance(model, str) else _fixed_model(model)
    own = None if isinstance(backend, str) else backend
    name = backend if isinstance(backend, str) else "library" if backend else ""
    manager = LocalSessionManager(options, notes.append, choice, own)
    session = await manager.open(OpenSessionRequest(cwd, name, resume=resume, interactive=ask is not None))
    try:
        yield Conversation(session, notes, ask)
    finally:
        await session.aclose()


def run(
    prompt: str,
    cwd: str = ".",
    *,
    model: str | ModelClient = "",
    backend: str | Backend | None = None,
    base_url: str = "",
    api_key: str = "",
    **flags: Unpack[SessionFlags],
) -> TurnResult:
    """Run one prompt in its own session, from synchronous code."""

    async def run_prompt() -> TurnResult:
        async with open_session(
            cwd, model=model, backend=backend, base_url=base_url, api_key=api_key, **flags
        ) as conversation:
            return await conversation.run(prompt)

    if _in_event_loop():  # asyncio's own error does not say what to do instead
        raise UsageError(
            "ostler.run cannot be used in asynchronous code or a notebook",
            hint="use: async with ostler.open_session(…) as conversation",
        )
    return asyncio.run(run_prompt())


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _check_argument(argument: str, value: object, attributes: tuple[str, ...], other_type: type) -> None:
    """Raise `UsageError` if the value lacks an attribute, instead of failing in the middle of a turn."""
    missing = [name for name in attributes if not hasattr(value, name)]
    if missing and not isinstance(value, other_type):
        raise UsageError(f"argument {argument} has no {', '.join(missing)}", hint="see docs/python.md")


def _make_options(cwd: str, names: dict[str, str], flags: SessionFlags) -> RunOptions:
    """Validate the flags like the command line and return them as `RunOptions`."""
    if unknown := sorted(flags.keys() - SessionFlags.__annotations__.keys()):
        raise UsageError(
            f"open_session has no argument {unknown[0]!r}", hint=f"available: {', '.join(SessionFlags.__annotations__)}"
        )
    try:
        options = msgspec.convert({"cwd": cwd, "model": names, **flags}, RunOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"invalid argument of open_session: {error}") from None
    if options.profile not in ("", *get_args(Profile)):
        raise UsageError(f"unknown profile {options.profile!r}", hint=f"available: {', '.join(get_args(Profile))}")
    _check_limits(flags)
    return msgspec.structs.replace(options, write=options.write or options.yolo)


def _check_limits(flags: SessionFlags) -> None:
    """Raise `UsageError` if a limit is zero, negative or too large."""
    for name in ("max_steps", "max_tokens", "max_cost", "max_time"):
        minimum, maximum = (1, sys.maxsize) if name in ("max_steps", "max_tokens") else (sys.float_info.min, 1e9)
        if name in flags and not minimum <= flags[name] <= maximum:
            raise UsageError(
                f"invalid limit {name}={flags[name]}",
                hint="use an integer of at least 1" if minimum == 1 else "use a number above 0 and up to 1e9",
            )


def _fixed_model(client: ModelClient) -> ModelChoice:
    """Return a choice that always uses the given client."""

    def make(name: str) -> ModelClient:
        if name not in ("", client.name):
            raise UsageError(f"unknown model {name[:80]!r}; this session was opened with {client.name!r} only")
        return _BorrowedModel(client)

    return ModelChoice(f"{client.name}, set by the program", make)


class _BorrowedModel(ModelClientWrapper):
    """A client that the caller created and closes."""

    async def aclose(self) -> None:
        """Do nothing: the caller closes the client."""
