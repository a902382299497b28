"""One session as an editor has it open: prompts become turns, events become updates, asks become requests."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from ostler.commands.outcomes import Say
from ostler.commands.run import Commands
from ostler.commands.services import Services
from ostler.faces.editor.asking import Asking
from ostler.faces.editor.ending import added, answer_of
from ostler.faces.editor.options import Options
from ostler.faces.editor.premises import Editor
from ostler.faces.editor.reading import blocks_of, words_of
from ostler.faces.editor.slash import Slashes, told_in_words
from ostler.faces.editor.telling import Teller, counting
from ostler.vocabulary.errors import OstlerError
from ostler.vocabulary.events import Envelope, InfoChanged, OptionChanged, TurnEnded, UsageReported
from ostler.vocabulary.prompt import Block, Prompt, Text
from ostler.vocabulary.seams import Session, Turn
from ostler.vocabulary.sessions import SetOption, Steer
from ostler.wire.acp import ConfigOption, Content, text_content
from ostler.wire.acp_calls import PromptAnswer, PromptUsage, SessionOpen
from ostler.wire.acp_updates import AgentMessageChunk, CommandsTold, ConfigTold, KnownUpdate, ModeChanged, UsageTold
from ostler.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, RpcError

MODELS_SECONDS = 1.0


class Run:
    """One prompt from its arrival to its answer; it can be called off at any moment."""

    def __init__(self) -> None:
        self.cancelled = False
        self.turn: Turn | None = None
        self.work: asyncio.Future[PromptAnswer] | None = None

    def cancel(self) -> None:
        self.cancelled = True
        if self.turn:
            self.turn.cancel()
        elif self.work:
            self.work.cancel()


class LiveSession:
    """Follows a session from its first event; `opened_at` parts what was from what is."""

    def __init__(
        self, session: Session, cwd: str, services: Services, editor: Editor, directories: Sequence[str] = ()
    ) -> None:
        """`directories` can be read besides `cwd`; whoever works is told of them with the first prompt."""
        self._directories = directories
        self._session = session
        self._services = services
        self._editor = editor
        self._teller = Teller(cwd)
        self._options = Options(session.info)
        self._mode = self._options.mode
        self._commands = Commands(session, services, new_id)
        self._slashes = Slashes(self._commands, services, session)
        self._asking = Asking(editor, cwd, session.settle, self._teller.call)
        editor.terminal_created = self._terminal
        self._run: Run | None = None
        self._ended: dict[str, asyncio.Future[TurnEnded]] = {}
        self._used = PromptUsage()
        self._past: list[Envelope] = []
        self._held: list[KnownUpdate] | None = []
        self._caught_up = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def id(self) -> str:
        return self._session.id

    # -- opening ---------------------------------------------------------------------------------------------------

    async def begin(self, *, replay: bool) -> SessionOpen:
        """Follow it, tell what was if that is wanted, and say what can be chosen."""
        self._do(self._follow())
        await self._look_around()
        await self._caught_up.wait()
        self._take_up(replay=replay)
        asyncio.get_running_loop().call_soon(self._answered)
        return SessionOpen(self.id, self._options.modes(), self._options.listed())

    def mention(self, told: str) -> None:
        """Something for the person, before anything else is said in the session."""
        self._tell(AgentMessageChunk(text_content(told), new_id()))

    def _take_up(self, *, replay: bool) -> None:
        """What was: told, or only taken in."""
        self._teller.replaying = True
        usage: KnownUpdate | None = None
        for envelope in counting(self._past):
            for update in self._teller.take(envelope.event):
                if isinstance(update, UsageTold):
                    usage = update
                elif replay:
                    self._editor.tell(update)
        if usage and replay:
            self._editor.tell(usage)
        self._teller.replaying = False
        self._past = []

    def _answered(self) -> None:
        """The editor knows the session now, so it can be told of it."""
        held, self._held = self._held or [], None
        for update in held:
            self._editor.tell(update)
        self._do(self._tell_commands())

    async def _look_around(self) -> None:
        """The choices; models are asked of a server, which may take its time."""
        asking = asyncio.ensure_future(self._services.models())
        asking.add_done_callback(self._models_known)
        self._options.agents = await self._services.agents()
        await asyncio.wait({asking}, timeout=MODELS_SECONDS)

    def _models_known(self, asked: "asyncio.Future[Sequence[str]]") -> None:
        if asked.cancelled() or asked.exception():
            return
        self._options.models = asked.result()
        if self._held is None:
            self._editor.tell(ConfigTold(self._options.listed()))

    async def _tell_commands(self) -> None:
        self._editor.tell(CommandsTold(await self._slashes.listed()))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"session {self.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- what happens ----------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        try:
            async for envelope in self._session.subscribe(0):
                self._commands.hear(envelope)
                if envelope.seq > self._session.opened_at:
                    self._caught_up.set()
                    self._hear(envelope)
                else:
                    self._past.append(envelope)
        finally:
            self._caught_up.set()
            for over in self._ended.values():
                if not over.done():  # whoever waited may have been called off first
                    over.set_exception(RpcError(INTERNAL_ERROR, "the session has ended"))

    def _hear(self, envelope: Envelope) -> None:
        event = envelope.event
        for update in self._teller.take(event):
            self._tell(update)
        if self._options.hear(event):
            self._tell_options()
        self._asking.hear(event)
        match event:
            case UsageReported():
                self._used = added(self._used, event)
            case InfoChanged() if self._held is None:
                self._do(self._tell_commands())
            case TurnEnded(turn_id) if turn_id in self._ended:
                self._ended.pop(turn_id).set_result(event)
            case _:
                pass

    def _terminal(self, command: str, terminal_id: str) -> None:
        if update := self._teller.terminal(command, terminal_id):
            self._tell(update)

    def _tell_options(self) -> None:
        self._tell(ConfigTold(self._options.listed()))
        if self._options.mode != self._mode:
            self._mode = self._options.mode
            self._tell(ModeChanged(self._mode))

    def _tell(self, update: KnownUpdate) -> None:
        if self._held is not None:
            self._held.append(update)
        else:
            self._editor.tell(update)

    # -- what the editor wants -------------------------------------------------------------------------------------

    def prompt(self, content: Sequence[Content]) -> Awaitable[PromptAnswer]:
        """Begin at once, so that a cancel right behind it finds it."""
        if self._run:
            raise RpcError(INVALID_REQUEST, "a turn is still running in this session; wait for it, or cancel it")
        blocks = blocks_of(content)
        self._run = Run()
        return self._play(self._run, blocks)

    async def steer(self, content: Sequence[Content], *, waits: bool) -> dict[str, str]:
        """Words for the turn that runs; where none does, the editor sends them itself if it `waits`, else one begins.

        This is no part of the protocol yet, but what several agents and editors have agreed on.
        """
        if not (self._run and self._run.turn):
            if waits:
                return {"outcome": "promptRequired", "reason": "noRunningTurn"}
            self._do(_by_itself(self.prompt(content)))
            return {"outcome": "startedNewTurn"}
        blocks = blocks_of(content)
        ready = await self._services.words(words_of(blocks))
        prompt = replace(ready.prompt, blocks=(*blocks, *ready.prompt.blocks[1:]))
        if not await self._session.apply(Steer(prompt)):
            raise RpcError(INVALID_REQUEST, "this backend takes no words during a turn")
        return {"outcome": "injected"}

    def cancel(self) -> None:
        if self._run:
            self._run.cancel()

    @property
    def mode_option(self) -> str:
        return self._options.mode_option

    async def choose(self, option_id: str, wanted: str) -> tuple[ConfigOption, ...]:
        """Choose something; what is not among the choices is refused."""
        value = self._options.value(option_id, wanted)
        if value is None:
            raise RpcError(INVALID_PARAMS, f"there is no {wanted[:80]!r} to choose for {option_id[:80]!r}")
        if not await self._session.apply(SetOption(option_id, value)):
            raise RpcError(INTERNAL_ERROR, f"{option_id} cannot be changed in this session")
        if self._options.hear(OptionChanged(option_id, value)):
            self._tell_options()
        return self._options.listed()

    async def aclose(self) -> None:
        """End what runs, and let the session go."""
        self.cancel()
        await self._session.aclose()
        await self._asking.aclose()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    # -- a turn ----------------------------------------------------------------------------------------------------

    async def _play(self, run: Run, blocks: list[Block]) -> PromptAnswer:
        work = run.work = asyncio.ensure_future(self._work(run, blocks))
        if run.cancelled:
            work.cancel()
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            run.cancel()
            await asyncio.gather(work, return_exceptions=True)  # how a cancelled turn failed interests nobody
            return PromptAnswer("cancelled")
        finally:
            self._run = None

    async def _work(self, run: Run, blocks: list[Block]) -> PromptAnswer:
        typed = words_of(blocks)
        outcome = await self._slashes.run(typed)
        if outcome is None:
            ready = await self._services.words(typed)
            return await self._turn(run, replace(ready.prompt, blocks=(*blocks, *ready.prompt.blocks[1:])))
        if isinstance(outcome, Say):
            others = [block for block in blocks if not isinstance(block, Text)]
            return await self._turn(run, replace(outcome.prompt, blocks=(*outcome.prompt.blocks, *others)))
        self._editor.tell(AgentMessageChunk(text_content(told_in_words(outcome)), new_id()))
        return PromptAnswer("end_turn")

    async def _turn(self, run: Run, prompt: Prompt) -> PromptAnswer:
        self._used = PromptUsage()
        if self._directories:
            prompt = replace(prompt, blocks=(*prompt.blocks, Text(besides(self._directories))))
            self._directories = ()
        turn = run.turn = self._session.start(prompt)
        over = self._ended[turn.id] = asyncio.get_running_loop().create_future()
        return answer_of(await over, self._used, cancelled=run.cancelled)


async def _by_itself(turn: Awaitable[PromptAnswer]) -> None:
    """A turn that nobody waits for; what comes of it is told in updates."""
    with contextlib.suppress(RpcError, OstlerError):
        await turn


def besides(directories: Sequence[str]) -> str:
    """What a model is told of folders that belong to the work too."""
    return f"\n\n[Besides the workspace these folders can be read, but not changed: {', '.join(directories)}]"


def new_id() -> str:
    """An id that no other has."""
    return f"editor-{os.urandom(6).hex()}"
