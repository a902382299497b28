"""Skills: folders with a SKILL.md, told to the model by name and description, and in full only when it asks."""

import posixpath
from collections.abc import Callable, Iterator, Sequence

import msgspec

from ostler.knowledge.folder import Folder
from ostler.knowledge.frontmatter import Document, parse
from ostler.knowledge.naming import NAME_RULE, one_line, usable_name
from ostler.knowledge.parts import Part
from ostler.knowledge.sources import Sources
from ostler.knowledge.tool_lists import truth

FILE = "SKILL.md"
LONGEST_INDEX = 8 * 1024
LONGEST_DESCRIPTION = 300
MOST_OF_ITS_HEAD = 24 * 1024
DEEPEST = 4
MOST_LOOKED_AT = 5000
_OWN = ("skills",)
_PERSONS = (".claude/skills", ".agents/skills", ".opencode/skills", ".opencode/skill", ".config/opencode/skills")
_PROJECTS = (".ostler/skills", ".claude/skills", ".agents/skills", ".opencode/skills", ".opencode/skill")
_INTRO = "Skills: instructions for special tasks. When one fits, load it with the `skill` tool before you begin."


class Skill(msgspec.Struct, frozen=True):
    """A skill as the model is told of it, and the folder its file lies in."""

    name: str
    description: str
    place: Folder
    path: str
    listed: bool = True

    @property
    def origin(self) -> str:
        """Where it comes from."""
        return self.place.shown(f"{self.path}/{FILE}")


class Skills:
    """The skills of a session; `hidden` says which of them no model may see."""

    def __init__(self, found: Sequence[Skill], hidden: Callable[[str], bool]) -> None:
        self._found = {skill.name: skill for skill in found if not hidden(skill.name)}

    def listed(self) -> list[Skill]:
        """Those that are offered, by name."""
        return sorted((skill for skill in self._found.values() if skill.listed), key=lambda skill: skill.name)

    def get(self, name: str) -> Skill | None:
        """The skill of a name, if a model may have it."""
        skill = self._found.get(name)
        return skill if skill and skill.listed else None

    def index(self) -> Part | None:
        """What of the prompt tells of skills; nothing when there are none."""
        lines = list_lines(self.listed())
        return Part("skills", f"{len(self.listed())} skills", "\n".join([_INTRO, *lines])) if lines else None


def list_lines(skills: Sequence[Skill], limit: int = LONGEST_INDEX) -> list[str]:
    """One line for each; what does not fit is counted."""
    lines: list[str] = []
    for number, skill in enumerate(skills):
        line = f"- {skill.name}: {_short(skill.description)}"
        limit -= len(line.encode()) + 1
        if limit < 0:
            return [*lines, f"[... {len(skills) - number} more; the skill tool without a name lists all ...]"]
        lines.append(line)
    return lines


def content(skill: Skill) -> str | None:
    """The text of a skill without its fields; nothing when its file is gone."""
    found = skill.place.read(f"{skill.path}/{FILE}")
    return parse(found.text).body.strip() if found else None


def find_skills(sources: Sources, paths: Sequence[str] = ()) -> list[Skill]:
    """Every skill, each name once: the project's before the person's, and what else is of that name is noted."""
    found: dict[str, Skill] = {}
    for folder, top in _tops(sources, paths):
        for path in _skill_folders(folder, top):
            skill = _skill(folder, path)
            if skill is None:
                continue
            if skill.name in found:
                other = found[skill.name].origin
                folder.note(f"{path}/{FILE}", f"there is another skill {skill.name!r} in {other}, which counts")
            else:
                found[skill.name] = skill
    return list(found.values())


def _tops(sources: Sources, paths: Sequence[str]) -> Iterator[tuple[Folder, str]]:
    """The usual folders, and after the project's those of the config that lie in it, after the person's the others."""
    inside = [path for path in paths if path[:1] not in ("/", "~") and ".." not in path.split("/")]
    usual = list(sources.pairs(_OWN, _PERSONS, _PROJECTS))
    yield from (pair for pair in usual if pair[0] is sources.work)
    yield from ((sources.work, posixpath.normpath(path)) for path in inside)
    yield from (pair for pair in usual if pair[0] is not sources.work)
    for path in paths:
        if path.startswith("~/") and sources.person:
            yield sources.person, posixpath.normpath(path[2:])
        elif path not in inside:
            yield Folder("/", "user", sources.notes, label="/"), posixpath.join(sources.work.root, path).lstrip("/")


def _skill_folders(folder: Folder, top: str) -> Iterator[str]:
    """Folders that hold a SKILL.md; what lies below one belongs to it."""
    budget = [MOST_LOOKED_AT]
    yield from _below(folder, top, 0, budget)
    if budget[0] <= 0:
        folder.note(top, f"it holds more than {MOST_LOOKED_AT} names; the rest is left out")


def _below(folder: Folder, here: str, depth: int, budget: list[int]) -> Iterator[str]:
    names = folder.names(here)
    if (FILE, False) in names:
        yield here
        return
    for name, is_folder in names:
        budget[0] -= 1
        if budget[0] <= 0 or depth == DEEPEST:
            return
        if is_folder and name[0] != ".":
            yield from _below(folder, f"{here}/{name}", depth + 1, budget)


def _skill(folder: Folder, path: str) -> Skill | None:
    file = f"{path}/{FILE}"
    found = folder.read(file, MOST_OF_ITS_HEAD)
    if found is None:
        return None
    document = parse(found.text)
    for flaw in document.flaws:
        folder.note(file, flaw.message, flaw.line)
    name = _text(document, "name")
    if name and not usable_name(name):
        folder.note(file, f"its name {name[:80]!r} is not made of {NAME_RULE}; the folder's is taken")
    if not usable_name(name):
        name = posixpath.basename(path)
    if not usable_name(name):
        folder.note(file, "neither its name nor its folder's can be used; it is left out")
        return None
    described = _text(document, "description") or _first_paragraph(document.body)
    listed = not truth(document.fields.get("disable-model-invocation"))
    return Skill(name, one_line(described), folder, path, listed)


def _text(document: Document, field: str) -> str:
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


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_DESCRIPTION else f"{text[: LONGEST_DESCRIPTION - 1]}…"
