"""The public Python API: `open_session`, `run` and their result types."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Unpack

from ostler.app.session_manager import LocalSessionManager
from ostler.core.errors import UsageError
from ostler.core.protocols import Backend
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.python.arguments import SessionFlags, check_argument, make_options
from ostler.frontends.python.conversation import ApprovalCallback, CompletedCall, Conversation, TurnResult
from ostler.models.fixed_model import fixed_model
from ostler.models.model_types import ModelClient

__all__ = ("CompletedCall", "Conversation", "TurnResult", "open_session", "run")


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
    check_argument("model", model, ("name", "context_limit", "stream"), str)
    check_argument("backend", backend or "", ("open", "run_turn", "apply", "aclose"), str)
    names = {"model": model if isinstance(model, str) else "", "base_url": base_url, "api_key": api_key}
    options = make_options(
        cwd, {name: value for name, value in names.items() if value}, flags, interactive=ask is not None
    )
    choice = None if isinstance(model, str) else fixed_model(model)
    own = None if isinstance(backend, str) else backend
    name = backend if isinstance(backend, str) else "library" if backend else ""
    manager = LocalSessionManager(options, notes.append, choice, own)
    request = OpenSessionRequest(cwd, name, resume=resume, interactive=ask is not None)
    async with aclosing(await manager.open(request)) as session:
        yield Conversation(session, notes, ask)


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
