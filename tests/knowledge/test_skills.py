"""Skills: locations, the list for the model, and the tool that loads a skill."""

import os

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.tools import ToolCall
from ostler.knowledge.skills import MAX_DESCRIPTION_LENGTH, MAX_INDEX_BYTES, SkillCatalogue, find_skills, skill_body
from ostler.testing.session_fixture import open_test_session
from ostler.tools.skill import SkillTool
from ostler.workspace.local_workspace import LocalWorkspace

LOCATIONS = [
    ".ostler/skills",
    ".claude/skills",
    ".agents/skills",
    ".opencode/skills",
    ".opencode/skill",
    "~/.ostler/skills",
    "~/.claude/skills",
    "~/.agents/skills",
    "~/.opencode/skills",
    "~/.opencode/skill",
    "~/.config/opencode/skills",
]


def load_skills(folders, *paths):
    sources = folders.sources()
    skills = find_skills(sources, paths)
    return {skill.name: skill for skill in skills}, [str(note) for note in sources.notes]


@pytest.mark.req("EN-10", "DX-5")
@pytest.mark.parametrize("location", LOCATIONS)
def test_where_skills_are_load_skills(folders, location):
    folders.write({f"{location}/pdf/SKILL.md": "---\nname: pdf\ndescription: Reads PDF files.\n---\n# PDF\nDo this."})
    skills, notes = load_skills(folders)
    assert (skills["pdf"].description, skills["pdf"].origin) == ("Reads PDF files.", f"{location}/pdf/SKILL.md")
    assert skill_body(skills["pdf"]) == "# PDF\nDo this."
    assert notes == []


@pytest.mark.req("EN-10")
def test_first_skill_with_a_name_is_used_and_others_are_noted(folders):
    for number in range(len(LOCATIONS) - 1, -1, -1):
        folders.write({f"{LOCATIONS[number]}/pdf/SKILL.md": f"from {number}"})
        skills, notes = load_skills(folders)
        assert skills["pdf"].description == f"from {number}"
        assert len(notes) == len(LOCATIONS) - 1 - number
    assert all(f"the skill 'pdf' of {LOCATIONS[0]}/pdf/SKILL.md is used" in note for note in notes)


DOCUMENTS = {
    "fields": ("---\nname: a\ndescription: b\n---\nbody", "a", "b"),
    "no fields": ("# Title\n\nFirst paragraph\ngoes on.\n\nSecond.", "folder", "First paragraph goes on."),
    "only a name": ("---\nname: a\n---\nBody.", "a", "Body."),
    "several lines": ("---\ndescription: |\n  b\n  c\n---\n", "folder", "b c"),
    "colon": ("---\nname: a\ndescription: Use when: asked\n---\n", "a", "Use when: asked"),
    "odd name": ("---\nname: my skill\n---\nBody.", "folder", "Body."),
    "a wildcard as name": ("---\nname: '*'\n---\nBody.", "folder", "Body."),
    "name that is not text": ("---\nname: [a]\n---\nBody.", "folder", "Body."),
    "control characters": ("---\nname: a\ndescription: x\x1b[31my\n---\n", "a", "xy"),
    "empty": ("", "folder", ""),
    "broken": ("---\nname: a\n x: [\n---\nBody.", "a", "Body."),
}


@pytest.mark.req("EN-10")
@pytest.mark.parametrize("case", DOCUMENTS, ids=str)
def test_name_and_description(folders, case):
    text, name, description = DOCUMENTS[case]
    folders.write({".ostler/skills/folder/SKILL.md": text})
    skills, _ = load_skills(folders)
    assert {skill.name: skill.description for skill in skills.values()} == {name: description}


def test_nested_folders(folders):
    folders.write(
        {
            ".ostler/skills/team/pdf/SKILL.md": "a",
            ".ostler/skills/team/pdf/references/SKILL.md": "part of pdf",
            ".ostler/skills/.git/x/SKILL.md": "hidden",
            ".ostler/skills/README.md": "not a skill",
        }
    )
    assert set(load_skills(folders)[0]) == {"pdf"}


def test_paths_from_the_config(folders):
    (folders.outside / "far").mkdir()
    (folders.outside / "far" / "SKILL.md").write_text("far")
    folders.write(
        {"extra/near/SKILL.md": "near", "~/mine/own/SKILL.md": "own", ".ostler/skills/near/SKILL.md": "usual"}
    )
    skills, notes = load_skills(folders, "extra", "~/mine", str(folders.outside), "nothing")
    assert {name: skill.origin for name, skill in skills.items()} == {
        "near": ".ostler/skills/near/SKILL.md",
        "own": "~/mine/own/SKILL.md",
        "far": f"{folders.outside}/far/SKILL.md",
    }
    assert len(notes) == 1


def test_skills_are_found_once_in_the_home_directory(folders):
    folders.write({"~/.ostler/skills/a/SKILL.md": "a", "~/.claude/skills/b/SKILL.md": "b"})
    sources = folders.sources(folders.home)
    assert {skill.name: skill.folder.scope for skill in find_skills(sources)} == {"a": "user", "b": "user"}
    assert sources.notes == []


@pytest.mark.req("FS-2", "PM-8")
def test_hostile_folders_are_ignored(folders):
    skills = folders.work / ".ostler" / "skills"
    (skills / "pipe").mkdir(parents=True)
    os.mkfifo(skills / "pipe" / "SKILL.md")
    (skills / "binary").mkdir()
    (skills / "binary" / "SKILL.md").write_bytes(bytes(5000))
    (skills / "link").mkdir()
    (skills / "link" / "SKILL.md").symlink_to(folders.outside / "secret.md")
    (folders.outside / "SKILL.md").write_text("SECRET")
    (skills / "door").symlink_to(folders.outside)
    (skills / "loop").symlink_to(".")
    (skills / "bad name").mkdir()
    (skills / "bad name" / "SKILL.md").write_text("x")
    (skills / "huge").mkdir()
    (skills / "huge" / "SKILL.md").write_text("word " * 500_000)
    (skills / ("n" * 100)).mkdir()
    (skills / ("n" * 100) / "SKILL.md").write_text("x")
    names, notes = load_skills(folders)
    assert set(names) == {"huge"}
    assert "SECRET" not in str([skill.description for skill in names.values()])
    assert len(notes) >= 4


@pytest.mark.req("EN-10")
def test_symlink_of_the_user_is_followed(folders):
    folders.write({"~/dev/pdf/SKILL.md": "mine"})
    (folders.home / ".claude" / "skills").mkdir(parents=True)
    (folders.home / ".claude" / "skills" / "pdf").symlink_to(folders.home / "dev" / "pdf")
    assert set(load_skills(folders)[0]) == {"pdf"}


@pytest.mark.req("EN-10", "EN-8")
def test_size_of_the_index_is_limited(folders):
    folders.write({f".ostler/skills/s{n}/SKILL.md": "word " * 200 for n in range(60)})
    skills = SkillCatalogue(find_skills(folders.sources()), lambda name: False)
    section = skills.index_section()
    assert section.name == "skills"
    assert section.size < MAX_INDEX_BYTES + 500
    lines = section.text.split("\n")
    assert max(map(len, lines[1:])) < MAX_DESCRIPTION_LENGTH + 20
    assert lines[-1].startswith(f"[... {60 - (len(lines) - 2)} more")
    assert SkillCatalogue([], lambda name: False).index_section() is None


@pytest.mark.req("EN-10")
def test_denied_and_user_only_skills_are_not_listed(folders):
    folders.write(
        {
            ".ostler/skills/open/SKILL.md": "x",
            ".ostler/skills/secret-one/SKILL.md": "y",
            ".ostler/skills/by-hand/SKILL.md": "---\ndisable-model-invocation: true\n---\nz",
        }
    )
    skills = SkillCatalogue(find_skills(folders.sources()), lambda name: name.startswith("secret"))
    assert [skill.name for skill in skills.list_skills()] == ["open"]
    assert (skills.get("secret-one"), skills.get("by-hand")) == (None, None)
    assert "secret" not in skills.index_section().text


@pytest.fixture
def call_skill_tool(folders):
    """Call the tool as a model would."""
    folders.write(
        {
            ".claude/skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Reads PDF files.\n---\nRun scripts/read.py.",
            ".claude/skills/hidden/SKILL.md": "x",
        }
    )
    skills = SkillCatalogue(find_skills(folders.sources()), lambda name: name == "hidden")
    workspace = LocalWorkspace(str(folders.work))
    tool = SkillTool(lambda: skills)

    async def call(**arguments):
        session = await open_test_session(ScriptedBackend([]), [tool], workspace)
        result = await session.call(ToolCall("1", "skill", arguments))
        await session.aclose()
        return result, await tool.permission(tool.parse(arguments), workspace)

    yield call
    workspace.close()


@pytest.mark.req("EN-10", "TL-1")
async def test_tool_lists_skills(call_skill_tool):
    result, permission = await call_skill_tool()
    assert (result.status, result.for_model) == ("ok", "- pdf: Reads PDF files.")
    assert permission.needs == ()


@pytest.mark.req("EN-10", "TL-1")
async def test_tool_loads_a_skill(call_skill_tool):
    result, permission = await call_skill_tool(name="pdf")
    assert result.for_model.endswith("\n\nRun scripts/read.py.")
    assert ".claude/skills/pdf/" in result.for_model
    assert [(need.key, need.subject) for need in permission.needs] == [("skill", "pdf")]


@pytest.mark.parametrize(
    ("name", "message"), [("pfd", "did you mean pdf?"), ("hidden", "available: pdf"), ("../x", "available: pdf")]
)
async def test_unknown_skill_error_lists_the_skills(call_skill_tool, name, message):
    result, _ = await call_skill_tool(name=name)
    assert result.status == "failed"
    assert message in result.for_model


async def test_deleted_skill(call_skill_tool, folders):
    (folders.work / ".claude/skills/pdf/SKILL.md").unlink()
    result, _ = await call_skill_tool(name="pdf")
    assert (result.status, result.fault.code) == ("failed", "gone")
