"""Commands, agents and context in `ostler chat` with piped input."""

import json
import re

import pytest

from ostler.testing.model_server import calls, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


@pytest.mark.req("EN-7", "CL-4")
def test_context_lines_add_up(ostler, models):
    (ostler.workspace / "AGENTS.md").write_text("Use tabs.\n" * 100)
    (ostler.workspace / "a.txt").write_text("alpha\n" * 300)
    counted = text("read it").with_usage(3000, 100)
    with models.playing(calls([("read", {"path": "a.txt"})]).with_usage(2000, 10), counted) as server:
        done = ostler("chat", *at(server), stdin="look at a.txt\n/context\n")
    pieces = re.findall(
        r"^ +(system prompt|project rules|environment|tools|prompts|answers and calls|tool results)"
        r"(?: \((.*?)\))? +(\d+)",
        done.stdout,
        re.MULTILINE,
    )
    assert {name for name, _, _ in pieces} >= {"system prompt", "project rules", "tools", "prompts", "tool results"}
    assert ("project rules", "AGENTS.md") in [(name, origin) for name, origin, _ in pieces]
    assert abs(sum(int(size) for _, _, size in pieces) - 3100) <= 3100 * 0.02
    assert "compacted automatically at 80% of the context window" in done.stdout
    assert re.search(r"\d+ of \d+ tokens \(\d+%\)", done.stdout)


@pytest.mark.req("EN-3", "EN-11")
def test_commands_and_agents_at_the_prompt(ostler, models):
    folder = ostler.workspace / ".ostler"
    for name, content in {
        "commands/greet.md": "Greet $ARGUMENTS.",
        "agents/poet.md": "---\ndescription: rhymes\n---\nAnswer in verse.",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    with models.playing(text("one"), text("two"), text("three")) as server:
        lines = "/greet Ann\n@agent:poet hello\n@agent:nobody hello\nonce more\n"
        done = ostler("chat", *at(server), stdin=lines)
        sent = [json.dumps(request.json["messages"]) for request in server.requests]
    assert "Greet Ann." in sent[0] and "verse" not in sent[0]
    assert "Answer in verse." in sent[1] and sent[2].count("Answer in verse.") == 1
    assert "unknown agent 'nobody'" in done.stdout


@pytest.mark.req("EN-3")
def test_flag_selects_the_agent_of_the_chat(ostler, models):
    agents = ostler.workspace / ".ostler" / "agents"
    agents.mkdir(parents=True)
    (agents / "poet.md").write_text("---\ndescription: rhymes\n---\nAnswer in verse.")
    with models.playing(text("one")) as server:
        ostler("chat", "--agent", "poet", *at(server), stdin="hello\n")
        assert "Answer in verse." in json.dumps(server.requests[0].json["messages"])
    assert "nobody" in ostler("chat", "--agent", "nobody", *at(server), stdin="hello\n").stderr


@pytest.mark.req("EN-4", "PM-5", "PM-11", "CL-2")
def test_piped_answers_go_to_approval_requests_in_order(ostler, models):
    """The lines answer the requests of a child, not the task itself; they are not sent to the model."""
    writes = calls([("write", {"path": f"{name}.txt", "content": "x"}) for name in ("one", "two", "three")])
    task = calls([("task", {"prompt": "write", "agent": "general"})])
    with models.playing(task, writes, text("tried"), text("done")) as server:
        done = ostler("chat", *at(server), stdin="let it write\ny\nn\ny\n")
    assert sorted(path.name for path in ostler.workspace.iterdir()) == ["one.txt", "three.txt"], done.stdout
