"""From a command's file to a prompt: who is let work on it, and what its person is told."""

import pytest

from ostler.app.prompt_builder import PromptBuilder
from ostler.core.errors import UsageError
from ostler.settings.load import load

pytestmark = pytest.mark.req("EN-11")


@pytest.fixture
def expand(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    (work / ".ostler" / "commands").mkdir(parents=True)

    async def call(made):
        raise AssertionError("nothing is to be run")

    async def expanded(head, arguments=""):
        (work / ".ostler" / "commands" / "it.md").write_text(f"---\n{head}\n---\nLook at $ARGUMENTS.")
        return await PromptBuilder(work, load(work, {}), allow_outside=False).expand("it", arguments, call)

    return expanded


@pytest.mark.parametrize(
    ("head", "agent", "is_task", "told"),
    [
        ("subtask: true", "general", True, ""),
        ("subtask: true\nagent: explore", "explore", True, ""),
        ("agent: explore", "explore", True, ""),
        ("agent: plan", "plan", False, ""),
        ("subtask: true\nagent: plan", "plan", False, "plan takes no tasks"),
        ("subtask: true\nagent: nobody", "general", True, "no agent 'nobody'"),
    ],
)
async def test_the_agent_that_a_command_names_works_and_no_freer_one(expand, head, agent, is_task, told):
    ready = await expand(head, "a.py")
    assert (ready.prompt.target.agent, bool(ready.prompt.target.task)) == (agent, is_task)
    assert told in "".join(ready.notices) and bool(told) == bool(ready.notices)


@pytest.mark.parametrize("template", ["$ARGUMENTS", "$1 $2"])
async def test_a_command_that_comes_out_empty_is_not_sent(ready, tmp_path, template):
    (tmp_path / "work/.ostler/commands/it.md").write_text(f"---\ndescription: x\n---\n{template}")
    with pytest.raises(UsageError, match="comes out empty"):
        await ready("/it")


@pytest.fixture
def ready(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    (work / ".ostler" / "commands").mkdir(parents=True)
    (work / ".ostler" / "commands" / "review.md").write_text("Review it.")

    async def call(made):
        raise AssertionError("nothing is to be run")

    async def typed(line):
        return (await PromptBuilder(work, load(work, {}), allow_outside=False).build(line, call)).prompt.text

    return typed


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("/reviw it", "did you mean /review?"),
        ("/nothing-like it", "there is: /review; if these are words"),
        ("/models", "a command of the prompt, not of a run"),
        ("/exit", "ostler chat has it"),
    ],
)
async def test_a_command_nobody_wrote_is_not_said_to_the_model(ready, line, why):
    with pytest.raises(UsageError) as raised:
        await ready(line)
    assert why in str(raised.value)


@pytest.mark.parametrize(
    "line", ["/usr/bin/x is broken", "/tmp is full", "/ is full", "// comment", "a /review", "/3 of it"]
)
async def test_a_path_is_no_command(ready, line):
    assert await ready(line) == line
