"""Reads an agent from Markdown with fields at its head, in the words of any of the programs that write such files."""

from collections.abc import Collection, Iterator
from typing import Any, get_args

import msgspec

from ostler.core.permission import PolicyAction, Rule
from ostler.knowledge.agent_definition import AgentMode
from ostler.knowledge.frontmatter import MarkdownDocument, read_markdown
from ostler.knowledge.markdown_files import list_markdown_files
from ostler.knowledge.model_name_rules import FOREIGN_MODEL_NAMES, is_allowed_model
from ostler.knowledge.name_rules import NAME_RULE, is_valid_name, to_one_line
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
    """What one file says of an agent; a field that it leaves open is None or empty.

    `limits` come from tools that were named with a pattern, and only ever narrow; `rules` from `permission`.
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
    """Every agent that a file speaks of, those that count least first; `models` are the names of the person's own."""
    for folder, top in reversed(list(sources.search_folders(_OSTLER_FOLDERS, _USER_FOLDERS, _PROJECT_FOLDERS))):
        for path in reversed(list_markdown_files(folder, top)):
            document = read_markdown(folder, f"{top}/{path}")
            if document:
                yield _AgentFileReader(folder, f"{top}/{path}", document).read(path.removesuffix(".md"), models)


class _AgentFileReader:
    """One file's fields, each taken or noted."""

    def __init__(self, folder: SourceFolder, path: str, document: MarkdownDocument) -> None:
        self._folder = folder
        self._path = path
        self._fields = {name.replace("-", "_").lower(): value for name, value in document.fields.items()}
        self._body = document.body
        self._origin = folder.display_path(path)

    def read(self, stem: str, models: Collection[str]) -> AgentFile:
        named = parse_tool_list(self._fields.get("tools")) if isinstance(self._fields.get("tools"), str | list) else []
        return AgentFile(
            self._name(stem),
            self._folder.scope,
            self._origin,
            self._mode(),
            to_one_line(self._text("description")),
            self._model(models),
            self._tools(),
            restriction_rules(named, self._origin),
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
            self._note(f"its name {name[:80]!r} is not made of {NAME_RULE}; the file's is taken")
            return stem
        return name or stem

    def _mode(self) -> AgentMode | None:
        mode = self._text("mode")
        if not mode or mode in get_args(AgentMode):
            return mode or None  # type: ignore[return-value]  # one of its literals
        self._note(f"its mode {mode[:80]!r} is none of primary, subagent, all")
        return None

    def _model(self, models: Collection[str]) -> str:
        """A model it may have: the person's own files may name any, others only those that the person has."""
        model = self._text("model") or self._text("model_override")
        own = self._folder.scope == "user" and self._path.startswith("agents/")
        if not model or is_allowed_model(model, models, is_user_file=own):
            return model
        if model not in FOREIGN_MODEL_NAMES:
            self._note(f"its model {model[:80]!r} is none of yours; it takes the session's")
        return ""

    def _tools(self) -> tuple[ToolSwitches, ...]:
        given = self._fields.get("tools")
        layers: list[ToolSwitches] = []
        if isinstance(given, dict):
            layers.append(parse_switches(given))
        elif given not in (None, "", "*"):
            layers.append(allow_only(parse_tool_list(given)))
        if denied := parse_tool_list(self._fields.get("disallowedtools")):
            layers.append(deny_tools(denied))
        return tuple(layer for layer in layers if layer)

    def _rules(self) -> Iterator[Rule]:
        said = self._fields.get("permission")
        if said in (None, ""):
            return
        if not isinstance(said, str | dict):
            self._note("its permission is neither an action nor an object")
            return
        for number, ((key, pattern), action) in enumerate(rule_items(said)):
            if number == MAX_RULES:
                self._note(f"it has more than {MAX_RULES} rules; the rest is left out")
                return
            if action not in get_args(PolicyAction):
                self._note(f"its rule for {key[:80]} is none of allow, ask, deny; deny is taken")
            yield Rule(key, pattern, action if action in get_args(PolicyAction) else "deny", self._origin)

    def _number(self, kind: Any, *names: str) -> Any:
        for name in names:
            if self._text(name):
                try:
                    return msgspec.convert(self._text(name), kind, strict=False)
                except msgspec.ValidationError as error:
                    self._note(f"its {name} is wrong: {error}")
        return None
