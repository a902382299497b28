"""Builds and runs a headless prompt (`ostler run`)."""

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ostler.access.run_permissions import describe_permissions
from ostler.app.backend_kinds import backend_kind
from ostler.app.project import Project
from ostler.app.session_manager import LocalSessionManager
from ostler.core.errors import UsageError
from ostler.core.prompt import Prompt
from ostler.core.protocols import Session
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.headless.frontend import HeadlessFrontend
from ostler.frontends.headless.outputs import make_output, record_startup_error
from ostler.interaction.prompt_builder import extend_prompt
from ostler.interaction.services import PromptSource, active_agent, working_agent
from ostler.knowledge.agent_loader import DEFAULT_AGENT
from ostler.mcp.open_sources import open_source
from ostler.rendering.style import Styler, is_colour_enabled, terminal_columns
from ostler.settings.run_options import RunOptions
from ostler.text.stderr import notify

UNATTENDED_HINT = "use the chat, which asks you; an agent can also be selected with --agent"

if TYPE_CHECKING:
    from ostler.frontends.headless.answer_validation import AnswerValidator


class HeadlessRun(msgspec.Struct, frozen=True):
    """A prompt to run. `context` is piped input, whose mentions are not expanded; `is_piped`: the prompt is too."""

    prompt: str
    context: str
    options: RunOptions
    output: str = "text"
    resume: str = ""
    fork: bool = False
    timeout: float | None = None
    schema: str = ""
    is_piped: bool = False

    def run(self) -> int:
        """Run the prompt and return the exit status. Errors before the first event are raised."""
        return asyncio.run(self._run())

    async def _run(self) -> int:
        manager = LocalSessionManager(self.options, notify)
        paint = Styler(is_colour_enabled(sys.stdout, os.environ), columns=lambda: terminal_columns(sys.stdout))
        request = OpenSessionRequest(
            self.options.cwd, self.options.backend, resume=self.resume, fork=self.fork, interactive=False
        )
        output = make_output(self.output, paint, structured=bool(self.schema))
        with record_startup_error(output):
            validator = self._make_validator()
        prompt = partial(self._build_prompt, manager, validator.add_instructions if validator else str)
        return await HeadlessFrontend(request, prompt, output, self.timeout, validator).run(manager)

    def _make_validator(self) -> "AnswerValidator | None":
        if not self.schema:
            return None
        from ostler.frontends.headless.answer_validation import AnswerValidator

        return AnswerValidator(self.schema)

    async def _build_prompt(
        self, manager: LocalSessionManager, add_instructions: Callable[[str], str], session: Session
    ) -> Prompt:
        """Build the prompt and print what the run may do; `add_instructions` adds the answer's required format."""
        project = manager.project
        builder = project.prompt_builder(allow_outside=self.options.yolo, mcp=open_source(session.id))
        source = PromptSource(active_agent(session), self.prompt if self.is_piped else "", session_id=session.id)
        built = await builder.build(self.prompt, session.call, source)
        if built.questions:
            raise UsageError(f"the prompt would {' and '.join(built.questions)}", hint=UNATTENDED_HINT)
        agent = working_agent(session, built.prompt) or DEFAULT_AGENT
        notify(self._describe_permissions(project, session, agent))
        for line in built.notices:
            notify(line)
        context = f"\n\n{self.context}" if self.context else ""
        return extend_prompt(built.prompt, lambda text: add_instructions(text + context))

    def _describe_permissions(self, project: Project, session: Session, agent: str) -> str:
        info, kind = session.info, backend_kind(session.info.backend)
        return describe_permissions(
            project.settings,
            self.options,
            project.agents,
            agent,
            external_agent=kind.title or info.agent_name if info.runs_own_tools or kind.has_own_history else "",
            has_shell=not kind.uses_zero_settings or project.settings.config.security.allow_shell is True,
        )
