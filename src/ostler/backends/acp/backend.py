"""The backend: a session with somebody's agent, from its start to its end, in our words."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import msgspec

from ostler.backends.acp.agent import Agent, Patience, Place
from ostler.backends.acp.options import AgentOptions
from ostler.backends.acp.process import Launch, start_agent
from ostler.backends.acp.prompting import blocks
from ostler.backends.acp.serving import Powers, Serving
from ostler.backends.acp.telling import Teller
from ostler.backends.acp.watch import Watch
from ostler.vocabulary.errors import BackendError, Fault, OstlerError, UsageError
from ostler.vocabulary.events import Delivered, FarMark, InfoChanged, Notice, TurnEnded
from ostler.vocabulary.prompt import Prompt
from ostler.vocabulary.seams import Stage
from ostler.vocabulary.sessions import Change, SessionInfo, SessionStart, SetOption, Steer
from ostler.wire.acp import McpServer
from ostler.wire.acp_calls import ClientCapabilities, FileSystem, PromptAnswer, SessionOpen
from ostler.wire.acp_updates import Update, read_update
from ostler.wire.jsonrpc import Mirror, Params

DRAIN = 0.1  # some agents send the last of an answer after it
CANCEL_WAIT = 5.0
_LIMITS = {"max_tokens": "tokens", "max_turn_requests": "steps"}


class Plan(msgspec.Struct, frozen=True):
    """What to open: which program, which session of its, with what; what is `wanted` of it must be had."""

    launch: Launch
    version: str
    mcp_servers: tuple[McpServer, ...] = ()
    directories: tuple[str, ...] = ()
    resume: str = ""
    fork: bool = False
    login: str = ""
    patience: Patience = Patience()
    elicits: bool = True
    wanted: tuple[tuple[str, str], ...] = ()


class AcpBackend:
    """One agent process with one session. `powers` are what the agent may have of this side."""

    def __init__(self, plan: Plan, powers: Powers, watch: Watch | None = None, mirror: Mirror | None = None) -> None:
        self._plan = plan
        self._powers = powers
        self._watch = watch or Watch()
        self._mirror = mirror
        self._early: list[tuple[str, Update]] | None = []
        self._session = ""
        self._forks = plan.fork
        self._steered: list[str] = []
        self._name = plan.launch.name
        self._start: SessionStart
        self._stage: Stage
        self._teller: Teller
        self._serving: Serving
        self.answer: PromptAnswer | None = None
        self.agent: Agent
        self.options: AgentOptions

    @property
    def far_session(self) -> str:
        """The agent's own id of the session."""
        return self._session

    @property
    def teller(self) -> Teller:
        return self._teller

    # -- the peer's handler ----------------------------------------------------------------------------------------

    def requested(self, method: str, params: Params) -> Awaitable[Any]:
        return self._serving.requested(method, params)

    def notified(self, method: str, params: Params) -> None:
        """Updates, also those of a session whose id is not told yet; other notifications are none of ours."""
        if method != "session/update":
            return
        update, session = read_update(params.get("update")), str(params.get("sessionId"))
        if self._early is not None and self._teller.phase != "replay":
            self._early.append((session, update))
        elif self._teller.phase == "replay" or session == self._session:
            self._teller.update(update)

    # -- the backend -----------------------------------------------------------------------------------------------

    async def open(self, start: SessionStart, stage: Stage) -> SessionInfo:
        self._start = start
        self._stage = stage
        self._teller = Teller(self._name, start.cwd, stage.emit, self._watch)
        self._serving = Serving(stage, start.cwd, self._teller, self._powers, self._watch)
        await self._begin(start)
        self._teller.info_changed = lambda: stage.emit(InfoChanged(self._info()))
        return self._info()

    async def _begin(self, start: SessionStart) -> None:
        """Start the program and open the session; nothing is left of it when that fails."""
        self._early = []
        process = await start_agent(self._plan.launch, self, mirror=self._mirror)
        self.agent = Agent(process, self._plan.patience)
        try:
            await self.agent.initialize(self._capabilities(), self._plan.version)
            if self._plan.login:
                await self.agent.authenticate(self._plan.login)
            self._opened(await self._open_session(start))
            await self._set_wanted(start.options)
            for name, value in self._plan.wanted:
                await self.options.set(name, value)
        except BaseException:
            await process.stop()
            raise
        self._stage.emit(FarMark(self._session, 0))

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        if prompt is None:
            raise BackendError(f"{self._name} began no turn by itself", code="protocol")
        if self.agent.process.peer.gone:
            await self.agent.process.stop()
            await self._begin(self._start)  # it died in an earlier turn
        self._teller.begin_turn()
        asking = asyncio.ensure_future(self.agent.prompt(self._session, blocks(prompt, self.agent.told)))
        cut, self.answer = True, None
        try:
            self.answer = answer = await asyncio.shield(asking)
            await asyncio.sleep(DRAIN)
            cut = False
        except asyncio.CancelledError:
            await self._call_off(asking)
            raise
        finally:
            self._teller.finish_turn(cut=cut)
            self._powers.forget()
            steered, self._steered = self._steered, []
            for prompt_id in steered:
                self._stage.emit(Delivered(prompt_id))
        self._teller.usage(answer, self._info().option("model"))
        return self._ended(answer)

    async def apply(self, change: Change) -> bool:
        try:
            match change:
                case SetOption(name, value):
                    await self.options.set(name, value)
                case Steer(prompt):
                    return await self._steer(prompt)
                case _:
                    return False
        except OstlerError as error:
            self._stage.emit(Notice("warning", str(error)))
            return False
        self._stage.emit(InfoChanged(self._info()))
        return True

    async def _steer(self, prompt: Prompt) -> bool:
        """Whether the agent took the words; where no turn runs any more, they can begin one."""
        if self._teller.phase != "turn":
            return False
        taken = await self.agent.steer(self._session, blocks(prompt, self.agent.told))
        self._steered += [prompt.id] if taken else []
        return taken

    async def break_off(self) -> None:
        """End the agent where it is, for whoever does not want to wait until it has let go of its turn."""
        await self.agent.process.stop()

    async def aclose(self) -> None:
        if not self._session:
            return
        await self.agent.close_session(self._session)
        await self.agent.process.stop()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _capabilities(self) -> ClientCapabilities:
        elicits = self._plan.elicits or bool(self._powers.answers)
        return ClientCapabilities(
            FileSystem(self._powers.files, self._powers.files),
            self._powers.terminal,
            {"form": {}, "url": {}} if elicits else None,
            {"configOptions": {"boolean": {}}},
        )

    async def _open_session(self, start: SessionStart) -> SessionOpen:
        """The session that was asked for, the one this journal went on with, or a new one."""
        place = Place(start.cwd, self._plan.mcp_servers, self._plan.directories)
        earlier = self._plan.resume or self._marked()
        if not earlier:
            return await self.agent.new_session(place)
        if self._forks:
            return await self._copy(earlier, place)
        if not self.agent.can_go_on:
            return await self._instead(place, UsageError(f"{self._name} cannot go on with earlier sessions"))
        self._teller.phase = "replay"
        try:
            return await self.agent.go_on(earlier, place)
        except BackendError as error:
            failure = error
        finally:
            self._teller.phase = "idle"
        return await self._instead(place, failure)

    async def _copy(self, earlier: str, place: Place) -> SessionOpen:
        """Never the session itself: what is said in a copy must not be said in the other."""
        if not self.agent.told.agent_capabilities.can("fork"):
            return await self._instead(place, UsageError(f"{self._name} cannot copy sessions"))
        try:
            return await self.agent.fork(earlier, place)
        except BackendError as error:
            failure = error
        return await self._instead(place, failure)

    async def _instead(self, place: Place, error: OstlerError) -> SessionOpen:
        """A session that was asked for by its id must be that one; a journal goes on with a new one, and says so."""
        if self._plan.resume:
            raise error
        self._stage.emit(Notice("warning", f"{error}; it begins anew and knows nothing of what was said before"))
        return await self.agent.new_session(place)

    def _marked(self) -> str:
        marks = [event.epoch for event in self._stage.past() if isinstance(event, FarMark)]
        return marks[-1] if marks else ""

    def _opened(self, opened: SessionOpen) -> None:
        self._session, self._forks = opened.session_id or "", False
        self.options = AgentOptions(self.agent, self._session, opened)
        self._teller.options = self.options
        early, self._early = self._early or [], None
        for session, update in early:
            if session == self._session:
                self._teller.update(update)

    async def _set_wanted(self, wanted: dict[str, str]) -> None:
        """What a resumed session had; what this agent does not have any more is left."""
        standing = {option.id: option.value for option in self.options.listed()}
        for name, value in wanted.items():
            if name in standing and standing[name] != value:
                await self.options.set(name, value)

    def _info(self) -> SessionInfo:
        return SessionInfo(
            f"acp:{self._name}",
            self.options.listed(),
            self._teller.commands,
            can_steer=self.agent.can_steer,
            acts_itself=True,
            title=self._teller.title,
        )

    async def _call_off(self, asking: "asyncio.Future[PromptAnswer]") -> None:
        """Tell the agent, and wait until it has let go; one that does not is ended."""
        self.agent.cancel(self._session)
        await asyncio.wait({asking}, timeout=CANCEL_WAIT)
        if not asking.done():
            asking.cancel()
            await self.agent.process.stop()
        await asyncio.gather(asking, return_exceptions=True)  # how a cancelled turn failed interests nobody

    def _ended(self, answer: PromptAnswer) -> TurnEnded:
        reason = answer.stop_reason
        if reason in _LIMITS:
            return TurnEnded("", "limit", limit=_LIMITS[reason])
        if reason == "cancelled":
            return TurnEnded("", "cancelled")
        if reason == "refusal":
            return TurnEnded("", "failed", Fault("refusal", f"{self._name} refuses to go on with this"))
        if reason != "end_turn":
            self._stage.emit(Notice("info", f"{self._name} stopped for a reason this version does not know: {reason}"))
        return TurnEnded("", "done")
