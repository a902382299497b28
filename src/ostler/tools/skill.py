"""Tool that lists skills or loads one."""

from collections.abc import Callable

import msgspec

from ostler.core.display import Display
from ostler.core.errors import ToolError
from ostler.core.permission import Need, Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.knowledge.skills import SkillCatalogue, SkillInfo, skill_body, skill_lines
from ostler.tools.base_tool import BaseTool

MAX_LIST_LENGTH = 40_000


class SkillParams(msgspec.Struct):
    name: str = ""


class SkillTool(BaseTool[SkillParams]):
    name = "skill"
    kind = "read"
    effects = False
    runs_in = "workspace"  # where the files of the skills are
    params = SkillParams

    def __init__(self, skills: Callable[[], SkillCatalogue]) -> None:
        self._skills = skills

    async def permission(self, params: SkillParams, workspace: Workspace) -> Permission:
        if not params.name:
            return Permission("list the skills")
        return Permission(f"load the skill {params.name}", (Need("skill", params.name, rule_pattern=params.name),))

    async def run(self, params: SkillParams, context: ToolContext) -> ToolResult:
        skills = self._skills()
        if not params.name:
            return _list_result(skills)
        skill = skills.get(params.name)
        if skill is None:
            raise ToolError(f"there is no skill {params.name!r}", code="not_found", hint=_hint(params.name, skills))
        text = skill_body(skill)
        if text is None:
            raise ToolError(f"cannot read the file of the skill {params.name!r}: {skill.origin}", code="gone")
        data = {"name": skill.name, "description": skill.description, "path": skill.origin, "content": text}
        return ToolResult("", "ok", _skill_text(skill, text), Display(f"{skill.name} ({skill.origin})"), data)


def _skill_text(skill: SkillInfo, text: str) -> str:
    folder = skill.origin.rpartition("/")[0]
    return f"Skill {skill.name}, from {skill.origin}. Files it names are in {folder}/.\n\n{text}"


def _list_result(skills: SkillCatalogue) -> ToolResult:
    listed = skills.list_skills()
    text = "\n".join(skill_lines(listed, MAX_LIST_LENGTH)) or "There are no skills."
    data = {"skills": [{"name": skill.name, "description": skill.description} for skill in listed]}
    return ToolResult("", "ok", text, Display(f"{len(listed)} skills"), data)


def _hint(name: str, skills: SkillCatalogue) -> str:
    from ostler.text.closest_name import closest_name

    names = [skill.name for skill in skills.list_skills()]
    suggestion = closest_name(name, names)
    if suggestion:
        return f"did you mean {suggestion}?"
    return f"available: {', '.join(names[:50])}" if names else "no skills are available"
