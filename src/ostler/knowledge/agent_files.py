"""Reads an agent from Markdown with fields at its head, in the words of any of the programs that write such files."""

from collections.abc import Collection, Iterator
from typing import Any, get_args

import msgspec

from ostler.knowledge.agent import Mode
from ostler.knowledge.folder import Folder, Scope
from ostler.knowledge.frontmatter import Document, read_document
from ostler.knowledge.markdown_files import markdown_files
from ostler.knowledge.naming import NAME_RULE, one_line, usable_name
from ostler.knowledge.own_models import FOREIGN, usable_model
from ostler.knowledge.parts import bounded
from ostler.knowledge.sources import Sources
from ostler.knowledge.tool_lists import Switches, limits, only, parse_list, switched, truth, without
from ostler.settings.layers import rule_items
from ostler.settings.schema_models import Count, Share, Warmth
from ostler.vocabulary.permission import Action, Rule

MOST_RULES = 500
_OWN = ("agents",)
_PERSONS = (
    ".eidolon/agents",
    ".config/opencode/agents",
    ".config/opencode/agent",
    ".opencode/agents",
    ".opencode/agent",
    ".claude/agents",
)
_PROJECTS = (".ostler/agents", ".eidolon/agents", ".opencode/agents", ".opencode/agent", ".claude/agents")


class AgentFile(msgspec.Struct, frozen=True):
    """What one file says of an agent; a field that it leaves open is None or empty.

    `limits` come from tools that were named with a pattern, and only ever narrow; `rules` from `permission`.
    """

    name: str
    scope: Scope
    origin: str
    mode: Mode | None = None
    description: str = ""
    model: str = ""
    tools: tuple[Switches, ...] = ()
    limits: tuple[Rule, ...] = ()
    rules: tuple[Rule, ...] = ()
    max_steps: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    prompt: str = ""
    hidden: bool = False
    disable: bool = False
    read_only: bool = False


def agent_files(sources: Sources, models: Collection[str]) -> Iterator[AgentFile]:
    """Every agent that a file speaks of, those that count least first; `models` are the names of the person's own."""
    for folder, top in reversed(list(sources.pairs(_OWN, _PERSONS, _PROJECTS))):
        for path in reversed(markdown_files(folder, top)):
            document = read_document(folder, f"{top}/{path}")
            if document:
                yield _Reader(folder, f"{top}/{path}", document).agent(path.removesuffix(".md"), models)


class _Reader:
    """One file's fields, each taken or noted."""

    def __init__(self, folder: Folder, path: str, document: Document) -> None:
        self._folder = folder
        self._path = path
        self._fields = {name.replace("-", "_").lower(): value for name, value in document.fields.items()}
        self._body = document.body
        self._origin = folder.shown(path)

    def agent(self, stem: str, models: Collection[str]) -> AgentFile:
        named = parse_list(self._fields.get("tools")) if isinstance(self._fields.get("tools"), str | list) else []
        return AgentFile(
            self._name(stem),
            self._folder.scope,
            self._origin,
            self._mode(),
            one_line(self._text("description")),
            self._model(models),
            self._tools(),
            limits(named, self._origin),
            tuple(self._rules()),
            self._number(Count, "max_steps", "maxsteps", "steps", "maxturns"),
            self._number(Warmth, "temperature"),
            self._number(Share, "top_p", "topp"),
            bounded(self._body.strip() or self._text("prompt"), self._origin, len(self._body.encode())),
            truth(self._fields.get("hidden")),
            truth(self._fields.get("disable")),
            self._text("permissionmode") == "plan",
        )

    def _note(self, message: str) -> None:
        self._folder.note(self._path, message)

    def _text(self, name: str) -> str:
        value = self._fields.get(name)
        return value.strip() if isinstance(value, str) else ""

    def _name(self, stem: str) -> str:
        name = self._text("name")
        if name and not usable_name(name):
            self._note(f"its name {name[:80]!r} is not made of {NAME_RULE}; the file's is taken")
            return stem
        return name or stem

    def _mode(self) -> Mode | None:
        mode = self._text("mode")
        if not mode or mode in get_args(Mode):
            return mode or None  # type: ignore[return-value]  # one of its literals
        self._note(f"its mode {mode[:80]!r} is none of primary, subagent, all")
        return None

    def _model(self, models: Collection[str]) -> str:
        """A model it may have: the person's own files may name any, others only those that the person has."""
        model = self._text("model") or self._text("model_override")
        own = self._folder.scope == "user" and self._path.startswith("agents/")
        if not model or usable_model(model, models, own=own):
            return model
        if model not in FOREIGN:
            self._note(f"its model {model[:80]!r} is none of yours; it takes the session's")
        return ""

    def _tools(self) -> tuple[Switches, ...]:
        given = self._fields.get("tools")
        layers: list[Switches] = []
        if isinstance(given, dict):
            layers.append(switched(given))
        elif given not in (None, "", "*"):
            layers.append(only(parse_list(given)))
        if denied := parse_list(self._fields.get("disallowedtools")):
            layers.append(without(denied))
        return tuple(layer for layer in layers if layer)

    def _rules(self) -> Iterator[Rule]:
        said = self._fields.get("permission")
        if said in (None, ""):
            return
        if not isinstance(said, str | dict):
            self._note("its permission is neither an action nor an object")
            return
        for number, ((key, pattern), action) in enumerate(rule_items(said)):
            if number == MOST_RULES:
                self._note(f"it has more than {MOST_RULES} rules; the rest is left out")
                return
            if action not in get_args(Action):
                self._note(f"its rule for {key[:80]} is none of allow, ask, deny; deny is taken")
            yield Rule(key, pattern, action if action in get_args(Action) else "deny", self._origin)

    def _number(self, kind: Any, *names: str) -> Any:
        for name in names:
            if self._text(name):
                try:
                    return msgspec.convert(self._text(name), kind, strict=False)
                except msgspec.ValidationError as error:
                    self._note(f"its {name} is wrong: {error}")
        return None
