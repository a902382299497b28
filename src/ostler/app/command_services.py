"""Implements the services that slash commands and completion use."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing, closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ostler.core.errors import UsageError
from ostler.core.protocols import Session, SessionManager
from ostler.core.sessions import SessionQuery, SessionSummary
from ostler.interaction.services import TYPED, BuiltPrompt, Direction, NamedItem, PromptSource, RunTool
from ostler.knowledge.environment_info import git_branch, sandbox_name
from ostler.knowledge.trusted_settings import load_settings
from ostler.mcp.open_sources import open_source
from ostler.settings.home import project_id
from ostler.settings.project_paths import project_folder
from ostler.settings.run_options import RunOptions
from ostler.workspace.file_index import FileIndex

if TYPE_CHECKING:
    from ostler.app.project import Project
    from ostler.interaction.prompt_builder import PromptBuilder
    from ostler.settings.effective import Settings
    from ostler.storage.session_admin import SessionAdmin

T = TypeVar("T")
CACHE_SECONDS = 3.0
MAX_SESSIONS = 20
RULES_FILES = ("AGENTS.md", "CLAUDE.md")


class LocalCommandServices:
    """Command services for one workspace. Definitions in files are read again after a few seconds."""

    def __init__(self, cwd: Path, options: RunOptions, manager: SessionManager) -> None:
        self._cwd = cwd
        self._options = options
        self._manager = manager
        self._index = FileIndex(str(cwd))
        self._cache: dict[str, tuple[float, Sequence[NamedItem]]] = {}

    # -- prompts -------------------------------------------------------------------------------------------------

    async def build_prompt(self, text: str, source: PromptSource = TYPED) -> BuiltPrompt:
        return await self._prompt_builder(source.session_id).from_text(text, source)

    async def expand(
        self, name: str, arguments: str, run_tool: RunTool, source: PromptSource = TYPED
    ) -> BuiltPrompt | None:
        return await self._prompt_builder(source.session_id).expand(name, arguments, run_tool, source)

    def _prompt_builder(self, session_id: str = "") -> "PromptBuilder":
        """Return a builder that also attaches files outside the workspace, because the user typed the path."""
        return self._load_project().prompt_builder(allow_outside=True, mcp=open_source(session_id))

    def _load_project(self) -> "Project":
        from ostler.app.project import Project

        return Project.load(self._cwd, trust=self._options.trust)

    def _load_settings(self) -> "Settings":
        return load_settings(self._cwd, trust=self._options.trust)

    # -- files ---------------------------------------------------------------------------------------------------

    async def undo(self, direction: Direction, turns: Sequence[str], session_id: str) -> Sequence[str]:
        from ostler.workspace.session_undo import apply_undo, open_checkpoints

        with closing(open_checkpoints(self._cwd, project_folder(self._cwd))) as checkpoints:
            return await apply_undo(checkpoints, direction, turns, session_id)

    def undo_gaps(self) -> Sequence[str]:
        from ostler.workspace.undo_gaps import ReportedGaps

        return ReportedGaps(project_folder(self._cwd)).reported()

    async def diff(self, path: str) -> str:
        from ostler.app.workspace import make_workspace
        from ostler.tools.working_tree_diff import diff_working_tree

        async with aclosing(make_workspace(self._load_project(), self._options, interactive=False)) as workspace:
            return await diff_working_tree(workspace, path)

    def memory(self) -> str:
        found = (name for name in RULES_FILES if (self._cwd / name).is_file())
        return str(self._cwd / next(found, RULES_FILES[0]))

    async def files(self, query: str) -> Sequence[str]:
        return await self._index.search(query)

    # -- choices -------------------------------------------------------------------------------------------------

    async def models(self) -> Sequence[str]:
        from ostler.models.model_choice import list_models

        return await list_models(self._load_settings(), self._options.model)

    def profiles(self) -> Sequence[NamedItem]:
        from ostler.http.url import strip_secrets
        from ostler.models.model_choice import active_name
        from ostler.settings.model_catalogue import list_candidates

        settings = self._load_settings()
        entries = [candidate.entry for candidate in list_candidates(settings) if candidate.entry.name]
        active = active_name(settings, self._options.model)
        return [
            NamedItem(
                entry.name,
                f"{entry.model or 'default model'} at {strip_secrets(entry.base_url)}",
                entry.model,
                active=entry.name == active,
            )
            for entry in entries
        ]

    async def agents(self) -> Sequence[NamedItem]:
        return await self._cached("agents", self._list_agents)

    def _list_agents(self) -> list[NamedItem]:
        agents = self._load_project().agents.values()
        return sorted(
            (NamedItem(agent.name, agent.description) for agent in agents if agent.user_selectable),
            key=lambda item: item.name,
        )

    async def skills(self) -> Sequence[NamedItem]:
        def load() -> list[NamedItem]:
            found = self._load_project().knowledge.skills.list_skills()
            return [NamedItem(skill.name, skill.description) for skill in found]

        return await self._cached("skills", load)

    async def commands(self, session: Session) -> Sequence[NamedItem]:
        def load() -> list[NamedItem]:
            return [NamedItem(c.name, c.description or c.hint) for c in self._prompt_builder().commands().values()]

        own = await self._cached("commands", load)
        source, names = open_source(session.id), {command.name for command in own}
        prompts = source.prompts.commands().values() if source else ()
        return [*own, *(NamedItem(p.name, p.description) for p in prompts if p.name not in names)]

    async def resources(self, session: Session, query: str) -> Sequence[NamedItem]:
        source = open_source(session.id)
        return [NamedItem(*entry) for entry in source.resources.complete(query)] if source else ()

    async def mcp(self, session: Session, action: str) -> Sequence[str]:
        source = open_source(session.id)
        if source is None:
            return []
        from ostler.mcp.status_lines import apply_action, status_lines

        return await apply_action(session, source, action.split()) if action else status_lines(session, source)

    async def _cached(self, key: str, load: Callable[[], Sequence[NamedItem]]) -> Sequence[NamedItem]:
        """Return the cached items of `key`, or load them in a thread if they are too old."""
        loaded_at, items = self._cache.get(key, (float("-inf"), ()))
        if time.monotonic() - loaded_at > CACHE_SECONDS:
            items = await asyncio.to_thread(load)
            self._cache[key] = (time.monotonic(), items)
        return items

    # -- sessions ------------------------------------------------------------------------------------------------

    async def sessions(self, query: str) -> Sequence[SessionSummary]:
        return await self._manager.list(SessionQuery(str(self._cwd), query, MAX_SESSIONS))

    async def find_session(self, session_ref: str) -> str:
        return await self._with_admin(lambda admin: admin.find(session_ref))

    async def has_session(self, session_id: str) -> bool:
        return await self._with_admin(lambda admin: admin.has_session(session_id))

    async def fork(self, session_id: str, seq: int) -> str:
        return await self._with_admin(lambda admin: admin.fork(session_id, seq))

    async def export(self, session: Session, output: str) -> str:
        file = Path(os.path.expanduser(output or f"ostler-{session.id}.md"))
        file = file if file.is_absolute() else self._cwd / file
        records = session.records()
        await self._with_admin(
            lambda admin: list(admin.export(session.id, None, str(file), redact=True, opened=records))
        )
        return str(file)

    async def _with_admin(self, work: "Callable[[SessionAdmin], T]") -> T:
        from ostler.storage.session_admin import SessionAdmin

        if self._options.ephemeral:
            raise UsageError("sessions are not saved with --ephemeral", hint="start without it")

        def run() -> T:
            with SessionAdmin(str(self._cwd), all_workspaces=False, notify=lambda line: None) as admin:
                return work(admin)

        return await asyncio.to_thread(run)

    # -- environment ---------------------------------------------------------------------------------------------

    def environment_labels(self) -> Sequence[str]:
        branch = git_branch(self._cwd)
        return [f"sandbox {self._sandbox_label}", *([branch] if branch else [])]

    @cached_property
    def _sandbox_label(self) -> str:
        return sandbox_name(self._load_settings().config.security.sandbox)

    def context(self, session: Session) -> Sequence[str]:
        from ostler.app.engine import compaction_settings
        from ostler.backends.engine.context_usage import context_lines

        return context_lines(session, compaction_settings(self._load_settings()))

    async def doctor(self) -> Sequence[str]:
        from ostler.doctor.checks import run_checks

        return [finding.line() for finding in await run_checks(str(self._cwd), self._options.model)]

    def take_unsent_prompts(self) -> str:
        from ostler.session.unsent_prompts import take_unsent_prompts
        from ostler.storage.session_stores import session_store

        return (
            ""
            if self._options.ephemeral
            else take_unsent_prompts(session_store(self._load_settings()), project_id(self._cwd))
        )
