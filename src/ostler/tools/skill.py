"""The tool that lists skills, or loads one."""

from collections.abc import Callable

import msgspec

from ostler.knowledge.skills import Skill as Found
from ostler.knowledge.skills import Skills, content, list_lines
from ostler.tools.declared import Declared
from ostler.vocabulary.display import Display
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.permission import Need, Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult

LONGEST_LIST = 40_000


class SkillParams(msgspec.Struct):
    name: str = ""


class Skill(Declared[SkillParams]):
    name = "skill"
    kind = "read"
    effects = False
    params = SkillParams

    def __init__(self, skills: Callable[[], Skills]) -> None:
        self._skills = skills

    async def permission(self, params: SkillParams, ground: Ground) -> Permission:
        if not params.name:
            return Permission("list the skills")
        return Permission(f"load the skill {params.name}", (Need("skill", params.name, always=params.name),))

    async def run(self, params: SkillParams, context: ToolContext) -> ToolResult:
        skills = self._skills()
        if not params.name:
            return _list(skills)
        skill = skills.get(params.name)
        if skill is None:
            raise ToolFailure(f"there is no skill {params.name!r}", code="not_found", hint=_hint(params.name, skills))
        text = content(skill)
        if text is None:
            raise ToolFailure(f"the file of the skill {params.name!r} is gone or no text: {skill.origin}", code="gone")
        data = {"name": skill.name, "description": skill.description, "path": skill.origin, "content": text}
        return ToolResult("", "ok", _told(skill, text), Display(f"{skill.name} ({skill.origin})"), data)


def _told(skill: Found, text: str) -> str:
    folder = skill.origin.rpartition("/")[0]
    return f"Skill {skill.name}, from {skill.origin}. Files it names are in {folder}/.\n\n{text}"


def _list(skills: Skills) -> ToolResult:
    listed = skills.listed()
    text = "\n".join(list_lines(listed, LONGEST_LIST)) or "There are no skills."
    data = {"skills": [{"name": skill.name, "description": skill.description} for skill in listed]}
    return ToolResult("", "ok", text, Display(f"{len(listed)} skills"), data)


def _hint(name: str, skills: Skills) -> str:
    from ostler.text.names import nearest

    names = [skill.name for skill in skills.listed()]
    near = nearest(name, names)
    if near:
        return f"did you mean {near}?"
    return f"there are {', '.join(names[:50])}" if names else "there are none here"
