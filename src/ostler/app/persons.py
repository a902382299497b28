"""What slash commands and completion use of this machine: files, models, agents, sessions, as the person may."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ostler.app.file_index import FileIndex, listed_paths
from ostler.app.folders import project_folder
from ostler.app.options import RunOptions
from ostler.app.surroundings import branch, sandbox
from ostler.app.trusting import load_settings
from ostler.commands.services import Call, Direction, Named, Ready
from ostler.settings.home import project_id
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.seams import House, Session
from ostler.vocabulary.sessions import Query, SessionSummary

if TYPE_CHECKING:
    from ostler.app.desk import Desk
    from ostler.app.knowing import Knowledge
    from ostler.app.prompting import Prompting
    from ostler.settings.effective import Settings

T = TypeVar("T")
FIRST_LOOK_SECONDS = 0.05
KNOWN_SECONDS = 3.0
LISTED = 20
RULES = ("AGENTS.md", "CLAUDE.md")


class PersonsServices:
    """One workspace; what files say is looked up anew, at most every few seconds."""

    def __init__(self, cwd: Path, options: RunOptions, house: House) -> None:
        self._cwd = cwd
        self._options = options
        self._house = house
        self._index = FileIndex(str(cwd))
        self._known: dict[str, tuple[float, Sequence[Named]]] = {}

    # -- words ---------------------------------------------------------------------------------------------------

    async def words(self, typed: str) -> Ready:
        made = await self._prompting().words(typed)
        return Ready(made.prompt, made.told)

    async def expand(self, name: str, arguments: str, call: Call) -> Ready | None:
        made = await self._prompting().expand(name, arguments, call)
        return Ready(made.prompt, made.told) if made else None

    def _prompting(self) -> "Prompting":
        """What the person names may lie outside the workspace: it was they who named it."""
        from ostler.app.prompting import Prompting

        return Prompting(self._cwd, self._settings(), outside=True)

    def _settings(self) -> "Settings":
        return load_settings(self._cwd, trust=self._options.trust)

    # -- files ---------------------------------------------------------------------------------------------------

    async def take_back(self, direction: Direction, turns: Sequence[str]) -> Sequence[str]:
        from ostler.app.undoing import checkpoints, take_back

        past = checkpoints(self._cwd, project_folder(self._cwd))
        try:
            return await take_back(past, direction, turns)
        finally:
            past.close()

    def not_undone(self) -> Sequence[str]:
        from ostler.app.undo_gaps import KnownGaps

        return KnownGaps(project_folder(self._cwd)).known()

    async def diff(self, path: str) -> str:
        from ostler.app.tree_diff import tree_diff

        return await tree_diff(self._cwd, self._settings(), self._options, path)

    def memory(self) -> str:
        found = (name for name in RULES if (self._cwd / name).is_file())
        return str(self._cwd / next(found, RULES[0]))

    async def files(self, wanted: str) -> Sequence[str]:
        """While the first look around goes on and found nothing yet, it is looked at again: no further key may come."""
        if wanted.startswith(("/", "~/", "../")):
            return await asyncio.to_thread(listed_paths, str(self._cwd), wanted)
        found = await asyncio.to_thread(self._indexed, wanted)
        while not found and not self._index.whole.is_set():
            await asyncio.sleep(FIRST_LOOK_SECONDS)
            found = await asyncio.to_thread(self._indexed, wanted)
        return found

    def _indexed(self, wanted: str) -> list[str]:
        self._index.refresh()
        self._index.whole.wait(FIRST_LOOK_SECONDS)
        return self._index.find(wanted.removeprefix("./"))

    # -- what can be chosen --------------------------------------------------------------------------------------

    async def models(self) -> Sequence[str]:
        from ostler.app.models_known import models_known

        return await models_known(self._settings(), self._options.model)

    def profiles(self) -> Sequence[Named]:
        from ostler.models.origin import without_secrets
        from ostler.settings.catalogue import catalogue

        entries = [candidate.entry for candidate in catalogue(self._settings()) if candidate.entry.name]
        return [
            Named(one.name, f"{one.model or 'its own model'} at {without_secrets(one.base_url)}", one.model)
            for one in entries
        ]

    async def agents(self) -> Sequence[Named]:
        return await self._looked_up("agents", self._agents)

    def _agents(self) -> list[Named]:
        settings = self._settings()
        agents = self._knowledge(settings).agents(trusted=settings.trusted).values()
        return sorted(
            (Named(agent.name, agent.description) for agent in agents if agent.talks), key=lambda one: one.name
        )

    def _knowledge(self, settings: "Settings") -> "Knowledge":
        from ostler.app.knowing import Knowledge

        return Knowledge(str(self._cwd), settings)

    async def skills(self) -> Sequence[Named]:
        def look() -> list[Named]:
            found = self._knowledge(self._settings()).skills.listed()
            return [Named(skill.name, skill.description) for skill in found]

        return await self._looked_up("skills", look)

    async def commands(self) -> Sequence[Named]:
        def look() -> list[Named]:
            return [Named(c.name, c.description or c.hint) for c in self._prompting().commands().values()]

        return await self._looked_up("commands", look)

    async def mcp(self) -> Sequence[str]:
        servers = self._settings().config.mcp
        width = max(map(len, servers), default=0)
        return [
            f"{name:<{width}}  {'set up' if server.enabled else 'switched off'}  {' '.join(server.command)}"
            for name, server in servers.items()
        ]

    async def _looked_up(self, what: str, look: Callable[[], Sequence[Named]]) -> Sequence[Named]:
        """In a thread: the files may lie on a slow disk."""
        at, known = self._known.get(what, (float("-inf"), ()))
        if time.monotonic() - at > KNOWN_SECONDS:
            known = await asyncio.to_thread(look)
            self._known[what] = (time.monotonic(), known)
        return known

    # -- sessions ------------------------------------------------------------------------------------------------

    async def sessions(self, words: str) -> Sequence[SessionSummary]:
        return await self._house.list(Query(str(self._cwd), words, LISTED))

    async def find(self, wanted: str) -> str:
        return await self._at_desk(lambda desk: desk.find(wanted))

    async def fork(self, session_id: str, at: int) -> str:
        return await self._at_desk(lambda desk: desk.fork(session_id, at))

    async def export(self, session_id: str, output: str) -> str:
        file = Path(os.path.expanduser(output or f"ostler-{session_id}.md"))
        file = file if file.is_absolute() else self._cwd / file
        await self._at_desk(lambda desk: list(desk.export(session_id, None, str(file), redact=True)))
        return str(file)

    async def _at_desk(self, work: "Callable[[Desk], T]") -> T:
        from ostler.app.desk import Desk

        if self._options.ephemeral:
            raise UsageError("--ephemeral keeps no sessions", hint="start without it")

        def at_desk() -> T:
            with Desk(str(self._cwd), everywhere=False, say=lambda line: None) as desk:
                return work(desk)

        return await asyncio.to_thread(at_desk)

    # -- around --------------------------------------------------------------------------------------------------

    def surroundings(self) -> Sequence[str]:
        where = branch(self._cwd)
        return [f"sandbox {self._sandbox}", *([where] if where else [])]

    @cached_property
    def _sandbox(self) -> str:
        return sandbox(self._settings().config.security.sandbox)

    def context(self, session: Session) -> Sequence[str]:
        from ostler.app.context import context_lines

        return context_lines(session, self._settings().config.compaction)

    async def doctor(self) -> Sequence[str]:
        from ostler.app.doctor import examine

        marks = {"good": "✓", "poor": "–", "bad": "✗"}
        found = await examine(str(self._cwd), self._options.model)
        return [f"{marks[one.state]} {one.name:<9} {one.told}{f' → {one.remedy}' * bool(one.remedy)}" for one in found]

    def left_behind(self) -> str:
        from ostler.app.queued import left_behind
        from ostler.app.sessions import session_store

        return "" if self._options.ephemeral else left_behind(session_store(self._settings()), project_id(self._cwd))
