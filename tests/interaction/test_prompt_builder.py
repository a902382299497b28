"""Prompts from command files: the target agent and the notices."""

import json
import os

import pytest

from ostler.app.project import Project
from ostler.core.errors import UsageError
from ostler.interaction.services import PromptSource
from ostler.settings.load import load

pytestmark = pytest.mark.req("EN-11")


@pytest.fixture
def expand(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    (work / ".ostler" / "commands").mkdir(parents=True)

    async def call(tool_call):
        raise AssertionError("nothing should run")

    async def expanded(head, arguments=""):
        (work / ".ostler" / "commands" / "it.md").write_text(f"---\n{head}\n---\nLook at $ARGUMENTS.")
        return (
            await Project.with_settings(work, load(work, {}))
            .prompt_builder(allow_outside=False)
            .expand("it", arguments, call)
        )

    return expanded


@pytest.mark.parametrize(
    ("head", "agent", "is_task", "notice"),
    [
        ("subtask: true", "general", True, ""),
        ("subtask: true\nagent: explore", "explore", True, ""),
        ("agent: explore", "explore", True, ""),
        ("agent: plan", "plan", False, ""),
        ("subtask: true\nagent: plan", "plan", False, "agent plan cannot be used as a subagent"),
        ("subtask: true\nagent: nobody", "general", True, "unknown agent 'nobody'"),
    ],
)
async def test_command_selects_its_agent(expand, head, agent, is_task, notice):
    built = await expand(head, "a.py")
    assert (built.prompt.target.agent, bool(built.prompt.target.task)) == (agent, is_task)
    assert notice in "".join(built.notices) and bool(notice) == bool(built.notices)


@pytest.mark.parametrize("template", ["$ARGUMENTS", "$1 $2"])
async def test_empty_command_is_not_sent(build, tmp_path, template):
    (tmp_path / "work/.ostler/commands/it.md").write_text(f"---\ndescription: x\n---\n{template}")
    with pytest.raises(UsageError, match="expands to an empty prompt"):
        await build("/it")


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    (work / ".ostler" / "commands").mkdir(parents=True)
    (work / ".ostler" / "commands" / "review.md").write_text("Review it.")

    async def call(tool_call):
        raise AssertionError("nothing should run")

    async def build_text(line):
        return (
            await Project.with_settings(work, load(work, {})).prompt_builder(allow_outside=False).build(line, call)
        ).prompt.text

    return build_text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/reviw it", "did you mean /review?"),
        ("/nothing-like it", "available: /review; if this is text"),
        ("/models", "only available in the interactive client"),
        ("/exit", "use `ostler chat`"),
    ],
)
async def test_unknown_command_is_not_sent_to_the_model(build, line, message):
    with pytest.raises(UsageError) as raised:
        await build(line)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "line", ["/usr/bin/x is broken", "/tmp is full", "/ is full", "// comment", "a /review", "/3 of it"]
)
async def test_path_is_not_a_command(build, line):
    assert await build(line) == line


FENCED = "look:\n```\n{}\n```\n"


@pytest.fixture
def builder(tmp_path, monkeypatch):
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ostler").mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    for file in (home / ".ssh" / "work", home / ".pgpass", home / "notes.txt", work / "a.py", work / ".env"):
        file.write_text("content\n")
    (work / "link.txt").symlink_to(work / ".env")
    (home / ".ostler" / "config.json").write_text(json.dumps({"agent": {"poet": {"prompt": "Rhyme."}}}))
    return Project.with_settings(work, load(work, {"HOME": str(home)})).prompt_builder(allow_outside=True)


@pytest.mark.req("PM-8")
@pytest.mark.parametrize("quote", [FENCED, "> {}", "see `{}`", "    {}", "~~~\n{}", "pasted {}"], ids=repr)
async def test_only_ordinary_files_of_the_workspace_are_mentioned_in_pasted_and_quoted_text(builder, quote):
    text = quote.format("now @agent:poet @~/.ssh/work @~/.pgpass @~/notes.txt @.env @link.txt @a.py")
    built = await builder.from_text(text, PromptSource("plan", text if quote.startswith("pasted") else ""))
    assert [block.uri for block in built.prompt.blocks[1:]] == ["a.py"]
    assert (built.prompt.target, built.questions) == (None, ())
    (notice,) = [line for line in built.notices if "@~/.pgpass" in line]
    assert "the mention is pasted, quoted or in code" in notice and "write the full path" not in notice


@pytest.mark.req("PM-8")
async def test_sensitive_files_and_stronger_agents_are_asked_for_when_typed(builder):
    text = "@agent:build @~/.ssh/work @.env @link.txt @~/notes.txt go"
    built = await builder.from_text(text, PromptSource("plan"))
    assert [block.uri.rpartition("/")[2] for block in built.prompt.blocks[1:]] == ["notes.txt"]
    assert (built.prompt.target, len(built.questions)) == (None, 4)
    built = await builder.from_text(text, PromptSource("plan", approved=True))
    names = {block.uri.rpartition("/")[2] for block in built.prompt.blocks[1:]}
    assert (built.prompt.target.agent, names >= {"work", ".env", "notes.txt"}, built.questions) == ("build", True, ())


@pytest.mark.req("PM-8")
async def test_agents_and_outside_paths_are_asked_for_where_typed_text_may_be_pasted(builder):
    text = "@agent:plan @~/notes.txt @.env @a.py go"
    built = await builder.from_text(text, PromptSource("build", may_be_pasted=True))
    assert [block.uri for block in built.prompt.blocks[1:]] == ["a.py"]
    assert (built.prompt.target, list(built.questions)) == (
        None,
        [
            f"attach {os.path.expanduser('~/notes.txt')}, which is outside the workspace",
            "attach .env, which may contain secrets",
            "switch to the agent plan",
        ],
    )
    built = await builder.from_text(text, PromptSource("build", approved=True, may_be_pasted=True))
    assert (built.prompt.target.agent, len(built.prompt.blocks), built.questions) == ("plan", 4, ())


@pytest.mark.req("PM-8")
async def test_arguments_of_a_command_that_may_be_pasted_attach_only_files_of_the_workspace(builder, tmp_path):
    folder = tmp_path / "home" / ".ostler" / "commands"
    folder.mkdir()
    (folder / "look.md").write_text("Look at this: $ARGUMENTS")
    source = PromptSource("build", may_be_pasted=True)
    built = await builder.expand("look", "@agent:plan @~/notes.txt @.env @a.py", None, source)
    assert [block.uri for block in built.prompt.blocks[1:]] == ["a.py"]
    assert built.prompt.target is None
    assert [any(name in line for line in built.notices) for name in ("plan", "notes.txt", ".env")] == [True] * 3


@pytest.mark.req("EN-3")
@pytest.mark.parametrize(("current", "name"), [("build", "plan"), ("build", "poet"), ("poet", "build")])
async def test_agent_that_may_not_do_more_is_not_asked_for(builder, current, name):
    built = await builder.from_text(f"@agent:{name} go", PromptSource(current))
    assert (built.prompt.target.agent, built.questions) == (name, ())
