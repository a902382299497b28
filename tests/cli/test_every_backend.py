"""Agent, mode, profile and rules from the command line, with every backend that can change files."""

import json
import sys

import pytest
from tests.conftest import at

from ostler.testing.model_server import ScriptedModelServer, calls, text
from ostler.testing.zero_server import ScriptedZeroServer, zero_reply

pytestmark = [pytest.mark.req("PM-12", "PM-10"), pytest.mark.timeout(180)]
BACKENDS = ["engine", "acp", "agent_zero", "remote"]
COMMAND = "echo changed > c.txt"

MODEL_REPLIES = (
    calls([("write", {"path": "b.txt", "content": "x"})]),
    calls([("bash", {"command": COMMAND})]),
    text("Over."),
)


class Attempts:
    """Runs one turn in which the remote side tries to write b.txt and to create c.txt with a command."""

    def __init__(self, ostler, models, backend, team=None):
        self._ostler, self._models, self._backend, self._team = ostler, models, backend, team
        config = {"security": {"allow_shell": True}}
        (ostler.home / ".ostler").mkdir()
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))

    def __call__(self, *flags, prompt="", command="run"):
        self.outcome = getattr(self, f"_{self._backend}")((command, *flags), prompt)
        changed = {path.name for path in self._ostler.workspace.iterdir()} & {"b.txt", "c.txt"}
        for name in changed:
            (self._ostler.workspace / name).unlink()
        return changed

    def _engine(self, words, prompt):
        server = ScriptedModelServer(*MODEL_REPLIES)
        return self._serve(server, lambda: self._ostler(*words, *at(server), f"{prompt} go".strip()))

    def _acp(self, words, prompt):
        agent = {"command": sys.executable, "args": ["-m", "ostler.testing.echo_agent"]}
        (self._ostler.home / ".ostler" / "acp.json").write_text(json.dumps({"agent_servers": {"echo": agent}}))
        lines = "!write b.txt x\n!run " + COMMAND
        text = f"{prompt}\n{lines}" if prompt else lines
        return self._ostler(*words, "--backend", "acp:echo", text, timeout=90)

    def _agent_zero(self, words, prompt):
        requests = [("write_file", {"path": "b.txt", "content": "x"}), ("shell", {"command": COMMAND})]
        replies = [
            zero_reply(json.dumps({"type": "tool_request", "tool_name": tool, "payload": payload}))
            for tool, payload in requests
        ]
        server = ScriptedZeroServer([*replies, zero_reply("Over.")])

        def run():
            env = {"AGENTZERO_API_URL": server.api_url, "AGENTZERO_CONTEXT": "0"}
            return self._ostler(*words, "--backend", "agent_zero", f"{prompt} go".strip(), env=env)

        return self._serve(server, run)

    def _remote(self, words, prompt):
        self._team.script(*MODEL_REPLIES)
        try:
            return self._ostler(*words, *self._team.flags(), f"{prompt} go".strip(), env=self._team.env())
        finally:
            self._team.drop_replies()

    def _serve(self, server, run):
        """Run with a server; replies may be left, because a refused flag sends nothing."""
        self._models.wait(server.__aenter__())
        try:
            return run()
        finally:
            self._models.wait(server.__aexit__(AssertionError, AssertionError(), None))


@pytest.fixture(params=BACKENDS)
def attempts(request, ostler, models):
    team = request.getfixturevalue("team") if request.param == "remote" else None
    return Attempts(ostler, models, request.param, team)


@pytest.mark.parametrize(
    ("flags", "prompt"),
    [
        (("--agent", "plan"), ""),
        (("--mode", "plan"), ""),
        ((), "@agent:plan"),
        (("--agent", "plan", "--yolo"), ""),
        (("--agent", "plan", "--profile", "god_mode"), ""),
        (("--mode", "plan", "--allow", "write", "--allow", "bash"), ""),
    ],
    ids=["agent", "mode", "mention", "yolo", "god_mode", "allow"],
)
@pytest.mark.sampled
def test_plan_changes_nothing(attempts, flags, prompt):
    assert attempts("--write", *flags, prompt=prompt) == set(), attempts.outcome.stderr
    assert attempts("--write") == {"b.txt", "c.txt"}, attempts.outcome.stdout + attempts.outcome.stderr


@pytest.mark.parametrize(
    ("rules", "changed"),
    [
        ({"write": "deny"}, set()),
        ({"bash": "deny"}, {"b.txt"}),
        ({"write": {"b.*": "deny"}}, {"c.txt"}),
        ({"*": "deny"}, set()),
    ],
    ids=["write", "bash", "pattern", "all"],
)
@pytest.mark.sampled
def test_rules_of_an_agent_restrict_its_turn(attempts, ostler, rules, changed):
    agent = {"agent": {"careful": {"description": "careful", "permission": rules}}}
    config = ostler.home / ".ostler" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **agent}))
    assert attempts("--write", "--agent", "careful") == changed, attempts.outcome.stderr
    assert attempts("--write", prompt="@agent:careful") == changed


def test_profile_applies(attempts):
    assert attempts("--profile", "paranoid") == set()
    assert attempts("--profile", "god_mode", "--write") == {"b.txt", "c.txt"}
    assert attempts("--profile", "brave") == set()
    assert attempts.outcome.code == 2 and "brave" in attempts.outcome.stderr


@pytest.mark.parametrize(
    ("flags", "named"),
    [(("--agent", "nobody"), "nobody"), (("--mode", "brave"), "brave")],
    ids=["agent", "mode"],
)
def test_unknown_values_are_refused(attempts, flags, named):
    assert attempts("--write", *flags) == set()
    assert attempts.outcome.code == 2 and named in attempts.outcome.stderr


@pytest.mark.parametrize("flags", [("--mode", "plan"), ("--agent", "plan")], ids=["mode", "agent"])
@pytest.mark.sampled
def test_continued_session_stays_restricted_until_another_is_selected(attempts, flags):
    assert attempts("--write", *flags) == set()
    assert attempts("--write", "--continue") == set(), attempts.outcome.stderr
    other = ("--mode", "ask") if "--mode" in flags else ("--agent", "build")
    assert attempts("--write", "--continue", *other) == {"b.txt", "c.txt"}, attempts.outcome.stderr
    assert attempts("--write", "--continue") == {"b.txt", "c.txt"}


def test_session_whose_agent_is_gone_is_not_continued_without_a_user(attempts, ostler):
    definition = ostler.home / ".ostler" / "agents" / "careful.md"
    definition.parent.mkdir()
    definition.write_text("---\ndescription: careful\npermission:\n  '*': deny\n---\nBe careful.\n")
    assert attempts("--write", "--agent", "careful") == set()
    definition.unlink()
    assert attempts("--write", "--continue") == set()
    assert attempts.outcome.code == 2 and "'careful' of this session does not exist" in attempts.outcome.stderr
    assert attempts("--write", "--continue", "--agent", "build") == {"b.txt", "c.txt"}


@pytest.mark.parametrize("mode", ["plan", "accept-edits"])
def test_session_of_the_chat_is_continued_in_its_mode(ostler, models, mode):
    attempts = Attempts(ostler, models, "acp")
    attempts("--mode", mode)
    lines = f"/mode code\n/mode {mode}\nhello\n/quit\n"
    assert ostler("chat", "--backend", "acp:echo", stdin=lines, timeout=90).code == 0
    assert attempts("--write", "--continue") == (set() if mode == "plan" else {"b.txt", "c.txt"})
