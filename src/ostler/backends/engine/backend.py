"""The engine backend: connects model, tools and loop to the session."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ostler.backends.engine.history import History, find_prefix, last_context_report, undone_summaries
from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.loop import AgentLoop
from ostler.backends.engine.plugins.budget import Budget
from ostler.backends.engine.plugins.compaction import report_context_usage
from ostler.backends.engine.plugins.context_window import CompactionSettings, ContextWindowPlugin
from ostler.backends.engine.plugins.folder_rules import FolderRulesPlugin
from ostler.backends.engine.plugins.limits import LimitPlugin, TurnLimits
from ostler.backends.engine.plugins.loop_detector import LoopDetector, RepetitionGuard
from ostler.backends.engine.plugins.plugin import BUILT_IN_AGENTS, LoopPlugin, PluginChain, TurnView
from ostler.backends.engine.plugins.titles import TitlePlugin
from ostler.backends.engine.plugins.todos import TodoPlugin
from ostler.backends.engine.plugins.tool_changes import ToolChangesPlugin
from ostler.backends.engine.plugins.validation import ValidationChecks, ValidationPlugin
from ostler.backends.engine.request_prefix import (
    MIN_WINDOW,
    ProjectPrompt,
    build_prefix,
    check_prefix_fits,
    extend_prefix,
    fixed_size,
    guide_size,
)
from ostler.backends.engine.role import THINKING, SampledModel, parse_thinking, send_role_prompt, subagent_call
from ostler.backends.engine.text_edits.text_editing import short_rules
from ostler.backends.engine.token_estimate import TokenEstimator
from ostler.core.events import Compacted, InfoChanged, Notice, PrefixBuilt, TurnEnded, UsageReported
from ostler.core.prompt import Prompt
from ostler.core.protocols import BackendContext
from ostler.core.session_view import latest_event
from ostler.core.sessions import (
    Compact,
    OptionChoice,
    Rename,
    Revert,
    SessionChange,
    SessionInfo,
    SessionOption,
    SessionStart,
    SetOption,
    Steer,
    Thinking,
)
from ostler.core.tools import ToolSpec
from ostler.knowledge.agent_definition import AgentRole, FindRole, no_roles
from ostler.models.model_types import ModelClient

if TYPE_CHECKING:
    from ostler.backends.engine.interrupted_turn import InterruptedTurn

DEFAULT_LIMITS = TurnLimits()
DEFAULT_COMPACTION = CompactionSettings()
NO_CHECKS = ValidationChecks()
NO_PROJECT = ProjectPrompt()
WINDOW_WAIT_SECONDS = 1.0  # at the end of a turn, while the server is being asked
MakeModel = Callable[[str], ModelClient]


class Engine:
    """Runs a model in this process. Its history is folded from the session's records.

    `announce_model` receives the name passed to `make_model` each time the session's model is set.
    """

    def __init__(
        self,
        *,
        make_model: MakeModel,
        tools: Callable[[], Sequence[ToolSpec]],
        system: Callable[[], str],
        limits: TurnLimits = DEFAULT_LIMITS,
        compaction: CompactionSettings = DEFAULT_COMPACTION,
        roles: FindRole = no_roles,
        checks: ValidationChecks = NO_CHECKS,
        budget: Budget | None = None,
        project: ProjectPrompt = NO_PROJECT,
        internal_agents: InternalAgents = BUILT_IN_AGENTS,
    ) -> None:
        self._make_model = make_model
        self.announce_model: Callable[[str], None] = lambda name: None
        self._offered_tools = tools
        self._system = system
        self._limits = limits
        self._budget = budget or Budget(limits.tokens, limits.cost)
        self._find_role = roles
        self._checks = checks
        self._project = project
        self._internal_agents = internal_agents
        self._titles = TitlePlugin(internal_agents, self._make_title_model, self._budget)
        self._role = AgentRole()
        self._selected_model = ""
        self._thinking: Thinking | None = None
        self._context_window = ContextWindowPlugin(compaction)
        self._in_turn = False
        self._interactive = True
        self._history = History()
        self._estimators: dict[str, TokenEstimator] = {}
        self._context: BackendContext
        self._model: ModelClient
        self._model_name = ""
        self._steps = 0
        self._given_advice: set[str] = set()

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        self._context = context
        self._interactive = start.interactive
        self._role = self._find_role(start.agent or start.options.get("agent", ""))
        self._selected_model = start.options.get("model", "")
        self._thinking = parse_thinking(start.options.get("thinking", ""))
        self._set_model(self._selected_model or self._role.model)
        return self._info()

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        interrupted = self._interrupted_turn() if prompt is None else None
        self._in_turn = True
        try:
            return await self._run_loop(prompt, interrupted)
        finally:
            self._in_turn = False
            self._budget.leave(self._context)

    def _interrupted_turn(self) -> "InterruptedTurn":
        from ostler.backends.engine.interrupted_turn import find_interrupted_turn  # imported late: rarely needed

        return find_interrupted_turn(self._context.records())

    async def _run_loop(self, prompt: Prompt | None, interrupted: "InterruptedTurn | None") -> TurnEnded:
        await self._model.learn_size()
        tools = self._tools()
        send_role_prompt(self._context, self._role)
        await self._wait_for_window(tools)
        view = self._make_view(self._prefix(self._tools()), interrupted.start_index if interrupted else None)
        self._budget.join(view)
        first, plugins = subagent_call(prompt) if prompt else None, self._make_plugins()
        if self._edits_in_text and prompt:
            from ostler.backends.engine.plugins.text_edits import TextEditTurn  # imported only for small models

            turn = TextEditTurn(self._project.text_editing, self._checks, prompt)
            plugins = PluginChain((*self._make_common_plugins(), *turn.plugins))
            first = first or await turn.show_files(view)
        loop = AgentLoop(view, self._tools, plugins, self._message_id)
        try:
            ended = await self._run_with_timeout(loop.continue_turn(interrupted) if interrupted else loop.run(first))
        except asyncio.CancelledError:
            plugins.on_cancel(view)
            raise
        if ended.reason == "limit":
            await plugins.on_limit(view)
        await self._report_window()
        return ended

    async def _run_with_timeout(self, work: Awaitable[TurnEnded]) -> TurnEnded:
        try:
            async with asyncio.timeout(self._limits.time) as clock:
                return await work
        except TimeoutError:
            if not clock.expired():
                raise
            return TurnEnded("", "limit", limit=f"{self._limits.time:g} seconds")

    async def apply(self, change: SessionChange) -> bool:
        match change:
            case Steer() | Revert() | Rename():  # the records are the engine's only state
                return True
            case SetOption("model", value):
                await self._change_model(value or self._role.model)
                self._selected_model = value
                return True
            case SetOption("agent", value):
                await self._change_role(value)
                return True
            case SetOption("thinking", value):
                self._thinking = parse_thinking(value)
                return True
            case Compact(undo):
                return await (self._undo_compaction() if undo else self._compact())
            case _:
                return False

    async def aclose(self) -> None:
        await self._titles.aclose()
        await self._model.aclose()

    @property
    def context_limit(self) -> int:
        """The context window of the current model in tokens, if known; 0 before the session is open."""
        return self._model.context_limit if hasattr(self, "_model") else 0

    async def _change_role(self, name: str) -> None:
        """Switch to an agent. If its model cannot be created, the previous agent stays."""
        role = self._find_role(name)
        await self._change_model(self._selected_model or role.model)
        self._role = role
        self._report_model()

    async def _change_model(self, name: str) -> None:
        old = self._model
        self._set_model(name)
        await old.aclose()

    def _set_model(self, name: str) -> None:
        self._model, self._model_name = self._make_model(name), name
        self.announce_model(name)

    def _make_title_model(self, name: str) -> ModelClient:
        """Make the model of an internal agent. After a switch the small model of the former profile is not used."""
        small = self._internal_agents.model
        return self._make_model(self._model_name if self._model_name and name in ("", small) else name)

    def _report_model(self) -> None:
        """Update the session's info if an agent brought another model."""
        last = latest_event(self._context.records(), "info_changed")
        if isinstance(last, InfoChanged) and last.info.option("model") != self._model.name:
            self._context.emit(InfoChanged(last.info.with_option("model", self._model.name)))

    async def _compact(self) -> bool:
        """Compact between two steps of the running turn, or now if none is running."""
        prefix = find_prefix(self._context.records())
        if self._in_turn:
            self._context_window.request_compaction()
            return True
        return prefix is not None and await self._context_window.compact_now(self._make_view(prefix))

    async def _undo_compaction(self) -> bool:
        """Undo the latest compaction; not possible during a turn."""
        records = self._context.records()
        undone, prefix = undone_summaries(records), find_prefix(records)
        has_summary = any(records[index].seq not in undone for index in records.indexes_of(("compacted",)))
        if not has_summary or not prefix or self._in_turn:
            return False
        self._context.emit(Compacted("", 0))
        report_context_usage(self._make_view(prefix))
        return True

    def _make_plugins(self) -> LoopPlugin:
        plugins = self._make_common_plugins()
        rules = FolderRulesPlugin(self._project.folder_rules)
        return PluginChain((plugins[0], TodoPlugin(), plugins[1], rules, *plugins[2:], ValidationPlugin(self._checks)))

    def _make_common_plugins(self) -> list[LoopPlugin]:
        """Return the plugins for every model, in order."""
        limits = LimitPlugin(self._role.max_steps or self._limits.steps, self._budget)
        tool_changes = ToolChangesPlugin(self._tools, self._extend)
        return [tool_changes, LoopDetector(), limits, self._context_window, limits, self._titles]

    def _make_view(self, prefix: PrefixBuilt, start_index: int | None = None) -> TurnView:
        model = RepetitionGuard(SampledModel(self._model, self._role, self._thinking))
        guide = guide_size(self._model, prefix)
        return TurnView(
            self._context,
            model,
            prefix,
            self._history,
            self._estimator,
            self._internal_agents,
            guide=guide,
            start_index=start_index,
        )

    @property
    def _estimator(self) -> TokenEstimator:
        return self._estimators.setdefault(self._model.name, TokenEstimator())

    def _info(self) -> SessionInfo:
        options = (
            SessionOption("model", self._model.name),
            SessionOption("agent", self._role.name),
            SessionOption(
                "thinking", self._thinking or "", choices=tuple(map(OptionChoice, THINKING)), has_default=True
            ),
        )
        return SessionInfo("engine", options, can_steer=True, can_continue=True, has_agents=True, can_take_over=True)

    @property
    def _edits_in_text(self) -> bool:
        """Whether the model edits in the text of its answer, because it is small."""
        return bool(self._project.text_editing.root) and self._model.edits_in_text

    def _tools(self) -> Sequence[ToolSpec]:
        tools = self._offered_tools()
        return self._project.text_editing.select_tools(tools) if self._edits_in_text else tools

    def _build_prefix(self, tools: Sequence[ToolSpec]) -> PrefixBuilt:
        if self._edits_in_text:
            rules = short_rules(self._project.parts())
            system = self._project.text_editing.system_prompt(tools, rules)
            return build_prefix(system, rules, tools, self._model.context_limit)
        return build_prefix(self._system(), self._project.parts(), tools, self._model.context_limit)

    async def _wait_for_window(self, tools: Sequence[ToolSpec]) -> None:
        """Wait until the server's context window is known, if the request exceeds the smallest usual window."""
        records = self._context.records()
        prefix = find_prefix(records) or self._build_prefix(tools)
        size = fixed_size(prefix, guide_size(self._model, prefix)) + self._history.follow(records).size
        if self._estimator.tokens_for(size) > MIN_WINDOW:
            await self._model.wait_for_window()

    async def _report_window(self) -> None:
        """Report the context window again if the server named another one than the turn's last report, and advice.

        An interactive session waits a moment for the server, because the user sees the number now.
        """
        if self._interactive:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._model.wait_for_window(), WINDOW_WAIT_SECONDS)
        if (advice := self._model.size_advice) and advice not in self._given_advice:
            self._given_advice.add(advice)
            self._context.emit(Notice("info", advice))
        last, limit = last_context_report(self._context.records()), self._model.context_limit
        if last and last.model == self._model.name and last.context_limit != limit:
            self._context.emit(UsageReported(last.model, 0, 0, 0, 0.0, last.context_used, limit))

    def _prefix(self, tools: Sequence[ToolSpec]) -> PrefixBuilt:
        """Return the prefix of the session's first request, so that all requests begin with the same bytes.

        New tools are appended.
        """
        current, window = find_prefix(self._context.records()), self._model.context_limit
        prefix = extend_prefix(current, tools, window) if current else self._build_prefix(tools)
        if prefix is not current:
            prefix = self._persist_prefix(prefix)
        check_prefix_fits(prefix, self._model, self._estimator)
        return prefix

    def _extend(self, view: TurnView, tools: Sequence[ToolSpec]) -> None:
        """Append new tools to the prefix during a turn."""
        prefix = extend_prefix(view.prefix, tools, self._model.context_limit)
        if prefix is not view.prefix:
            check_prefix_fits(prefix, self._model, self._estimator)
            prefix = self._persist_prefix(prefix)
            view.set_prefix(prefix, guide_size(self._model, prefix))

    def _persist_prefix(self, prefix: PrefixBuilt) -> PrefixBuilt:
        """Persist the prefix and return it as recorded, with secrets masked."""
        self._context.emit(prefix)
        return find_prefix(self._context.records()) or prefix

    def _message_id(self) -> str:
        self._steps += 1
        return f"message-{self._context.records()[-1].seq}-{self._steps}"
