"""Parses agent files (Markdown with front matter) of Ostler, Eidolon, OpenCode and Claude Code."""

from collections.abc import Collection, Iterator
from typing import Any, get_args

import msgspec

from ostler.core.permission import PolicyAction, Rule
from ostler.knowledge.agent_definition import AgentMode
from ostler.knowledge.frontmatter import MarkdownDocument, read_markdown
from ostler.knowledge.markdown_files import list_markdown_files
from ostler.knowledge.name_rules import FOREIGN_MODEL_NAMES, NAME_RULE, is_allowed_model, is_valid_name, to_one_line
from ostler.knowledge.prompt_sections import truncate
from ostler.knowledge.source_folder import Scope, SourceFolder
from ostler.knowledge.source_folders import SourceFolders
from ostler.knowledge.tool_lists import (
    ToolSwitches,
    allow_only,
    deny_tools,
    parse_bool,
    parse_switches,
    parse_tool_list,
    restriction_rules,
)
from ostler.settings.layers import rule_items
from ostler.settings.schema_models import Fraction, PositiveInt, SamplingTemperature

MAX_RULES = 500
_OSTLER_FOLDERS = ("agents",)
_USER_FOLDERS = (
    ".eidolon/agents",
    ".config/opencode/agents",
    ".config/opencode/agent",
    ".opencode/agents",
    ".opencode/agent",
    ".claude/agents",
)
_PROJECT_FOLDERS = (".ostler/agents", ".eidolon/agents", ".opencode/agents", ".opencode/agent", ".claude/agents")


class AgentFile(msgspec.Struct, frozen=True):
    """The content of one agent file; fields that it does not set are None or empty.

    `limits` are rules from tools named with a pattern, which can only restrict; `rules` come from `permission`.
    """

    name: str
    scope: Scope
    origin: str
    mode: AgentMode | None = None
    description: str = ""
    model: str = ""
    tools: tuple[ToolSwitches, ...] = ()
    limits: tuple[Rule, ...] = ()
    rules: tuple[Rule, ...] = ()
    max_steps: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    prompt: str = ""
    hidden: bool = False
    disable: bool = False
    read_only: bool = False


def read_agent_files(sources: SourceFolders, models: Collection[str]) -> Iterator[AgentFile]:
    """Yield the agents of all files in increasing precedence. `models` are the names of the user's own models."""
    for folder, top in reversed(list(sources.search_folders(_OSTLER_FOLDERS, _USER_FOLDERS, _PROJECT_FOLDERS))):
        for path in reversed(list_markdown_files(folder, top)):
            document = read_markdown(folder, f"{top}/{path}")
            if document:
                yield _AgentFileReader(folder, f"{top}/{path}", document).read(path.removesuffix(".md"), models)


class _AgentFileReader:
    """Reads the fields of one file and adds a note for each one that it ignores."""

    def __init__(self, folder: SourceFolder, path: str, document: MarkdownDocument) -> None:
        self._folder = folder
        self._path = path
        self._fields = {name.replace("-", "_").lower(): value for name, value in document.fields.items()}
        self._body = document.body
        self._origin = folder.display_path(path)

    def read(self, stem: str, models: Collection[str]) -> AgentFile:
        tools = self._fields.get("tools")
        patterns = parse_tool_list(tools) if isinstance(tools, str | list) else []
        return AgentFile(
            self._name(stem),
            self._folder.scope,
            self._origin,
            self._mode(),
            to_one_line(self._text("description")),
            self._model(models),
            self._tools(),
            restriction_rules(patterns, self._origin),
            tuple(self._rules()),
            self._number(PositiveInt, "max_steps", "maxsteps", "steps", "maxturns"),
            self._number(SamplingTemperature, "temperature"),
            self._number(Fraction, "top_p", "topp"),
            truncate(self._body.strip() or self._text("prompt"), self._origin, len(self._body.encode())),
            parse_bool(self._fields.get("hidden")),
            parse_bool(self._fields.get("disable")),
            self._text("permissionmode") == "plan",
        )

    def _note(self, message: str) -> None:
        self._folder.note(self._path, message)

    def _text(self, name: str) -> str:
        value = self._fields.get(name)
        return value.strip() if isinstance(value, str) else ""

    def _name(self, stem: str) -> str:
        name = self._text("name")
        if name and not is_valid_name(name):
            self._note(f"the name {name[:80]!r} is invalid (use {NAME_RULE}); the file name is used instead")
            return stem
        return name or stem

    def _mode(self) -> AgentMode | None:
        mode = self._text("mode")
        if not mode or mode in get_args(AgentMode):
            return mode or None  # type: ignore[return-value]  # one of its literals
        self._note(f"the mode {mode[:80]!r} is ignored; use primary, subagent or all")
        return None

    def _model(self, models: Collection[str]) -> str:
        """Return the model. Only the user's own files may name one that is not among the user's models."""
        model = self._text("model") or self._text("model_override")
        own = self._folder.scope == "user" and self._path.startswith("agents/")
        if not model or is_allowed_model(model, models, is_user_file=own):
            return model
        if model not in FOREIGN_MODEL_NAMES:
            self._note(f"the model {model[:80]!r} is not one of yours; the session's model is used instead")
        return ""

    def _tools(self) -> tuple[ToolSwitches, ...]:
        tools = self._fields.get("tools")
        layers: list[ToolSwitches] = []
        if isinstance(tools, dict):
            layers.append(parse_switches(tools))
        elif tools not in (None, "", "*"):
            layers.append(allow_only(parse_tool_list(tools)))
        if denied := parse_tool_list(self._fields.get("disallowedtools")):
            layers.append(deny_tools(denied))
        return tuple(layer for layer in layers if layer)

    def _rules(self) -> Iterator[Rule]:
        permission = self._fields.get("permission")
        if permission in (None, ""):
            return
        if not isinstance(permission, str | dict):
            self._note("permission is ignored: it must be an action or an object")
            return
        for number, ((key, pattern), action) in enumerate(rule_items(permission)):
            if number == MAX_RULES:
                self._note(f"there are more than {MAX_RULES} rules; the others are ignored")
                return
            if action not in get_args(PolicyAction):
                self._note(f"the rule for {key[:80]} is not allow, ask or deny; deny is used instead")
            yield Rule(key, pattern, action if action in get_args(PolicyAction) else "deny", self._origin)

    def _number(self, kind: Any, *names: str) -> Any:
        for name in names:
            if self._text(name):
                try:
                    return msgspec.convert(self._text(name), kind, strict=False)
                except msgspec.ValidationError as error:
                    self._note(f"{name} is ignored: {error}")
        return None
