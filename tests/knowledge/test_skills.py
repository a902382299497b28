"""Skills: where they are found, what the model is told of them, and the tool that loads one."""

import os

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.tools import ToolCall
from ostler.knowledge.skills import MAX_DESCRIPTION_LENGTH, MAX_INDEX_BYTES, SkillCatalogue, find_skills, skill_body
from ostler.testing.session_fixture import open_test_session
from ostler.tools.skill import SkillTool
from ostler.workspace.local_workspace import LocalWorkspace

PLACES = [
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


def found(land, *paths):
    sources = land.sources()
    skills = find_skills(sources, paths)
    return {skill.name: skill for skill in skills}, [str(note) for note in sources.notes]


@pytest.mark.req("EN-10", "DX-5")
@pytest.mark.parametrize("place", PLACES)
def test_where_skills_are_found(land, place):
    land.write({f"{place}/pdf/SKILL.md": "---\nname: pdf\ndescription: Reads PDF files.\n---\n# PDF\nDo this."})
    skills, notes = found(land)
    assert (skills["pdf"].description, skills["pdf"].origin) == ("Reads PDF files.", f"{place}/pdf/SKILL.md")
    assert skill_body(skills["pdf"]) == "# PDF\nDo this."
    assert notes == []


@pytest.mark.req("EN-10")
def test_names_are_unique_the_first_place_counts_and_the_others_are_noted(land):
    for number in range(len(PLACES) - 1, -1, -1):
        land.write({f"{PLACES[number]}/pdf/SKILL.md": f"from {number}"})
        skills, notes = found(land)
        assert skills["pdf"].description == f"from {number}"
        assert len(notes) == len(PLACES) - 1 - number
    assert all(f"another skill 'pdf' in {PLACES[0]}/pdf/SKILL.md" in note for note in notes)


TOLD = {
    "fields": ("---\nname: a\ndescription: b\n---\nbody", "a", "b"),
    "no fields": ("# Title\n\nFirst paragraph\ngoes on.\n\nSecond.", "folder", "First paragraph goes on."),
    "only a name": ("---\nname: a\n---\nBody.", "a", "Body."),
    "several lines": ("---\ndescription: |\n  b\n  c\n---\n", "folder", "b c"),
    "colon": ("---\nname: a\ndescription: Use when: asked\n---\n", "a", "Use when: asked"),
    "odd name": ("---\nname: my skill\n---\nBody.", "folder", "Body."),
    "a name that would speak for others": ("---\nname: '*'\n---\nBody.", "folder", "Body."),
    "name that is no text": ("---\nname: [a]\n---\nBody.", "folder", "Body."),
    "control characters": ("---\nname: a\ndescription: x\x1b[31my\n---\n", "a", "xy"),
    "empty": ("", "folder", ""),
    "broken": ("---\nname: a\n x: [\n---\nBody.", "a", "Body."),
}


@pytest.mark.req("EN-10")
@pytest.mark.parametrize("case", TOLD, ids=str)
def test_name_and_description(land, case):
    text, name, description = TOLD[case]
    land.write({".ostler/skills/folder/SKILL.md": text})
    skills, _ = found(land)
    assert {skill.name: skill.description for skill in skills.values()} == {name: description}


def test_nested_folders_and_what_belongs_to_a_skill(land):
    land.write(
        {
            ".ostler/skills/team/pdf/SKILL.md": "a",
            ".ostler/skills/team/pdf/references/SKILL.md": "not one of its own",
            ".ostler/skills/.git/x/SKILL.md": "hidden",
            ".ostler/skills/README.md": "no skill",
        }
    )
    assert set(found(land)[0]) == {"pdf"}


def test_paths_of_the_config(land):
    (land.outside / "far").mkdir()
    (land.outside / "far" / "SKILL.md").write_text("far")
    land.write({"extra/near/SKILL.md": "near", "~/mine/own/SKILL.md": "own", ".ostler/skills/near/SKILL.md": "usual"})
    skills, notes = found(land, "extra", "~/mine", str(land.outside), "nothing")
    assert {name: skill.origin for name, skill in skills.items()} == {
        "near": ".ostler/skills/near/SKILL.md",
        "own": "~/mine/own/SKILL.md",
        "far": f"{land.outside}/far/SKILL.md",
    }
    assert len(notes) == 1


def test_in_the_home_directory_nothing_is_found_twice(land):
    land.write({"~/.ostler/skills/a/SKILL.md": "a", "~/.claude/skills/b/SKILL.md": "b"})
    sources = land.sources(land.home)
    assert {skill.name: skill.folder.scope for skill in find_skills(sources)} == {"a": "user", "b": "user"}
    assert sources.notes == []


@pytest.mark.req("FS-2", "PM-8")
def test_hostile_folders(land):
    skills = land.work / ".ostler" / "skills"
    (skills / "pipe").mkdir(parents=True)
    os.mkfifo(skills / "pipe" / "SKILL.md")
    (skills / "binary").mkdir()
    (skills / "binary" / "SKILL.md").write_bytes(bytes(5000))
    (skills / "link").mkdir()
    (skills / "link" / "SKILL.md").symlink_to(land.outside / "secret.md")
    (land.outside / "SKILL.md").write_text("SECRET")
    (skills / "door").symlink_to(land.outside)
    (skills / "loop").symlink_to(".")
    (skills / "bad name").mkdir()
    (skills / "bad name" / "SKILL.md").write_text("x")
    (skills / "huge").mkdir()
    (skills / "huge" / "SKILL.md").write_text("word " * 500_000)
    (skills / ("n" * 100)).mkdir()
    (skills / ("n" * 100) / "SKILL.md").write_text("x")
    names, notes = found(land)
    assert set(names) == {"huge"}
    assert "SECRET" not in str([skill.description for skill in names.values()])
    assert len(notes) >= 4


@pytest.mark.req("EN-10")
def test_a_link_to_a_skill_of_the_persons_own_is_followed(land):
    land.write({"~/dev/pdf/SKILL.md": "mine"})
    (land.home / ".claude" / "skills").mkdir(parents=True)
    (land.home / ".claude" / "skills" / "pdf").symlink_to(land.home / "dev" / "pdf")
    assert set(found(land)[0]) == {"pdf"}


@pytest.mark.req("EN-10", "EN-8")
def test_the_index_is_short_whatever_there_is(land):
    land.write({f".ostler/skills/s{n}/SKILL.md": "word " * 200 for n in range(60)})
    skills = SkillCatalogue(find_skills(land.sources()), lambda name: False)
    part = skills.index_section()
    assert part.name == "skills"
    assert part.size < MAX_INDEX_BYTES + 500
    lines = part.text.split("\n")
    assert max(map(len, lines[1:])) < MAX_DESCRIPTION_LENGTH + 20
    assert lines[-1].startswith(f"[... {60 - (len(lines) - 2)} more")
    assert SkillCatalogue([], lambda name: False).index_section() is None


@pytest.mark.req("EN-10")
def test_denied_ones_are_hidden_and_those_for_people_alone_are_not_offered(land):
    land.write(
        {
            ".ostler/skills/open/SKILL.md": "x",
            ".ostler/skills/secret-one/SKILL.md": "y",
            ".ostler/skills/by-hand/SKILL.md": "---\ndisable-model-invocation: true\n---\nz",
        }
    )
    skills = SkillCatalogue(find_skills(land.sources()), lambda name: name.startswith("secret"))
    assert [skill.name for skill in skills.list_skills()] == ["open"]
    assert (skills.get("secret-one"), skills.get("by-hand")) == (None, None)
    assert "secret" not in skills.index_section().text


@pytest.fixture
def use(land):
    """Call the tool as a model would."""
    land.write(
        {
            ".claude/skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Reads PDF files.\n---\nRun scripts/read.py.",
            ".claude/skills/hidden/SKILL.md": "x",
        }
    )
    skills = SkillCatalogue(find_skills(land.sources()), lambda name: name == "hidden")
    workspace = LocalWorkspace(str(land.work))
    tool = SkillTool(lambda: skills)

    async def call(**arguments):
        session = await open_test_session(ScriptedBackend([]), [tool], workspace)
        result = await session.call(ToolCall("1", "skill", arguments))
        await session.aclose()
        return result, await tool.permission(tool.parse(arguments), workspace)

    yield call
    workspace.close()


@pytest.mark.req("EN-10", "TL-1")
async def test_the_tool_lists(use):
    result, permission = await use()
    assert (result.status, result.for_model) == ("ok", "- pdf: Reads PDF files.")
    assert permission.needs == ()


@pytest.mark.req("EN-10", "TL-1")
async def test_the_tool_loads(use):
    result, permission = await use(name="pdf")
    assert result.for_model.endswith("\n\nRun scripts/read.py.")
    assert ".claude/skills/pdf/" in result.for_model
    assert [(need.key, need.subject) for need in permission.needs] == [("skill", "pdf")]


@pytest.mark.parametrize(
    ("name", "said"), [("pfd", "did you mean pdf?"), ("hidden", "there are pdf"), ("../x", "there are pdf")]
)
async def test_the_tool_says_what_there_is(use, name, said):
    result, _ = await use(name=name)
    assert result.status == "failed"
    assert said in result.for_model


async def test_a_skill_that_is_gone(use, land):
    (land.work / ".claude/skills/pdf/SKILL.md").unlink()
    result, _ = await use(name="pdf")
    assert (result.status, result.fault.code) == ("failed", "gone")
