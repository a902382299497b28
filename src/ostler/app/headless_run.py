"""Joins a headless run: settings, house, printer, and the one line that says what it runs with."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ostler.app.project_knowledge import ProjectKnowledge
from ostler.app.prompt_builder import PromptBuilder
from ostler.app.run_options import RunOptions
from ostler.app.run_permissions import describe_permissions
from ostler.app.session_manager import LocalSessionManager, workspace_path
from ostler.app.trusted_settings import load_settings
from ostler.core.errors import OstlerError
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Session
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.headless.frontend import HeadlessFrontend
from ostler.frontends.headless.outputs import RunOutput, make_output
from ostler.frontends.headless.stderr import notify
from ostler.frontends.headless.summary import SummaryBuilder
from ostler.knowledge.agent_loader import DEFAULT_AGENT
from ostler.rendering.style import Styler, is_colour_enabled, terminal_columns

if TYPE_CHECKING:
    from ostler.frontends.headless.answer_validation import AnswerValidator


class HeadlessRun(msgspec.Struct, frozen=True):
    """One prompt from start to exit status; `context` was piped in beside it, and mentions and chooses nothing."""

    prompt: str
    context: str
    options: RunOptions
    output: str = "text"
    resume: str = ""
    fork: bool = False
    timeout: float | None = None
    schema: str = ""

    def run(self) -> int:
        """The exit status; errors before the first event are raised."""
        return asyncio.run(self._run())

    async def _run(self) -> int:
        manager = LocalSessionManager(self.options, notify)
        paint = Styler(is_colour_enabled(sys.stdout, os.environ), columns=lambda: terminal_columns(sys.stdout))
        opening = OpenSessionRequest(
            self.options.cwd, self.options.backend, resume=self.resume, fork=self.fork, interactive=False
        )
        output = make_output(self.output, paint, structured=bool(self.schema))
        with record_startup_error(output):
            fitting = self._make_validator()
        prompt = partial(self._build_prompt, fitting.add_instructions if fitting else str)
        return await HeadlessFrontend(opening, prompt, output, self.timeout, fitting).run(manager)

    def _make_validator(self) -> "AnswerValidator | None":
        if not self.schema:
            return None
        from ostler.frontends.headless.answer_validation import AnswerValidator

        return AnswerValidator(self.schema)

    async def _build_prompt(self, add_instructions: Callable[[str], str], session: Session) -> Prompt:
        """A path outside the workspace is read only where everything may be; `wanting` adds what answers must be."""
        cwd = workspace_path(self.options.cwd)
        settings = load_settings(cwd, trust=self.options.trust)
        ready = await PromptBuilder(cwd, settings, allow_outside=self.options.yolo).build(self.prompt, session.call)
        agents = ProjectKnowledge(str(cwd), settings).agents(trusted=settings.trusted)
        notify(describe_permissions(settings, self.options, agents, _working_agent(session, ready.prompt)))
        for line in ready.notices:
            notify(line)
        more = f"\n\n{self.context}" if self.context else ""
        return _extend_prompt(ready.prompt, lambda text: add_instructions(text + more))


def _extend_prompt(prompt: Prompt, extend: Callable[[str], str]) -> Prompt:
    """The words that whoever works is told, made longer: those of a task, else the prompt's own, which come first."""
    if prompt.target and prompt.target.task:
        cast = msgspec.structs.replace(prompt.target, task=extend(prompt.target.task))
        return msgspec.structs.replace(prompt, target=cast)
    words, *more = prompt.blocks
    said = words.text if isinstance(words, TextContent) else ""
    return msgspec.structs.replace(prompt, blocks=(TextContent(extend(said)), *more))


def _working_agent(session: Session, prompt: Prompt) -> str:
    """The agent of ours that works on a prompt; whoever thinks elsewhere is bound by what holds for all."""
    if session.info.backend != "engine":
        return DEFAULT_AGENT
    if prompt.target and prompt.target.agent and not prompt.target.task:
        return prompt.target.agent
    return next((option.value for option in session.info.options if option.id == "agent"), DEFAULT_AGENT)


@contextmanager
def record_startup_error(output: RunOutput) -> Iterator[None]:
    """An error before the run begins is a record too, where records are wanted."""
    try:
        yield
    except OstlerError as error:
        if output.machine_readable:
            output.close(SummaryBuilder().summarize_error(error))
        raise
