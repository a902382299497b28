"""Finds skills (folders with a SKILL.md) and lists them for the model; the content is loaded on request."""

import posixpath
from collections.abc import Callable, Iterator, Sequence

import msgspec

from ostler.knowledge.frontmatter import MarkdownDocument, parse_markdown, read_markdown
from ostler.knowledge.name_rules import NAME_RULE, is_valid_name, to_one_line
from ostler.knowledge.prompt_sections import PromptSection
from ostler.knowledge.source_folder import SourceFolder
from ostler.knowledge.source_folders import SourceFolders
from ostler.knowledge.tool_lists import parse_bool

SKILL_FILE = "SKILL.md"
MAX_INDEX_BYTES = 8 * 1024
MAX_DESCRIPTION_LENGTH = 300
MAX_HEAD_BYTES = 24 * 1024
MAX_DEPTH = 4
MAX_NAMES_SCANNED = 5000
_OSTLER_FOLDERS = ("skills",)
_USER_FOLDERS = (".claude/skills", ".agents/skills", ".opencode/skills", ".opencode/skill", ".config/opencode/skills")
_PROJECT_FOLDERS = (".ostler/skills", ".claude/skills", ".agents/skills", ".opencode/skills", ".opencode/skill")
_INTRO = "Skills: instructions for special tasks. When one fits, load it with the `skill` tool first."


class SkillInfo(msgspec.Struct, frozen=True):
    """A skill as listed for the model, and the folder of its file."""

    name: str
    description: str
    folder: SourceFolder
    path: str
    is_listed: bool = True

    @property
    def origin(self) -> str:
        """Display path of the skill's file."""
        return self.folder.display_path(f"{self.path}/{SKILL_FILE}")


class SkillCatalogue:
    """The skills of a session; skills for which `is_hidden` is true are omitted."""

    def __init__(self, skills: Sequence[SkillInfo], is_hidden: Callable[[str], bool]) -> None:
        self._skills = {skill.name: skill for skill in skills if not is_hidden(skill.name)}

    def list_skills(self) -> list[SkillInfo]:
        """Return the skills that are listed for the model, sorted by name."""
        return sorted((skill for skill in self._skills.values() if skill.is_listed), key=lambda skill: skill.name)

    def get(self, name: str) -> SkillInfo | None:
        """Return a listed skill by name, or None."""
        skill = self._skills.get(name)
        return skill if skill and skill.is_listed else None

    def index_section(self) -> PromptSection | None:
        """Return the prompt section that lists the skills, or None if there are none."""
        lines = skill_lines(self.list_skills())
        return (
            PromptSection("skills", f"{len(self.list_skills())} skills", "\n".join([_INTRO, *lines])) if lines else None
        )


def skill_lines(skills: Sequence[SkillInfo], limit: int = MAX_INDEX_BYTES) -> list[str]:
    """Return one line for each skill; if they exceed the limit, the last line has the number of the others."""
    lines: list[str] = []
    for number, skill in enumerate(skills):
        line = f"- {skill.name}: {_shorten(skill.description)}"
        limit -= len(line.encode()) + 1
        if limit < 0:
            return [*lines, f"[... {len(skills) - number} more; the skill tool without a name lists all ...]"]
        lines.append(line)
    return lines


def skill_body(skill: SkillInfo) -> str | None:
    """Return the text of a skill without front matter, or None if its file cannot be read."""
    source = skill.folder.read(f"{skill.path}/{SKILL_FILE}")
    return parse_markdown(source.text).body.strip() if source else None


def find_skills(sources: SourceFolders, paths: Sequence[str] = ()) -> list[SkillInfo]:
    """Return all skills. Of several with the same name, the first is used (project before user) with a note."""
    found: dict[str, SkillInfo] = {}
    for folder, top in _search_folders(sources, paths):
        for path in _skill_folders(folder, top):
            skill = _load_skill(folder, path)
            if skill is None:
                continue
            if skill.name in found:
                other = found[skill.name].origin
                folder.note(f"{path}/{SKILL_FILE}", f"ignored: the skill {skill.name!r} of {other} is used")
            else:
                found[skill.name] = skill
    return list(found.values())


def _search_folders(sources: SourceFolders, paths: Sequence[str]) -> Iterator[tuple[SourceFolder, str]]:
    """Yield the folders to search: the project's, configured ones in the project, the user's, other configured ones."""
    inside = [path for path in paths if path[:1] not in ("/", "~") and ".." not in path.split("/")]
    usual = list(sources.search_folders(_OSTLER_FOLDERS, _USER_FOLDERS, _PROJECT_FOLDERS))
    yield from (pair for pair in usual if pair[0] is sources.workspace)
    yield from ((sources.workspace, posixpath.normpath(path)) for path in inside)
    yield from (pair for pair in usual if pair[0] is not sources.workspace)
    for path in paths:
        if path.startswith("~/") and sources.user_home:
            yield sources.user_home, posixpath.normpath(path[2:])
        elif path not in inside:
            yield (
                SourceFolder("/", "user", sources.notes, label="/"),
                posixpath.join(sources.workspace.root, path).lstrip("/"),
            )


def _skill_folders(folder: SourceFolder, top: str) -> Iterator[str]:
    """Yield the folders with a SKILL.md; folders below such a folder are not searched."""
    budget = [MAX_NAMES_SCANNED]
    yield from _walk(folder, top, 0, budget)
    if budget[0] <= 0:
        folder.note(top, f"more than {MAX_NAMES_SCANNED} names; the others are ignored")


def _walk(folder: SourceFolder, here: str, depth: int, budget: list[int]) -> Iterator[str]:
    names = folder.list_names(here)
    if (SKILL_FILE, False) in names:
        yield here
        return
    for name, is_folder in names:
        budget[0] -= 1
        if budget[0] <= 0 or depth == MAX_DEPTH:
            return
        if is_folder and name[0] != ".":
            yield from _walk(folder, f"{here}/{name}", depth + 1, budget)


def _load_skill(folder: SourceFolder, path: str) -> SkillInfo | None:
    file = f"{path}/{SKILL_FILE}"
    document = read_markdown(folder, file, MAX_HEAD_BYTES)
    if document is None:
        return None
    name = _text_field(document, "name")
    if name and not is_valid_name(name):
        folder.note(file, f"the name {name[:80]!r} is invalid (use {NAME_RULE}); the folder name is used instead")
    if not is_valid_name(name):
        name = posixpath.basename(path)
    if not is_valid_name(name):
        folder.note(file, "ignored: neither the name nor the folder name is valid")
        return None
    description = _text_field(document, "description") or _first_paragraph(document.body)
    is_listed = not parse_bool(document.fields.get("disable-model-invocation"))
    return SkillInfo(name, to_one_line(description), folder, path, is_listed)


def _text_field(document: MarkdownDocument, field: str) -> str:
    value = document.fields.get(field)
    return value.strip() if isinstance(value, str) else ""


def _first_paragraph(body: str) -> str:
    """Return the first paragraph that is not a heading."""
    lines: list[str] = []
    for line in body.split("\n"):
        text = line.strip()
        if text and not text.startswith("#"):
            lines.append(text)
        elif lines:
            break
    return " ".join(lines)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_DESCRIPTION_LENGTH else f"{text[: MAX_DESCRIPTION_LENGTH - 1]}…"
