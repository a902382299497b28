"""Tools for ACP agents: line ranges, truncated output, terminals and needs."""

from pathlib import Path

import pytest

from ostler.core.commands import BackgroundJob
from ostler.core.errors import ToolError
from ostler.text.secret_masker import MASK_MARKER, SecretMasker
from ostler.tools.bash import BashTool
from ostler.tools.protocol.agent_call_needs import AgentCallNeeds
from ostler.tools.protocol.approvals import Approvals
from ostler.tools.protocol.create_terminal import CreateTerminalParams, CreateTerminalTool
from ostler.tools.protocol.read_text_file import select_lines
from ostler.tools.protocol.terminals import Terminals, read_masked_tail, read_tail
from ostler.workspace.local_workspace import LocalWorkspace

KEY = "sk-proj-4f9d8a7b6c5e4d3c2b1a"
TEXT = "one\ntwo\r\nthree\nfour"


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "work").mkdir()
    workspace = LocalWorkspace(str(tmp_path / "work"))
    workspace.is_sandboxed = workspace.has_sandbox = no_sandbox
    yield workspace
    workspace.close()


@pytest.mark.req("AC-2")
@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (None, None, TEXT),
        (1, None, TEXT),
        (2, 1, "two\r\n"),
        (2, 2, "two\r\nthree\n"),
        (4, 1, "four"),
        (3, 99, "three\nfour"),
        (9, 1, ""),
        (None, 2, "one\ntwo\r\n"),
        (0, 1, "one\n"),
        (1, 0, ""),
        (-5, -5, ""),
    ],
)
def test_line_ranges_count_from_one(line, limit, expected):
    assert select_lines(TEXT, line, limit) == expected


@pytest.mark.req("AC-2")
@pytest.mark.parametrize(
    ("data", "limit", "is_final", "expected"),
    [
        (b"abc", 10, True, ("abc", False)),
        (b"abcdef", 3, True, ("def", True)),
        ("aéé".encode(), 3, True, ("é", True)),
        ("x😀y".encode(), 4, True, ("y", True)),
        (b"ab\xc3", 10, False, ("ab", False)),
        (b"ab\xc3", 10, True, ("ab\ufffd", False)),
        (b"abc", 0, True, ("", True)),
        (b"\x80" * 9, 4, True, ("", True)),
    ],
)
def test_tail_starts_at_a_character(tmp_path, data, limit, is_final, expected):
    file = tmp_path / "log"
    file.write_bytes(data)
    assert read_tail(str(file), limit, is_final=is_final) == expected


class FakeJobs:
    """Jobs that end only when they are stopped."""

    def __init__(self, log):
        self.log = log
        self.state = "running"
        self.code = None

    async def read(self, job_id, wait):
        return "", BackgroundJob(job_id, "cmd", self.state, self.code, 0.0, self.log)

    async def stop(self, job_id):
        self.state = "killed" if self.state == "running" else self.state


async def test_terminal_lifecycle(tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"hello world")
    jobs, terminals = FakeJobs(str(file)), Terminals()
    terminal = terminals.add(jobs, "bg1", 5)
    assert await terminals.output(terminal) == {"output": "world", "truncated": True}
    jobs.state, jobs.code = "exited", 3
    exit_status = {"exitCode": 3, "signal": None}
    assert await terminals.wait(terminal) == exit_status
    assert (await terminals.output(terminal))["exitStatus"] == exit_status
    await terminals.release(terminal)
    for method in (terminals.output, terminals.wait, terminals.kill, terminals.release):
        with pytest.raises(ToolError, match="there is no terminal"):
            await method(terminal)


async def test_killed_terminal_can_still_be_read(tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"so far")
    jobs, terminals = FakeJobs(str(file)), Terminals()
    terminal = terminals.add(jobs, "bg1", None)
    await terminals.kill(terminal)
    assert await terminals.wait(terminal) == {"exitCode": None, "signal": "SIGTERM"}
    assert (await terminals.output(terminal))["output"] == "so far"


@pytest.mark.parametrize(
    ("params", "line"),
    [
        (CreateTerminalParams("ls -la | wc"), "ls -la | wc"),
        (CreateTerminalParams("echo", ("a b", "$HOME", ";rm")), "echo 'a b' '$HOME' ';rm'"),
    ],
)
def test_command_without_arguments_is_a_shell_line(params, line):
    assert params.command_line == line


@pytest.mark.req("SH-3", "SH-6")
@pytest.mark.parametrize(("command", "danger"), [("ls", "ordinary"), ("sudo ls", "confirm"), ("rm -rf /", "deny")])
async def test_terminal_has_the_needs_of_its_command(workspace, command, danger):
    permission = await CreateTerminalTool(Terminals(), BashTool()).permission(CreateTerminalParams(command), workspace)
    assert {need.danger for need in permission.needs if need.key == "bash"} >= {danger}
    outside = await CreateTerminalTool(Terminals(), BashTool(), network=True).permission(
        CreateTerminalParams("ls", cwd="/"), workspace
    )
    assert [(need.key, need.subject) for need in outside.needs][-2:] == [
        ("network", "ls"),
        ("bash", "outside the workspace: /"),
    ]


@pytest.mark.req("SH-3", "SH-6")
async def test_terminal_is_checked_in_its_folder_and_with_its_variables(workspace, tmp_path):
    (tmp_path / "work" / "x.sh").write_text("ls")
    (tmp_path / "work" / "sub").mkdir()
    (tmp_path / "work" / "sub" / "x.sh").write_text("rm -rf *")

    async def needs(command, **params):
        params = CreateTerminalParams(command, **params)
        permission = await CreateTerminalTool(Terminals(), BashTool()).permission(params, workspace)
        return {need.danger for need in permission.needs}, [need.subject for need in permission.needs]

    assert (await needs("sh x.sh"))[0] == {"ordinary"}
    assert "confirm" in (await needs("sh x.sh", cwd="sub"))[0]
    assert "confirm" in (await needs("sh x.sh", cwd=str(tmp_path / "work" / "sub")))[0]
    assert "confirm" in (await needs("git fetch", env={"GIT_SSH_COMMAND": "rm -rf ."}))[0]
    assert "confirm" in (await needs("bash -c ls", env={"BASH_ENV": "sub/x.sh"}))[0]
    assert "GIT_DIR=x git status" in (await needs("git status", env={"GIT_DIR": "x"}))[1]
    assert await needs("git status", env={"NO_COLOR": "1"}) == await needs("git status")
    with pytest.raises(ToolError, match="'A;rm' is not the name of a variable"):
        await needs("ls", env={"A;rm": "x"})


async def no_sandbox():
    return False


@pytest.mark.req("PM-4")
@pytest.mark.parametrize(
    ("kind", "paths", "command", "expected"),
    [
        ("edit", ["a.txt"], "", [("write", "a.txt", "ordinary")]),
        ("move", ["a.txt", "b.txt"], "", [("write", "a.txt", "ordinary"), ("write", "b.txt", "ordinary")]),
        ("delete", ["a.txt"], "", [("delete", "a.txt", "ordinary")]),
        ("edit", [".git/config"], "", [("write", ".git/config", "confirm")]),
        ("edit", ["/etc/passwd"], "", [("write", "/etc/passwd", "deny")]),
        ("read", ["a.txt"], "", [("read", "a.txt", "ordinary")]),
        (
            "read",
            ["/etc/passwd"],
            "",
            [("read", "/etc/passwd", "ordinary"), ("external_directory", "/etc/passwd", "ordinary")],
        ),
        ("read", ["a\0b"], "", [("read", "a\0b", "deny")]),
        ("execute", [], "sudo ls", [("bash", "sudo ls", "confirm"), ("bash", "ls", "confirm")]),
        ("execute", [], "", [("bash", "a title", "deny")]),
        ("fetch", [], "", [("network", "a title", "ordinary")]),
        ("think", [], "", [("agent", "a title", "ordinary")]),
        ("brand_new", ["x"], "", [("agent", "x", "ordinary")]),
        ("brand_new", ["/etc/x"], "", [("agent", "/etc/x", "ordinary"), ("external_directory", "/etc/x", "ordinary")]),
        ("edit", [], "", [("write", "a title", "deny")]),
        ("move", [], "", [("write", "a title", "deny")]),
        ("delete", [], "", [("delete", "a title", "deny")]),
        ("read", [], "", [("read", "a title", "deny")]),
        ("search", [], "", [("grep", "a title", "ordinary")]),
    ],
)
async def test_needs_of_an_agents_own_call(workspace, kind, paths, command, expected):
    needs = await AgentCallNeeds(workspace, BashTool())(kind, "a title", paths, command)
    assert [(need.key, need.subject, need.danger) for need in needs] == expected
    assert not any(need.sandboxed for need in needs)


@pytest.mark.req("PM-4", "AC-1")
@pytest.mark.parametrize("kind", ["other", "think", "read", "fetch", "execute", "edit"])
async def test_call_that_shows_an_edit_needs_write_permission(workspace, kind):
    needs = await AgentCallNeeds(workspace, BashTool())(kind, "a title", ["a.txt"], "", ["a.txt", "/etc/passwd"])
    assert [(need.key, need.subject, need.danger) for need in needs if need.key == "write"] == [
        ("write", "a.txt", "ordinary"),
        ("write", "/etc/passwd", "deny"),
    ]


@pytest.mark.req("SH-3")
async def test_destructive_command_is_detected_under_any_kind(workspace):
    agent_call_needs = AgentCallNeeds(workspace, BashTool())
    needs = await agent_call_needs("read", "a title", ["a.txt"], "rm -rf /")
    assert [(need.key, need.danger) for need in needs] == [("read", "ordinary"), ("bash", "deny")]
    assert [need.key for need in await agent_call_needs("read", "a title", ["a.txt"], "view")] == ["read"]


@pytest.mark.invariant("P10")
def test_approved_edit_passes_once_and_only_unchanged(workspace):
    approvals = Approvals(workspace)
    approvals.add(f"{workspace.root}/a.txt", "text")
    assert not approvals.consume("a.txt", "other text")
    assert not approvals.consume("b.txt", "text")
    assert approvals.consume("a.txt", "text")
    assert not approvals.consume("a.txt", "text")
    approvals.add("a.txt", "text")
    approvals.clear()
    assert not approvals.consume("a.txt", "text")


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("kind", ["read", "search", "edit", "delete", "move", "other", "think", "execute"])
async def test_needs_of_an_agents_call_name_the_place_that_a_symlink_leads_to(workspace, tmp_path_factory, kind):
    place = tmp_path_factory.mktemp("outside") / "one"
    place.touch()
    (Path(workspace.root) / "doc").symlink_to(place)
    needs = await AgentCallNeeds(workspace, BashTool())(kind, "a title", ["doc"], "cat doc")
    assert any(need.subject.endswith(str(place)) for need in needs)
    assert not any(need.subject.endswith("doc") for need in needs if need.key != "bash")


@pytest.mark.req("MD-3")
@pytest.mark.parametrize(
    ("content", "limit", "is_final", "expected"),
    [
        (f"a {KEY} b", 100, True, (f"a {MASK_MARKER} b", False)),
        (f"a {KEY[:9]}", 100, False, ("a ", False)),
        (f"a {KEY[:9]}", 100, True, (f"a {KEY[:9]}", False)),
        (f"{KEY} é", 10, True, ("TLER*** é", True)),
        (f"{'x' * 40_000}{KEY}{'y' * 20_000}", 20_010, True, (f"{MASK_MARKER[-6:]}{'y' * 20_000}", True)),
        (f"{KEY}{'y' * (16 * 1024 + 5)}", 10, True, ("y" * 10, True)),
    ],
    ids=["whole", "start while running", "start at the end", "limit after masking", "limit", "margin"],
)
def test_secrets_are_masked_before_the_output_is_truncated(tmp_path, content, limit, is_final, expected):
    (tmp_path / "log").write_text(content)
    path, masker = str(tmp_path / "log"), SecretMasker([KEY])
    assert read_masked_tail(path, limit, masker, is_final=is_final) == expected
