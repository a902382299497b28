"""Builds the backend for an Ostler server: its address, its login, and what the server learns about this machine."""

import os
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from ostler import __version__
from ostler.app.backend_kinds import REMOTE
from ostler.app.backends import MadeBackend, SessionDraft
from ostler.app.project import Project
from ostler.backends.engine.plugins.validation import ChangedFiles
from ostler.backends.remote.backend import RemoteBackend
from ostler.backends.remote.plan import RemotePlan
from ostler.backends.remote.server import SESSIONS, RemoteServer, ServerAddress, parse_server_url
from ostler.credentials.server_login import KnownServer, open_server
from ostler.credentials.server_logins import ServerLogins
from ostler.credentials.store import open_credentials
from ostler.journal.call_journal import ConversationTexts
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.wire.frames_shared import RemoteWorkspace, WorkspaceSection

T = TypeVar("T")
MAX_SECTIONS_BYTES = 1_000_000
MAX_AGENTS_BYTES = 500_000


async def make_remote_backend(draft: SessionDraft) -> MadeBackend:
    """Build the backend for `remote`, `remote:URL`, `remote:NAME` or `remote:unix:FILE`. Raises `OstlerError`."""
    project, options = draft.project, draft.options
    target = draft.request.backend.removeprefix(REMOTE).removeprefix(":")
    known, address = await _find(target)
    texts = ConversationTexts()
    plan = RemotePlan(
        __version__,
        socket.gethostname() or "this machine",
        draft.tools.specs,
        lambda: describe_workspace(project),
        options.model.get("model", ""),
        address.session_id,
        options.take_tools,
        project.settings.config.security.shared_approvals,
        restore=texts.restore,
        checks=FolderChecks(project, draft.changed_files) if project.settings.config.validation.enabled else None,
    )
    server = RemoteServer(address, known.dialer(os.environ), known.headers())
    backend = RemoteBackend(plan, server)
    return MadeBackend(f"{REMOTE}:{known.url}", backend, draft.tools, texts, backend.share_requests)


class FolderChecks:
    """The checks after edits of the folder on this machine."""

    def __init__(self, project: Project, changed_files: ChangedFiles) -> None:
        """`changed_files` returns the files that changed since it was last called, whatever changed them."""
        self.seconds = project.settings.config.validation.timeout_ms / 1000
        self._knowledge = project.knowledge
        self._changed_files = changed_files

    async def find(self, edited: Sequence[str], *, others: bool) -> Sequence[str]:
        from ostler.knowledge.checks import is_build_output

        if not self._knowledge.has_checks():
            return ()
        changed = await self._changed_files() if others else ()
        return self._knowledge.checks([*edited, *(path for path in changed if not is_build_output(path))])

    async def forget_changes(self) -> None:
        await self._changed_files()


async def _find(target: str) -> tuple[KnownServer, ServerAddress]:
    """Return the server with its login, and its address with the session that a URL may name."""
    logins = ServerLogins(open_credentials())
    if "://" not in target or SESSIONS not in target:
        server, _, session_id = target.partition(f"{SESSIONS}/")
        known = await open_server(server, logins, os.environ)
        return known, ServerAddress(known.origin, session_id=session_id, unix=known.unix)
    address = parse_server_url(target)
    known = await open_server(f"{address.origin.scheme}://{address.origin.address}", logins, os.environ)
    return known, address


def describe_workspace(project: Project) -> RemoteWorkspace:
    """Return what the folder's files define: the sections of the system prompt and the agents."""
    knowledge = project.knowledge
    sections = knowledge.prompt_sections("", with_skills=knowledge.has_skills())[1:]
    return RemoteWorkspace(
        _fitting(
            (WorkspaceSection(section.name, section.text, section.origin) for section in sections),
            MAX_SECTIONS_BYTES,
            lambda section: len(section.text.encode("utf-8", "replace")),
        ),
        _fitting(
            (_agent(agent) for agent in project.agents.values() if agent.accepts_tasks),
            MAX_AGENTS_BYTES,
            lambda agent: len(msgspec.json.encode(agent)),
        ),
        project.settings.config.validation.enabled,
    )


def _fitting(entries: Iterable[T], limit: int, size: Callable[[T], int]) -> tuple[T, ...]:
    """Return the entries that fit into a message; those that do not are left out."""
    kept = []
    for entry in entries:
        if (needed := size(entry)) <= limit:
            kept.append(entry)
            limit -= needed
    return tuple(kept)


def _agent(agent: AgentDefinition) -> dict[str, object]:
    """Return what the server needs to run an agent; it has models of its own."""
    fields = {**msgspec.to_builtins(agent), "model": "", "origin": ""}
    return {name: value for name, value in fields.items() if value}
