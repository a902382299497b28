"""Skills: folders with a SKILL.md, told to the model by name and description, and in full only when it asks."""

import posixpath
from collections.abc import Callable, Iterator, Sequence

import msgspec

from ostler.knowledge.frontmatter import MarkdownDocument, parse_markdown
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
_INTRO = "Skills: instructions for special tasks. When one fits, load it with the `skill` tool before you begin."


class SkillInfo(msgspec.Struct, frozen=True):
    """A skill as the model is told of it, and the folder its file lies in."""

    name: str
    description: str
    folder: SourceFolder
    path: str
    is_listed: bool = True

    @property
    def origin(self) -> str:
        """Where it comes from."""
        return self.folder.display_path(f"{self.path}/{SKILL_FILE}")


class SkillCatalogue:
    """The skills of a session; `hidden` says which of them no model may see."""

    def __init__(self, skills: Sequence[SkillInfo], is_hidden: Callable[[str], bool]) -> None:
        self._skills = {skill.name: skill for skill in skills if not is_hidden(skill.name)}

    def list_skills(self) -> list[SkillInfo]:
        """Those that are offered, by name."""
        return sorted((skill for skill in self._skills.values() if skill.is_listed), key=lambda skill: skill.name)

    def get(self, name: str) -> SkillInfo | None:
        """The skill of a name, if a model may have it."""
        skill = self._skills.get(name)
        return skill if skill and skill.is_listed else None

    def index_section(self) -> PromptSection | None:
        """What of the prompt tells of skills; nothing when there are none."""
        lines = skill_lines(self.list_skills())
        return (
            PromptSection("skills", f"{len(self.list_skills())} skills", "\n".join([_INTRO, *lines])) if lines else None
        )


def skill_lines(skills: Sequence[SkillInfo], limit: int = MAX_INDEX_BYTES) -> list[str]:
    """One line for each; what does not fit is counted."""
    lines: list[str] = []
    for number, skill in enumerate(skills):
        line = f"- {skill.name}: {_shorten(skill.description)}"
        limit -= len(line.encode()) + 1
        if limit < 0:
            return [*lines, f"[... {len(skills) - number} more; the skill tool without a name lists all ...]"]
        lines.append(line)
    return lines


def skill_body(skill: SkillInfo) -> str | None:
    """The text of a skill without its fields; nothing when its file is gone."""
    found = skill.folder.read(f"{skill.path}/{SKILL_FILE}")
    return parse_markdown(found.text).body.strip() if found else None


def find_skills(sources: SourceFolders, paths: Sequence[str] = ()) -> list[SkillInfo]:
    """Every skill, each name once: the project's before the person's, and what else is of that name is noted."""
    found: dict[str, SkillInfo] = {}
    for folder, top in _search_folders(sources, paths):
        for path in _skill_folders(folder, top):
            skill = _load_skill(folder, path)
            if skill is None:
                continue
            if skill.name in found:
                other = found[skill.name].origin
                folder.note(f"{path}/{SKILL_FILE}", f"there is another skill {skill.name!r} in {other}, which counts")
            else:
                found[skill.name] = skill
    return list(found.values())


def _search_folders(sources: SourceFolders, paths: Sequence[str]) -> Iterator[tuple[SourceFolder, str]]:
    """The usual folders, and after the project's those of the config that lie in it, after the person's the others."""
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
    """Folders that hold a SKILL.md; what lies below one belongs to it."""
    budget = [MAX_NAMES_SCANNED]
    yield from _walk(folder, top, 0, budget)
    if budget[0] <= 0:
        folder.note(top, f"it holds more than {MAX_NAMES_SCANNED} names; the rest is left out")


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
    found = folder.read(file, MAX_HEAD_BYTES)
    if found is None:
        return None
    document = parse_markdown(found.text)
    for flaw in document.problems:
        folder.note(file, flaw.message, flaw.line)
    name = _text_field(document, "name")
    if name and not is_valid_name(name):
        folder.note(file, f"its name {name[:80]!r} is not made of {NAME_RULE}; the folder's is taken")
    if not is_valid_name(name):
        name = posixpath.basename(path)
    if not is_valid_name(name):
        folder.note(file, "neither its name nor its folder's can be used; it is left out")
        return None
    described = _text_field(document, "description") or _first_paragraph(document.body)
    listed = not parse_bool(document.fields.get("disable-model-invocation"))
    return SkillInfo(name, to_one_line(described), folder, path, listed)


def _text_field(document: MarkdownDocument, field: str) -> str:
    value = document.fields.get(field)
    return value.strip() if isinstance(value, str) else ""


def _first_paragraph(body: str) -> str:
    """The first lines of a text that are no heading."""
    lines: list[str] = []
    for line in body.split("\n"):
        told = line.strip()
        if told and not told.startswith("#"):
            lines.append(told)
        elif lines:
            break
    return " ".join(lines)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_DESCRIPTION_LENGTH else f"{text[: MAX_DESCRIPTION_LENGTH - 1]}…"
