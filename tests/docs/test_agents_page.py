"""Create the example files of docs/agents.md where the page says, and check that they work."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.conftest import at

from ostler.testing.model_server import calls, text

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()


def write_example(home, path):
    """Write the `markdown` block that follows the first mention of a path on the page."""
    after = PAGE[PAGE.index(f"`~/{path}`") :]
    content = re.search(r"^```markdown\n(.*?)^```", after, re.DOTALL | re.MULTILINE)[1]
    target = home / path
    target.parent.mkdir(parents=True)
    target.write_text(content)


@pytest.fixture
def repository(ostler):
    """A repository with three commits and a README.md in the workspace."""
    (ostler.workspace / "README.md").write_text("A parser for dates.\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], cwd=ostler.workspace, check=True)
    for subject in ("commit-one", "commit-two", "commit-three"):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", subject], cwd=ostler.workspace, check=True)
    return ostler


def test_example_agent_may_use_git_and_no_other_command(repository, models):
    write_example(repository.home, ".ostler/agents/reviewer.md")
    script = (
        calls([("bash", {"command": "git log --oneline"})]),
        calls([("bash", {"command": "ls"})]),
        text("The commits are empty."),
    )
    with models.playing(*script) as server:
        done = repository("run", "-o", "json", "--agent", "reviewer", *at(server), "review the last commit")
        first = server.requests[0].json
        results = [message["content"] for message in server.requests[2].json["messages"] if message["role"] == "tool"]
    summary = json.loads(done.stdout)
    assert summary["answer"] == "The commits are empty.", done.stderr
    assert "commit-three" in results[0] and "README.md" not in results[1]
    assert [tool["status"] for tool in summary["tools"]] == ["ok", "denied"]
    assert {tool["function"]["name"] for tool in first["tools"]} == {"read", "grep", "list", "bash"}
    assert first["temperature"] == 0.2
    assert "You review code." in json.dumps(first["messages"])
    assert not summary.get("notices"), summary["notices"]


def test_example_command_sends_its_prompt_with_the_log_and_the_file(repository, models):
    write_example(repository.home, ".ostler/commands/review.md")
    line = re.search(r"^`(/review [^`]+)`", PAGE, re.MULTILINE)[1]
    with models.playing(text("fine")) as server:
        done = repository("run", *at(server), line)
        sent = json.dumps(server.requests[0].json["messages"])
    assert done.code == 0, done.stderr
    assert "Review the last 2 commits with regard to error handling." in sent
    assert "commit-two" in sent and "commit-three" in sent and "commit-one" not in sent
    assert "A parser for dates." in sent
