"""The options of a session: its own, which apply with every backend, and those of the backend."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import msgspec

from ostler.core.errors import OstlerError, UsageError
from ostler.core.events import Event, Notice, OptionChanged, Reverted, TurnEnded
from ostler.core.prompt import Prompt, PromptTarget
from ostler.core.protocols import Backend, BackendContext
from ostler.core.sessions import SessionInfo, SetOption
from ostler.session.access import SessionAccess
from ostler.session.state import SessionState


class SessionOptions:
    """Sets options in the session and in its backend, so that both agree, and runs turns with them."""

    def __init__(
        self, access: SessionAccess, backend: Backend, state: SessionState, emit: Callable[[Event], None]
    ) -> None:
        self._access = access
        self._backend = backend
        self._state = state
        self._emit = emit
        self._backend_info = SessionInfo("")

    def prepare(self, requested: Mapping[str, str], backend: str) -> dict[str, str]:
        """Set the session's own options before the backend is opened. Return the options of the backend."""
        recorded = {name: value for name, value in self._state.options.items() if name not in requested}
        for warning in self._access.restore(recorded):
            self._emit(Notice("warning", warning))
        for name, value in requested.items():
            self._access.set_option(name, value)
        options = {**self._state.options, **requested}
        others = {name: value for name, value in options.items() if not self._access.owns(name, value)}
        return {name.removeprefix(f"{_short_name(backend)}."): value for name, value in others.items()}

    @property
    def agent(self) -> str:
        """The active agent, for a backend that uses it; empty if the session has none."""
        return next((option.value for option in self._access.options() if option.id == "agent"), "")

    def record(self, requested: Mapping[str, str], info: SessionInfo) -> None:
        """Record the requested options. Raises `UsageError` if neither the session nor the opened backend has one."""
        known = [option.id for option in self.merge(info).options]
        for name, value in requested.items():
            if value and name not in known and not self._access.owns(name, value):
                hint = f"available: {', '.join(known)}" if known else "it has no options"
                raise UsageError(f"{info.backend} has no option {name[:80]!r}", hint=hint)
            if self._state.options.get(name) != value:
                self._emit(OptionChanged(name, value))

    def merge(self, info: SessionInfo) -> SessionInfo:
        """Return the backend's info with the session's own options.

        Another meaning of the same id in the backend is published under the backend's name, such as `gemini.mode`.
        """
        self._backend_info = info
        own = {option.id: option for option in self._access.options()}
        shared = {"agent"} & own.keys() if info.has_agents else set()
        others = tuple(
            msgspec.structs.replace(option, id=f"{_short_name(info.backend)}.{option.id}")
            if option.id in own
            else option
            for option in info.options
            if option.id not in shared
        )
        return msgspec.structs.replace(info, options=(*own.values(), *others))

    async def set(self, change: SetOption) -> bool:
        """Set an option and record it. Return False if neither the session nor the backend has it."""
        if not await self._switch(change):
            return False
        self._emit(OptionChanged(change.id, change.value))
        return True

    async def _switch(self, change: SetOption) -> bool:
        """Set an option in the session and, if the backend has it too, there. Set it in both or in none."""
        before = next((option.value for option in self._access.options() if option.id == change.id), "")
        is_own = self._access.set_option(change.id, change.value)
        if is_own and not (change.id == "agent" and self._backend_info.has_agents):
            return True
        accepted = False
        try:
            accepted = await self._backend.apply(SetOption(self._backend_id(change.id), change.value))
        finally:
            if is_own and not accepted:
                self._access.set_option(change.id, before)
        return accepted

    def _backend_id(self, option_id: str) -> str:
        """Return the backend's own id of an option."""
        return option_id.removeprefix(f"{_short_name(self._backend_info.backend)}.")

    async def run_turn(self, prompt: Prompt | None, context: BackendContext, *, follows: bool = False) -> TurnEnded:
        """Run a turn of the backend with the agent and model that the prompt names.

        With `follows`, the backend follows or continues a turn that was already started.
        """
        async with self._targeted(prompt):
            target = prompt.target if prompt else None
            if target and target.selects_only:
                return _end_selection_turn(context, target)
            if target and target.task and not self._backend_info.has_agents:
                backend = self._backend_info.backend
                raise UsageError(f"{backend} has no subagents", hint="only the engine runs this command")
            return await self._backend.run_turn(None if follows else prompt)

    @asynccontextmanager
    async def _targeted(self, prompt: Prompt | None) -> AsyncIterator[None]:
        """Switch to the agent and model of a prompt for the block, or for the rest of the session."""
        target = prompt.target if prompt and prompt.target and not prompt.target.task else PromptTarget()
        requested = {"agent": target.agent, "model": target.model}
        before = {name: self._current(name) for name in requested}
        switched: list[str] = []
        try:
            for name, value in requested.items():
                if value and value != before[name] and await self._switch(SetOption(name, value)):
                    switched += [] if target.for_session else [name]
                    if target.for_session:
                        self._emit(OptionChanged(name, value))
            yield
        finally:
            for name in reversed(switched):
                await self._switch_back(name, self._state.options.get(name) or before[name])

    async def _switch_back(self, name: str, value: str) -> None:
        """Restore an option after a turn. The session's own permissions are restored even if the backend fails."""
        try:
            await self._switch(SetOption(name, value))
        except OstlerError as error:
            self._access.set_option(name, value)
            self._emit(Notice("warning", f"the backend keeps the {name} of this turn: {error}"))

    def _current(self, name: str) -> str:
        """Return the value of an option: as recorded, else the one that the session or the backend reports."""
        option = next((option for option in self._state.info.options if option.id == name), None)
        if option is None or (not option.choices and name not in (own.id for own in self._access.options())):
            return self._state.options.get(name, "")
        return option.value


def _short_name(backend: str) -> str:
    return backend.rpartition(":")[2]


def _end_selection_turn(context: BackendContext, target: PromptTarget) -> TurnEnded:
    """End a turn that only selected an agent: notify the user and hide the turn from the backend."""
    records = context.records()
    start = next(index for index in reversed(range(len(records))) if records.type_at(index) == "turn_started")
    context.emit(Reverted(records[start].seq - 1))
    context.emit(Notice("info", f"switched to agent {target.agent} for this session"))
    return TurnEnded("", "done")
