"""From a command's file to a prompt: who is let work on it, and what its person is told."""

import pytest

from ostler.app.prompting import Prompting
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
        return await Prompting(work, load(work, {}), outside=False).expand("it", arguments, call)

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
    assert (ready.prompt.cast.agent, bool(ready.prompt.cast.task)) == (agent, is_task)
    assert told in "".join(ready.told) and bool(told) == bool(ready.told)
