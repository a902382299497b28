"""Finds custom slash commands in Markdown files and reads their front matter."""

from collections.abc import Iterator

import msgspec

from ostler.knowledge.frontmatter import MarkdownDocument, read_markdown
from ostler.knowledge.markdown_files import list_markdown_files
from ostler.knowledge.name_rules import is_valid_name, to_one_line
from ostler.knowledge.prompt_sections import truncate
from ostler.knowledge.source_folder import Scope, SourceFolder
from ostler.knowledge.source_folders import SourceFolders
from ostler.knowledge.tool_lists import ToolPattern, parse_bool, parse_tool_list

MAX_NAME_LENGTH = 150
_OSTLER_FOLDERS = ("commands",)
_USER_FOLDERS = (
    ".eidolon/commands",
    ".config/opencode/commands",
    ".config/opencode/command",
    ".opencode/commands",
    ".opencode/command",
    ".claude/commands",
)
_EIDOLON_FOLDER = ".eidolon"
_PROJECT_FOLDERS = (".ostler/commands", _EIDOLON_FOLDER, ".opencode/commands", ".opencode/command", ".claude/commands")
_NON_COMMAND_FOLDERS = frozenset({"agents", "skills", "projects"})  # other folders in Eidolon's folder


class CustomCommand(msgspec.Struct, frozen=True):
    """A slash command: its name without the slash, and its Markdown template.

    `tools` are the tools that it requests to use without approval; for a project, apply them only if it is trusted.
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
    tools: tuple[ToolPattern, ...] = ()


def find_commands(sources: SourceFolders) -> dict[str, CustomCommand]:
    """Return the commands by name, sorted.

    Project commands take precedence over user commands, and Ostler's folders over those of other programs.
    """
    found: dict[str, CustomCommand] = {}
    for folder, top in sources.search_folders(_OSTLER_FOLDERS, _USER_FOLDERS, _PROJECT_FOLDERS):
        for path in list_markdown_files(folder, top, skip=_NON_COMMAND_FOLDERS if top == _EIDOLON_FOLDER else ()):
            name = command_name(path)
            if not name:
                folder.note(f"{top}/{path}", "ignored: the file name is not a valid command name")
            elif name not in found and (command := _read_command(folder, f"{top}/{path}", name)):
                found[name] = command
    return dict(sorted(found.items()))


def command_name(path: str) -> str:
    """Return the command name of a path: `openspec/commands/apply.md` is `openspec:apply`; empty if it is invalid."""
    steps = [step for step in path.removesuffix(".md").split("/") if step != "commands"]
    name = ":".join(steps)
    return name if steps and all(map(is_valid_name, steps)) and len(name) <= MAX_NAME_LENGTH else ""


def _read_command(folder: SourceFolder, path: str, name: str) -> CustomCommand | None:
    document = read_markdown(folder, path)
    if document is None or not document.body.strip():
        return None
    return CustomCommand(
        name,
        truncate(document.body.strip(), folder.display_path(path), len(document.body.encode())),
        folder.display_path(path),
        folder.scope,
        description=to_one_line(_text_field(document, "description")) or _first_line(document.body),
        hint=to_one_line(_text_field(document, "argument-hint")),
        agent=_text_field(document, "agent"),
        model=_text_field(document, "model"),
        subtask=parse_bool(document.fields.get("subtask")),
        tools=tuple(parse_tool_list(document.fields.get("allowed-tools"))),
    )


def _text_field(document: MarkdownDocument, field: str) -> str:
    value = document.fields.get(field)
    if isinstance(value, list):  # `argument-hint: [file]` is a list to YAML
        return " ".join(f"[{item}]" for item in value if isinstance(item, str))
    return value.strip() if isinstance(value, str) else ""


def _first_line(body: str) -> str:
    """Return the description of a command that has none of its own."""
    return next(_non_empty_lines(body), "")[:100]


def _non_empty_lines(body: str) -> Iterator[str]:
    return (text for line in body.split("\n") if (text := line.strip("# \t")))
