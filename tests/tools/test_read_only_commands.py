"""Commands that an interactive session runs with the workspace read-only instead of asking."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.tiers import amount

from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import ToolError
from ostler.core.events import PermissionAsked, ToolStarted
from ostler.core.permission import Decision, Need, Permission, Rule
from ostler.core.tools import ToolCall
from ostler.policy.presets import BASELINE
from ostler.policy.verdict import Policy, evaluate_permission, evaluate_read_only
from ostler.processes import bubblewrap, landlock
from ostler.testing.session_fixture import open_test_session
from ostler.tools.bash import BashParams, BashTool
from ostler.workspace.home_paths import CREDENTIAL_PATHS
from ostler.workspace.session_workspace import SessionShell, SessionWorkspace
from ostler.workspace.write_denials import mentions_denied_write

pytestmark = pytest.mark.req("PM-11")
DATA = Path(__file__).parents[1] / "data" / "shell"
MAKEFILE = "all: out\nout:\n\techo built > out\ncheck:\n\t@echo checked\n"


class Chat:
    """An interactive session whose model calls bash; `answers` are the user's answers, in order."""

    def __init__(self, session):
        self.session = session
        self.asked = []
        self._count = 0

    async def call(self, command, *answers, **arguments):
        self._count += 1
        call = ToolCall(f"c{self._count}", "bash", {"command": command, **arguments})
        subscription = self.session.subscribe(since=self.session.last_seq)
        running = asyncio.ensure_future(self.session.run_tool(call))
        running.add_done_callback(lambda _: subscription.close())
        left = list(answers)
        async for envelope in subscription:
            if isinstance(envelope.event, PermissionAsked):
                self.asked.append(envelope.event.permission)
                assert self.session.answer(envelope.event.ask_id, left.pop(0))
        assert not left
        return await running

    def effects(self):
        return [event.effects for event in self.session.events() if isinstance(event, ToolStarted)]


async def open_chat(folder, policy=None, sandbox="require"):
    workspace = SessionWorkspace(
        str(folder), SessionShell(str(folder), writable=True, sandbox=sandbox), read_anywhere=False
    )
    return Chat(await open_test_session(ScriptedBackend([]), [BashTool()], workspace, policy=policy or Policy()))


@pytest.fixture
async def chat(tmp_path):
    (tmp_path / "Makefile").write_text(MAKEFILE)
    chat = await open_chat(tmp_path)
    yield chat
    await chat.session.aclose()


ALLOW, DENY = Decision("allow", by="person"), Decision("deny", by="person", feedback="not now")


async def test_command_that_does_not_write_runs_without_asking(chat, tmp_path):
    (tmp_path / "test_x.py").write_text("import unittest\nclass T(unittest.TestCase):\n    def test_x(self): pass\n")
    for command in ("make check", "python3 -m unittest -q test_x"):
        assert (await chat.call(command)).status == "ok"
    assert (chat.asked, chat.effects()) == ([], [False, False])


@pytest.mark.invariant("P15")
async def test_command_that_must_write_is_asked_about_and_runs_again(chat, tmp_path):
    result = await chat.call("make", ALLOW)
    assert (result.status, (tmp_path / "out").read_text()) == ("ok", "built\n")
    assert "the workspace was read-only" not in result.for_model
    [permission] = chat.asked
    assert "read-only" in str(permission.preview.blocks)
    assert [need.subject for need in permission.needs] == ["make", "out"]
    assert chat.effects() == [False, True]  # so the checkpoint is taken before the second run


async def test_denied_second_run_returns_the_first_result(chat, tmp_path):
    result = await chat.call("make", DENY)
    assert result.status == "failed"
    assert "not now" in result.for_model and "ead-only" in result.for_model
    assert not (tmp_path / "out").exists()


async def test_withdrawn_request_cancels_the_call(chat):
    assert (await chat.call("make", Decision("cancel", by="nobody"))).status == "cancelled"


async def test_answer_for_the_session_covers_the_next_writable_run(chat, tmp_path):
    await chat.call("make", msgspec.structs.replace(ALLOW, scope="session"))
    (tmp_path / "out").unlink()
    assert (await chat.call("make")).status == "ok"
    assert (tmp_path / "out").exists() and len(chat.asked) == 1


@pytest.mark.req("SH-8")
async def test_file_of_the_home_is_readable_after_its_approval(tmp_path, monkeypatch):
    home, folder = tmp_path / "home", tmp_path / "home" / "work"
    folder.mkdir(parents=True)
    for name in ("first.md", "second.md"):
        (home / name).write_text(f"text of {name}")
    monkeypatch.setenv("HOME", str(home))
    chat = await open_chat(folder)
    assert "text of first.md" in (await chat.call("cat ~/first.md", ALLOW)).for_model
    assert "text of second.md" in (await chat.call("cat ~/s*.md", ALLOW)).for_model
    assert (await chat.call("cat ~/first.md", DENY)).status == "denied"
    result = await chat.call('python3 -c \'import os; print(open(os.environ["HOME"] + "/first.md").read())\'')
    assert "text of" not in result.for_model
    await chat.session.aclose()


async def test_model_can_ask_for_a_writable_workspace(chat, tmp_path):
    assert (await chat.call("touch new", ALLOW, write=True)).status == "ok"
    assert (tmp_path / "new").exists()
    assert "write" not in BashTool().spec.schema["properties"]


async def test_hidden_reason_is_explained_to_the_model(chat, tmp_path):
    result = await chat.call("touch new 2>/dev/null")
    assert result.status == "failed" and "write: true" in result.for_model
    hidden = await chat.call("touch new || true")
    assert hidden.status == "ok" and "write: true" in hidden.for_model
    assert not (tmp_path / "new").exists() and chat.asked == []


async def test_job_in_the_background_is_read_only(chat, tmp_path):
    result = await chat.call("touch new; echo over", background=True)
    assert "write: true" in result.for_model
    output = await chat.call("", action="read", job="bg1", wait=30)
    assert "over" in output.for_model and not (tmp_path / "new").exists()


@pytest.mark.req("SH-3", "SH-8")
@pytest.mark.parametrize(
    ("command", "arguments"),
    [("rm Makefile", {}), ("git push", {"network": True}), ("make -C /etc", {}), ("echo x > Makefile", {})],
    ids=["dangerous", "network", "outside", "overwrites"],
)
async def test_guards_still_ask_before_anything_runs(chat, command, arguments):
    assert (await chat.call(command, DENY, **arguments)).status == "denied"
    assert chat.effects() == []


@pytest.mark.req("SH-8")
async def test_command_cannot_read_stored_credentials(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in CREDENTIAL_PATHS:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("stored credential")
    (tmp_path / "notes").write_text("plain text")
    chat = await open_chat(tmp_path)
    result = await chat.call("python3 --version; grep -rhs . .")
    assert "plain text" in result.for_model and "stored credential" not in result.for_model
    assert chat.asked == []
    await chat.session.aclose()


@pytest.mark.parametrize(
    "policy",
    [Policy(profile="paranoid"), Policy(rules=(Rule("bash", "*", "deny", "test"),))],
    ids=["paranoid", "rule"],
)
async def test_paranoid_asks_and_rules_deny(tmp_path, policy):
    chat = await open_chat(tmp_path, policy)
    answers = [DENY] if policy.profile == "paranoid" else []
    assert (await chat.call("make check", *answers)).status == "denied"
    assert (len(chat.asked), chat.effects()) == (len(answers), [])
    await chat.session.aclose()


ASK_RULES = [Rule("bash", "make *", "ask", "config.json"), Rule("bash", "*", "ask", "agents/careful.md")]


@pytest.mark.req("PM-1", "PM-2")
@pytest.mark.invariant("P15")
@pytest.mark.parametrize("layer", ["rules", "restrictions"])
@pytest.mark.parametrize(
    ("rule", "command"),
    [
        (ASK_RULES[0], "make check"),
        (ASK_RULES[0], "FOO=1 make check"),
        (ASK_RULES[0], "true && make check"),
        (ASK_RULES[0], "sh -c 'make check'"),
        (ASK_RULES[1], "python3 --version"),
    ],
)
async def test_ask_rule_of_the_user_asks_before_anything_runs(tmp_path, layer, rule, command):
    policy = Policy(rules=(*BASELINE, rule)) if layer == "rules" else Policy(restrictions=((rule,),))
    chat = await open_chat(tmp_path, policy)
    assert (await chat.call(command, DENY)).status == "denied"
    assert (len(chat.asked), chat.effects()) == (1, [])
    await chat.session.aclose()


@pytest.mark.req("PM-1", "PM-2")
async def test_ask_rule_also_asks_about_a_command_that_only_looks(tmp_path):
    chat = await open_chat(tmp_path, Policy(rules=(*BASELINE, Rule("bash", "git log *", "ask", "config.json"))))
    assert (await chat.call("git log -1", DENY)).status == "denied"
    assert (await chat.call("pwd")).status == "ok"
    await chat.session.aclose()


@pytest.mark.req("PM-4")
@pytest.mark.parametrize(
    ("changes", "action"),
    [
        ({}, "ask"),
        ({"interactive": False, "allow_sandboxed_by_default": True}, "deny"),
        ({"interactive": False, "flags": (Rule("bash", "make *", "allow", "--allow"),)}, "allow"),
        ({"allow_sandboxed": True}, "allow"),
        ({"profile": "god_mode"}, "allow"),
    ],
    ids=["interactive", "non-interactive", "flag", "mode accept-edits", "god_mode"],
)
def test_ask_rule_of_the_user_is_lifted_by_their_flag_mode_or_profile_only(changes, action):
    permission = Permission("", (Need("bash", "make check", sandboxed=True),), may_run_read_only=True)
    policy = Policy(rules=(*BASELINE, ASK_RULES[0]), **changes)
    assert evaluate_permission(permission, policy).action == action
    assert (evaluate_read_only(permission, policy) is not None) == (action == "allow")


async def test_without_a_sandbox_commands_are_asked_about(tmp_path):
    chat = await open_chat(tmp_path, sandbox="off")
    assert (await chat.call("make check", DENY)).status == "denied"
    await chat.session.aclose()


async def test_user_commands_can_write(chat, tmp_path):
    assert (await chat.session.call(ToolCall("p1", "bash", {"command": "make"}, "person"))).status == "ok"
    assert (tmp_path / "out").exists() and chat.asked == []


@pytest.mark.invariant("P15")
async def test_interactive_session_is_never_stricter_than_a_run_without_a_person(tmp_path, monkeypatch):
    async def sandboxed(self):
        return True

    monkeypatch.setattr(SessionWorkspace, "is_sandboxed", sandboxed)
    workspace = SessionWorkspace(
        str(tmp_path), SessionShell(str(tmp_path), writable=True, sandbox="prefer"), read_anywhere=False
    )
    interactive, alone = Policy(), Policy(interactive=False, allow_sandboxed_by_default=True)
    lines = [
        line for name in ("harmless", "strangers", "tier1") for line in (DATA / f"{name}.txt").read_text().splitlines()
    ]
    commands = [line for line in lines if line.strip() and not line.startswith("#")]
    assert len(commands) > 500
    passed = 0
    for command in commands[:: amount(12, slow=3)]:
        try:
            permission = await BashTool().permission(BashParams(command=command), workspace)
        except ToolError:  # refused in both kinds of sessions
            continue
        if evaluate_permission(permission, alone).action == "allow":
            passed += 1
            verdict = evaluate_permission(permission, interactive)
            assert verdict.action == "allow" or evaluate_read_only(permission, interactive), command
    assert passed > 30
    await workspace.aclose()


@pytest.mark.parametrize("command", ["(", ";", "$(", "echo a; ;", "&"])
async def test_command_that_cannot_be_parsed_is_asked_about(chat, command):
    assert (await chat.call(command, DENY)).status == "denied"


@pytest.mark.skipif(bool(landlock.unavailable_reason()), reason="needs Landlock")
async def test_denied_write_is_recognised_under_landlock(tmp_path, monkeypatch):
    monkeypatch.setattr(bubblewrap, "unavailable_reason", lambda layout: "not here")
    chat = await open_chat(tmp_path)
    assert (await chat.call("touch new", ALLOW)).status == "ok"
    assert (tmp_path / "new").exists()
    await chat.session.aclose()


@pytest.mark.parametrize(
    ("line", "sandbox", "denied"),
    [
        ("touch: cannot touch 'x': Read-only file system", "bubblewrap", True),
        ("OSError: [Errno 30] Read-only file system: 'x'", "bubblewrap", True),
        ("Error: EROFS: read-only file system, open 'x'", "bubblewrap", True),
        ("error: failed to open x (os error 30)", "bubblewrap", True),
        ("sqlite3.OperationalError: attempt to write a readonly database", "bubblewrap", True),
        ("touch: cannot touch 'x': Permission denied", "landlock", True),
        ("bash: ./x.sh: Permission denied", "bubblewrap", False),
        ("PytestCacheWarning: could not create cache path: [Errno 30] Read-only file system", "bubblewrap", False),
        ("E   assert 30 == 31", "bubblewrap", False),
    ],
)
def test_output_mentions_a_denied_write(line, sandbox, denied):
    assert mentions_denied_write(f"first\n{line}\nlast", sandbox) is denied
