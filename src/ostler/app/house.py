"""The house on this machine: it opens sessions by joining settings, journal, ground, tools, policy and backend."""

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ostler import __version__
from ostler.app.agents import AgentChoice
from ostler.app.backends import make_engine, tree_budget
from ostler.app.folders import project_folder as project_folder  # many ask the house for both
from ostler.app.folders import workspace as workspace
from ostler.app.grounds import SessionGround, Shell, make_ground, settle_killed
from ostler.app.knowing import Knowledge
from ostler.app.known_secrets import secrets_in_use
from ostler.app.models import ModelChoice, choose_model
from ostler.app.options import RunOptions
from ostler.app.policies import make_policy
from ostler.app.profile_option import ProfileOption
from ostler.app.sessions import agent_before, open_journal, session_index, session_store, summary
from ostler.app.titling import helpers
from ostler.app.tools import make_hooks, make_tools
from ostler.app.trusting import load_settings, waiting
from ostler.backends.engine.guests.budget import Budget
from ostler.backends.engine.guests.validate import News, no_news
from ostler.backends.engine.helpers import Helpers
from ostler.journal.memory import MemoryJournal
from ostler.journal.store import new_id
from ostler.knowledge.agent import Agent
from ostler.session.concealing import concealing
from ostler.session.session import Session
from ostler.settings.effective import Settings
from ostler.settings.grants import ProjectGrants
from ostler.settings.home import project_id
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.seams import Backend, Ground, Journal, ToolRunner
from ostler.vocabulary.sessions import Opening, Query, SessionSummary

if TYPE_CHECKING:
    from ostler.app.acp_backend import AgentJoin
    from ostler.app.undoing import WorkspaceUndo
    from ostler.workspace.watch import Watch

MOST_SAID = 8


class LocalHouse:
    """What a face is given; made once per process."""

    def __init__(
        self,
        options: RunOptions,
        say: Callable[[str], None],
        model: ModelChoice | None = None,
        backend: Backend | None = None,
    ) -> None:
        """`say` is told in a line each what a person should know; `model` is for whoever has chosen one already, and
        `backend` for whoever brings along what thinks in the one session that is opened."""
        self._options = options
        self._say = say
        self._model = model
        self._names = model is None
        self._given = backend

    async def open(self, opening: Opening, *, tools: ToolRunner | None = None, ground: Ground | None = None) -> Session:
        cwd = workspace(opening.cwd)
        settings = self._settings(cwd)
        await settle_killed(self._say)
        opening = self._with_backend(opening, cwd, settings)
        own = ground if isinstance(ground, SessionGround) else None
        if not (ground or tools):
            own = make_ground(cwd, settings, self._options, attended=opening.attended)
        agents = self._agents(cwd, settings)
        if own:
            own.grant_folders(opening.directories)
        policy = make_policy(settings, self._options, opening.directories, attended=opening.attended)
        choice = AgentChoice(agents, policy, self._options, own.shell if own else None)
        journal = partial(self._journal, settings, cwd)
        budget = tree_budget(settings, self._options)
        below = None
        if own:
            from ostler.app.subagents import Subagents

            bench = partial(_childs_bench, own, settings)
            below = Subagents(cwd, settings, self._options, agents, choice, journal, budget, bench)
        ground = ground or own or make_ground(cwd, settings, self._options, attended=opening.attended)
        joined = self._joined(opening, cwd, ground, settings)
        if joined:
            tools = joined.tools
        tools = tools or make_tools(ground, settings, choice.offers, below.names() if below else {})
        given, undo = joined.backend if joined else self._given, self._undo(cwd, opening, own)
        news = undo.news if undo else no_news
        backend = await self._backend(given, opening.backend, cwd, tools, settings, choice, budget, news)
        if below:
            below.model = self._model
        session = Session(
            backend=backend,
            tools=tools,
            policy=choice.policy,
            grants=None if self._options.ephemeral else project_grants(cwd),
            undo=undo,
            spawner=below.spawn if below and below.names() else None,
            cwd=str(cwd),
            conceal=concealing(secrets_in_use(settings, os.environ, self._options.model.get("api_key", ""))),
            journal=journal(opening.resume, fork=opening.fork),  # last: whatever fails before it leaves nothing held
        )
        name = joined.name if joined else opening.backend
        await session.open(version=__version__, backend=name, options=self._chosen(opening))
        return session

    def _with_backend(self, opening: Opening, cwd: Path, settings: Settings) -> Opening:
        """Where no backend is named: the agent that the session was with before, else the engine."""
        if opening.backend:
            return opening
        resumes = opening.resume and not self._options.ephemeral
        before = agent_before(settings, cwd, opening.resume) if resumes else ""
        if before:
            self._say(f"backend: {before}, which this session is with")
        return msgspec.structs.replace(opening, backend=before or "engine")

    def _chosen(self, opening: Opening) -> dict[str, str]:
        return {**({"agent": self._options.agent} if self._options.agent else {}), **opening.options}

    def _settings(self, cwd: Path) -> Settings:
        settings = load_settings(cwd, trust=self._options.trust)
        for note in (*settings.notes, *map(str, settings.problems)):
            self._say(note)
        if held := waiting(cwd, settings):
            self._say(f"{held} settings of this project wait for trust: ostler trust shows them")
        return settings

    def _agents(self, cwd: Path, settings: Settings) -> dict[str, Agent]:
        """Whoever can work here; what is wrong with the workspace's files is said meanwhile."""
        knowledge = Knowledge(str(cwd), settings)
        agents = knowledge.agents(trusted=settings.trusted)
        problems = knowledge.problems(trusted=settings.trusted)
        for problem in problems[:MOST_SAID]:
            self._say(problem)
        if len(problems) > MOST_SAID:
            self._say(f"and {len(problems) - MOST_SAID} more such things are wrong with files here")
        return agents

    def _joined(self, opening: Opening, cwd: Path, ground: Ground, settings: Settings) -> "AgentJoin | None":
        """Somebody's agent, with the door it needs; nothing where the backend is none."""
        if not opening.backend.startswith("acp:"):
            return None
        from ostler.app.acp_house import join_agent

        return join_agent(opening, cwd, ground, settings, self._options.model)

    async def _backend(
        self,
        given: Backend | None,
        name: str,
        cwd: Path,
        tools: ToolRunner,
        settings: Settings,
        choice: AgentChoice,
        budget: Budget,
        news: News,
    ) -> Backend:
        backend = given or ProfileOption(await self._engine(name, cwd, tools, settings, choice, budget, news), choice)
        hooks = make_hooks(settings, str(cwd))
        if not hooks:
            return backend
        from ostler.app.hooks import HookedBackend

        return HookedBackend(backend, hooks)

    async def _engine(
        self,
        name: str,
        cwd: Path,
        tools: ToolRunner,
        settings: Settings,
        choice: AgentChoice,
        budget: Budget,
        news: News,
    ) -> Backend:
        if name != "engine":
            raise UsageError(f"there is no backend {name!r}", hint="there are: engine, acp:NAME")
        hidden = helpers(settings, self._options, choice.hidden) if self._names else Helpers(choice.hidden)
        if self._model is None:
            self._model = await choose_model(settings, self._options.model, os.environ)
            self._say(f"model: {self._model.told}")
        roles = choice.take
        return make_engine(str(cwd), self._model, tools.specs, settings, self._options, roles, budget, hidden, news)

    async def list(self, query: Query) -> Sequence[SessionSummary]:
        return await asyncio.to_thread(self._listed, query)

    async def delete(self, session_id: str) -> None:
        await asyncio.to_thread(self._delete, session_id)

    def _delete(self, session_id: str) -> None:
        """For good: also what the index knows of it."""
        cwd = workspace(self._options.cwd)
        settings = load_settings(cwd)
        store, index = session_store(settings), session_index(settings)
        try:
            store.delete(store.find(session_id, project_id(cwd)))
            index.purge()
        finally:
            index.close()

    def _listed(self, query: Query) -> Sequence[SessionSummary]:
        """In a thread: the index may have to be read up first."""
        cwd = workspace(query.cwd or self._options.cwd)
        index = session_index(load_settings(cwd))
        project = project_id(cwd) if query.cwd else ""
        try:
            if query.text:
                return [summary(hit.session) for hit in index.search(query.text, project, query.limit)]
            return [summary(listed) for listed in index.sessions(project, query.limit)]
        finally:
            index.close()

    def _undo(self, cwd: Path, opening: Opening, own: SessionGround | None) -> "WorkspaceUndo | Watch | None":
        """Where something may be changed, what was there before is kept, or is at least known."""
        if not (opening.attended or self._options.write):
            return None
        if self._options.ephemeral:
            from ostler.workspace.watch import Watch

            return Watch(str(cwd))
        from ostler.app.undo_gaps import KnownGaps
        from ostler.app.undoing import WorkspaceUndo, checkpoints

        past, known = checkpoints(cwd, project_folder(cwd)), KnownGaps(project_folder(cwd))
        return WorkspaceUndo(past, known, own.shell.busy) if own else WorkspaceUndo(past, known)

    def _journal(self, settings: Settings, cwd: Path, resume: str = "", *, fork: bool = False) -> Journal:
        if not self._options.ephemeral:
            return open_journal(settings, cwd, resume, fork, self._options.model.get("api_key", ""))
        if resume:
            raise UsageError(
                "--ephemeral keeps nothing, so it cannot go on with a session", hint="leave one of them out"
            )
        return MemoryJournal(new_id())


def _childs_bench(ground: SessionGround, settings: Settings, choice: AgentChoice) -> tuple[ToolRunner, Shell]:
    """The built-in tools on what the parent sees."""
    own = ground.for_child()
    return make_tools(own, settings, choice.offers), own.shell


def project_grants(cwd: Path) -> ProjectGrants:
    """The standing rules a person gave for a workspace."""
    return ProjectGrants(project_folder(cwd))
