"""The shell tool on a real ground: output, exit codes, jobs, what it says it needs."""

import pytest

from ostler.app.session_workspace import SessionShell, SessionWorkspace
from ostler.backends.scripted import ScriptedBackend
from ostler.core.tools import ToolCall
from ostler.testing.session_fixture import ALLOW_ALL, open_test_session
from ostler.tools.bash import BashParams, BashTool


@pytest.fixture
async def workspace(tmp_path):
    made = SessionWorkspace(
        str(tmp_path), SessionShell(str(tmp_path), writable=True, sandbox="off"), read_anywhere=False
    )
    yield made
    await made.aclose()


@pytest.fixture
async def run(workspace):
    session = await open_test_session(ScriptedBackend([]), [BashTool()], workspace, policy=ALLOW_ALL)
    count = 0

    async def call(**arguments):
        nonlocal count
        count += 1
        return await session.call(ToolCall(f"c{count}", "bash", arguments))

    yield call


@pytest.mark.req("SH-1")
async def test_output_and_exit_code(run, tmp_path):
    done = await run(command="pwd; echo oops >&2; exit 3")
    assert done.status == "failed"
    assert done.data["stdout"] == f"{tmp_path}\n"
    assert (done.data["stderr"], done.data["exit_code"]) == ("oops\n", 3)
    assert done.for_model.endswith("[exit 3]")
    assert (await run(command="true")).for_model == "(no output)"


@pytest.mark.req("SH-1")
async def test_timeout(run):
    done = await run(command="sleep 30", timeout=0.2)
    assert done.status == "failed"
    assert "timed out after 0.2 s" in done.for_model


@pytest.mark.req("SH-1", "TL-10")
async def test_long_output_is_cut_with_a_marker_and_kept_whole(run):
    done = await run(command="seq 1 400000")
    assert done.data["cut"]
    with open(done.data["spill"]) as whole:
        assert sum(1 for _ in whole) == 400000
    assert done.data["spill"] in done.for_model
    assert len(done.for_model) < 60_000


@pytest.mark.req("TL-10")
async def test_output_that_a_model_is_told_without_its_middle_stays_readable(run):
    done = await run(command="seq 1 20000")
    assert not done.data["cut"]
    with open(done.data["spill"]) as whole:
        assert whole.read() == done.data["stdout"]
    assert f"[full output: {done.data['spill']}]" in done.for_model


@pytest.mark.req("SH-1")
@pytest.mark.parametrize("command", ["vim a", "cd . && /usr/bin/vi a", "env X=1 nvim a", "view a | cat"])
async def test_a_program_that_would_wait_for_keys_is_refused_at_once(run, command):
    done = await run(command=command)
    assert done.fault.code == "needs_terminal"
    assert "is interactive" in done.for_model


@pytest.mark.req("SH-1")
async def test_an_editor_that_is_told_what_to_do_is_not_refused(run):
    done = await run(command="vim() { echo ran; }; vim -es -c 'wq' a")
    assert done.for_model == "ran"


@pytest.mark.req("SH-9")
async def test_jobs_are_started_listed_read_and_stopped(run):
    job = (await run(command="echo begun; sleep 100", background=True)).data["job"]
    assert f"{job}: running" in (await run(action="list")).for_model
    seen = ""
    while "begun" not in seen:
        seen += (await run(action="read", job=job, wait=0.2)).for_model
    for short in ("1", 1, "%1", "job 1", "bg1", " BG-01 "):
        assert (await run(action="read", job=short)).data["id"] == job
    told = (await run(action="read", job="2")).for_model
    assert "no background command '2'" in told
    assert "there are: bg1" in told
    assert "read needs `job`; jobs: bg1" in (await run(action="read")).for_model
    assert (await run(action="stop", job="1")).data["state"] == "killed"
    assert "killed" in (await run(action="list")).for_model


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "there is no command"),
        ({"command": "  "}, "there is no command"),
        ({"action": "read"}, "read needs `job`"),
        ({"command": "a\0b"}, "a command cannot contain a zero byte"),
        ({"command": "ls", "timeout": "-1"}, "timeout must be more than 0, not -1"),
        ({"action": "stop", "job": "nope"}, "nope"),
        ({"command": "ls", "cmd": "x"}, "given twice"),
        ({"command": 5, "action": "fly"}, "action"),
    ],
)
async def test_a_bad_call_says_what_to_send(run, arguments, sentence):
    done = await run(**arguments)
    assert done.status == "failed"
    assert sentence in done.for_model


@pytest.mark.req("PM-1", "SH-5")
async def test_every_command_of_a_line_is_a_need_of_its_own(workspace):
    permission = await BashTool().permission(BashParams("git status && ls -la | grep x"), workspace)
    assert [(need.key, need.subject) for need in permission.needs] == [
        ("bash", "git status"),
        ("bash", "ls -la"),
        ("bash", "grep x"),
    ]
    assert [need.rule_pattern for need in permission.needs] == ["git status *", "ls *", "grep *"]


@pytest.mark.req("PM-1")
async def test_a_path_outside_and_the_network_are_needs_of_their_own(workspace):
    permission = await BashTool().permission(BashParams("cat /etc/hosts", network=True), workspace)
    assert ("bash", "outside the workspace: /etc/hosts") in [(n.key, n.subject) for n in permission.needs]
    assert ("network", "cat /etc/hosts") in [(n.key, n.subject) for n in permission.needs]


@pytest.mark.req("PM-1", "SH-8")
@pytest.mark.parametrize("network", [True, False])
async def test_the_sandbox_does_not_hold_what_has_the_network(workspace, monkeypatch, network):
    async def confined():
        return True

    monkeypatch.setattr(workspace, "is_sandboxed", confined)
    permission = await BashTool().permission(BashParams("acme deploy", network=network), workspace)
    assert permission.needs[0].sandboxed is not network


@pytest.mark.req("PM-5")
async def test_what_is_asked_shows_command_reason_and_impact(workspace):
    permission = await BashTool().permission(BashParams("rm -rf build", reason="to start clean"), workspace)
    fields = dict(permission.preview.blocks[0].pairs)
    assert fields["command"] == "rm -rf build"
    assert fields["reason (the model's)"] == "to start clean"
    assert "delete" in fields["impact"]
    assert permission.dangerous


@pytest.mark.req("SH-6", "SH-7")
async def test_configured_patterns_raise_the_danger(workspace):
    bash = BashTool(danger_patterns=("^deploy",), blacklist_patterns=("curl .*evil",))
    assert [n.danger for n in (await bash.permission(BashParams("deploy now"), workspace)).needs] == ["confirm"]
    assert [n.danger for n in (await bash.permission(BashParams("curl http://evil"), workspace)).needs] == ["deny"]
