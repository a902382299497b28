"""The bash tool: output, exit codes, jobs and needs."""

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.permission import Rule
from ostler.core.tools import ToolCall
from ostler.policy.verdict import Policy, evaluate_permission
from ostler.testing.session_fixture import ALLOW_ALL, open_test_session
from ostler.tools.bash import BashParams, BashTool
from ostler.workspace.session_workspace import SessionShell, SessionWorkspace


@pytest.fixture
async def workspace(tmp_path):
    workspace = SessionWorkspace(
        str(tmp_path), SessionShell(str(tmp_path), writable=True, sandbox="off"), read_anywhere=False
    )
    yield workspace
    await workspace.aclose()


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
    result = await run(command="pwd; echo oops >&2; exit 3")
    assert result.status == "failed"
    assert result.data["stdout"] == f"{tmp_path}\n"
    assert (result.data["stderr"], result.data["exit_code"]) == ("oops\n", 3)
    assert result.for_model.endswith("[exit 3]")
    assert (await run(command="true")).for_model == "(no output)"


@pytest.mark.req("SH-1")
async def test_timeout(run):
    result = await run(command="sleep 30", timeout=0.2)
    assert result.status == "failed"
    assert "timed out after 0.2 s" in result.for_model


@pytest.mark.req("SH-1", "TL-10")
async def test_long_output_is_truncated_and_stored_in_full(run):
    result = await run(command="seq 1 400000")
    assert result.data["cut"]
    with open(result.data["spill"]) as whole:
        assert sum(1 for _ in whole) == 400000
    assert result.data["spill"] in result.for_model
    assert len(result.for_model) < 60_000


@pytest.mark.req("TL-10")
async def test_output_truncated_for_the_model_is_stored_in_full(run):
    result = await run(command="seq 1 20000")
    assert not result.data["cut"]
    with open(result.data["spill"]) as whole:
        assert whole.read() == result.data["stdout"]
    assert f"[full output: {result.data['spill']}]" in result.for_model


@pytest.mark.req("SH-1")
@pytest.mark.parametrize("command", ["vim a", "cd . && /usr/bin/vi a", "env X=1 nvim a", "view a | cat"])
async def test_interactive_editor_is_rejected(run, command):
    result = await run(command=command)
    assert result.fault.code == "needs_terminal"
    assert "is interactive" in result.for_model


@pytest.mark.req("SH-1")
async def test_editor_in_batch_mode_is_accepted(run):
    result = await run(command="vim() { echo ran; }; vim -es -c 'wq' a")
    assert result.for_model == "ran"


@pytest.mark.req("SH-9")
async def test_jobs_are_started_listed_read_and_stopped(run):
    job = (await run(command="echo started; sleep 100", background=True)).data["job"]
    assert f"{job}: running" in (await run(action="list")).for_model
    seen = ""
    while "started" not in seen:
        seen += (await run(action="read", job=job, wait=0.2)).for_model
    for short in ("1", 1, "%1", "job 1", "bg1", " BG-01 "):
        assert (await run(action="read", job=short)).data["id"] == job
    output = (await run(action="read", job="2")).for_model
    assert "no background command '2'" in output
    assert "available: bg1" in output
    assert "read needs `job`; jobs: bg1" in (await run(action="read")).for_model
    assert (await run(action="stop", job="1")).data["state"] == "killed"
    assert "killed" in (await run(action="list")).for_model


@pytest.mark.parametrize(
    ("arguments", "message"),
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
async def test_invalid_call_is_rejected_with_advice(run, arguments, message):
    result = await run(**arguments)
    assert result.status == "failed"
    assert message in result.for_model


@pytest.mark.req("PM-1", "SH-5")
async def test_every_command_of_a_line_is_a_separate_need(workspace):
    permission = await BashTool().permission(BashParams("git status && ls -la | grep x"), workspace)
    assert [(need.key, need.subject) for need in permission.needs] == [
        ("bash", "git status"),
        ("bash", "ls -la"),
        ("bash", "grep x"),
    ]
    assert [need.rule_pattern for need in permission.needs] == ["git status *", "ls *", "grep *"]


@pytest.mark.req("PM-1")
async def test_outside_path_and_network_are_separate_needs(workspace):
    permission = await BashTool().permission(BashParams("cat /etc/hosts", network=True), workspace)
    assert ("bash", "outside the workspace: /etc/hosts") in [(n.key, n.subject) for n in permission.needs]
    assert ("network", "cat /etc/hosts") in [(n.key, n.subject) for n in permission.needs]


@pytest.mark.req("PM-1", "SH-8")
@pytest.mark.parametrize("network", [True, False])
@pytest.mark.invariant("P13")
async def test_command_with_network_is_not_sandboxed(workspace, monkeypatch, network):
    async def sandboxed():
        return True

    monkeypatch.setattr(workspace, "is_sandboxed", sandboxed)
    permission = await BashTool().permission(BashParams("acme deploy", network=network), workspace)
    assert permission.needs[0].sandboxed is not network


@pytest.mark.req("PM-5")
async def test_preview_shows_command_reason_and_impact(workspace):
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


@pytest.fixture
def linked(tmp_path, tmp_path_factory):
    """A workspace with links to a file and to a folder outside it."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "folder").mkdir()
    for name in ("one", "two", "folder/three"):
        (outside / name).write_text(name)
    (tmp_path / "doc").symlink_to(outside / "one")
    (tmp_path / "lnk").symlink_to(outside / "folder")
    (tmp_path / "two").write_text("not a link")
    return outside


@pytest.mark.req("PM-11", "SH-5")
@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("cat doc", "one"),
        ("cat < doc", "one"),
        ("echo x >> doc", "one"),
        ("f=doc; cat $f", "one"),
        ("cat d*", "one"),
        ("cat [a-e]oc", "one"),
        ("sort --output=doc two", "one"),
        ("cat lnk/three", "folder/three"),
        ("echo x > lnk/new", "folder/new"),
        ("ls lnk", "folder"),
        ("cat lnk/../two", "two"),
        ("cat < lnk/../two", "two"),
        ("cd lnk && cat ../two", "two"),
    ],
)
async def test_need_names_the_place_that_a_symlink_leads_to(workspace, linked, command, place):
    needs = (await BashTool().permission(BashParams(command), workspace)).needs
    need = next(need for need in needs if need.subject == f"outside the workspace: {linked / place}")
    assert need.reason.endswith(f" leads to {linked / place}")
    assert not any(f"outside the workspace: {workspace.root}" in need.subject for need in needs)


@pytest.mark.req("PM-1")
@pytest.mark.parametrize("command", ["cat two", "cat t*", "cat ./sub/../two", "echo x > new", "cat /dev/null"])
async def test_path_in_the_workspace_is_not_outside(workspace, linked, command):
    needs = (await BashTool().permission(BashParams(command), workspace)).needs
    assert not [need for need in needs if need.subject.startswith("outside")]


@pytest.mark.req("PM-11")
async def test_standing_rule_does_not_cover_a_link_that_leads_elsewhere(workspace, linked, tmp_path):
    async def verdict(grants):
        return evaluate_permission(
            await BashTool().permission(BashParams("cat doc"), workspace), Policy(), grants=grants
        )

    permission = await BashTool().permission(BashParams("cat doc"), workspace)
    grants = [Rule(need.key, need.rule_pattern or need.subject, "allow") for need in permission.needs]
    assert (await verdict(grants)).action == "allow"
    (tmp_path / "doc").unlink()
    (tmp_path / "doc").symlink_to(linked / "two")
    assert (await verdict(grants)).action == "ask"


async def test_command_that_only_assigns_a_variable(run):
    result = await run(command="X=5")
    assert result.status == "ok"
