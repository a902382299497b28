"""Slash commands in Markdown: which there are, what they are called, and what their fields say."""

from collections.abc import Iterator

import msgspec

from ostler.knowledge.folder import Folder, Scope
from ostler.knowledge.frontmatter import Document, read_document
from ostler.knowledge.markdown_files import markdown_files
from ostler.knowledge.naming import one_line, usable_name
from ostler.knowledge.parts import bounded
from ostler.knowledge.sources import Sources
from ostler.knowledge.tool_lists import Named, parse_list, truth

LONGEST = 150
_OWN = ("commands",)
_PERSONS = (
    ".eidolon/commands",
    ".config/opencode/commands",
    ".config/opencode/command",
    ".opencode/commands",
    ".opencode/command",
    ".claude/commands",
)
_EIDOLON = ".eidolon"
_PROJECTS = (".ostler/commands", _EIDOLON, ".opencode/commands", ".opencode/command", ".claude/commands")
_NO_COMMANDS = frozenset({"agents", "skills", "projects"})  # what else lies in Eidolon's folder


class Command(msgspec.Struct, frozen=True):
    """A slash command: its name without the slash, and the Markdown that it stands for.

    `tools` are those it asks to use unasked. They are data: a project's may count only once it is trusted.
    """

    name: str
    template: str
    origin: str
    scope: Scope
    description: str = ""
    hint: str = ""
    agent: str = ""
    model: str = ""
    subtask: bool = False
    tools: tuple[Named, ...] = ()


def find_commands(sources: Sources) -> dict[str, Command]:
    """Commands by name, sorted; the project's count over the person's, and ours over those of other programs."""
    found: dict[str, Command] = {}
    for folder, top in sources.pairs(_OWN, _PERSONS, _PROJECTS):
        for path in markdown_files(folder, top, skip=_NO_COMMANDS if top == _EIDOLON else ()):
            name = command_name(path)
            if not name:
                folder.note(f"{top}/{path}", "its name cannot be typed as a command; it is left out")
            elif name not in found and (command := _command(folder, f"{top}/{path}", name)):
                found[name] = command
    return dict(sorted(found.items()))


def command_name(path: str) -> str:
    """`openspec/commands/apply.md` is `openspec:apply`; nothing when nobody could type it."""
    steps = [step for step in path.removesuffix(".md").split("/") if step != "commands"]
    name = ":".join(steps)
    return name if steps and all(map(usable_name, steps)) and len(name) <= LONGEST else ""


def _command(folder: Folder, path: str, name: str) -> Command | None:
    document = read_document(folder, path)
    if document is None or not document.body.strip():
        return None
    return Command(
        name,
        bounded(document.body.strip(), folder.shown(path), len(document.body.encode())),
        folder.shown(path),
        folder.scope,
        description=one_line(_text(document, "description")) or _first_line(document.body),
        hint=one_line(_text(document, "argument-hint")),
        agent=_text(document, "agent"),
        model=_text(document, "model"),
        subtask=truth(document.fields.get("subtask")),
        tools=tuple(parse_list(document.fields.get("allowed-tools"))),
    )


def _text(document: Document, field: str) -> str:
    value = document.fields.get(field)
    if isinstance(value, list):  # `argument-hint: [file]` is a list to YAML
        return " ".join(f"[{item}]" for item in value if isinstance(item, str))
    return value.strip() if isinstance(value, str) else ""


def _first_line(body: str) -> str:
    """What a command without a description is listed with."""
    return next(_lines(body), "")[:100]


def _lines(body: str) -> Iterator[str]:
    return (told for line in body.split("\n") if (told := line.strip("# \t")))
