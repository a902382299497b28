"""Hooks run around every tool call."""

import subprocess

import pytest

from ostler.app.project import Project
from ostler.app.tool_host import builtin_tools, other_tools
from ostler.app.workspace import make_workspace
from ostler.backends.scripted import ScriptedBackend
from ostler.core.tools import ToolCall
from ostler.hooks.hook_runner import HookRunner
from ostler.journal.memory_journal import MemoryJournal
from ostler.knowledge.hooks import HookSpec
from ostler.knowledge.source_folder import SourceFolder
from ostler.session.session import LocalSession
from ostler.settings.load import load
from ostler.settings.run_options import RunOptions
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL
from ostler.tools.host import LocalToolHost
from ostler.workspace.local_workspace import LocalWorkspace

PATCH = "*** Begin Patch\n*** Add File: p.txt\n+x\n*** End Patch"
ARGUMENTS = {
    "read": {"path": "a.txt"},
    "list": {},
    "grep": {"pattern": "alpha"},
    "glob": {"pattern": "*.txt"},
    "write": {"path": "w.txt", "content": "x"},
    "edit": {"path": "a.txt", "old": "alpha", "new": "beta"},
    "patch": {"patch": PATCH},
    "todoread": {},
    "todowrite": {"todos": [{"content": "one"}]},
    "bash": {"command": "true"},
    "stat": {"path": "a.txt"},
    "mkdir": {"path": "folder"},
    "write_chunk": {"path": "c.txt", "content": "x"},
    "git_status": {},
    "git_diff": {},
    "git_log": {},
    "git_show": {"ref": "HEAD"},
    "git_blame": {"path": "a.txt"},
    "task": {"prompt": "x"},
    "skill": {},
}


class RecordingInterceptor:
    """Records every call and allows it."""

    def __init__(self):
        self.before_calls, self.after_calls = [], []

    async def before(self, call, context):
        self.before_calls.append(call.tool)
        return ""

    async def after(self, call, result, context):
        self.after_calls.append(call.tool)


@pytest.mark.req("EN-15", "TL-1")
@pytest.mark.parametrize("origin", ["model", "person", "protocol"])
async def test_hooks_run_before_and_after_every_tool(tmp_path, origin):
    (tmp_path / "a.txt").write_text("alpha\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    recorder = RecordingInterceptor()
    settings = load(tmp_path, {})
    workspace = make_workspace(Project.with_settings(tmp_path, settings), RunOptions(str(tmp_path)), interactive=True)
    tools = LocalToolHost(builtin_tools(settings), workspace, other_tools, interceptor=recorder)
    journal = MemoryJournal("s")
    session = LocalSession(
        backend=ScriptedBackend([]), tools=tools, journal=journal, policy=ALLOW_ALL, cwd=str(tmp_path)
    )
    await session.open(version="test", backend="none", options={})
    for name, arguments in ARGUMENTS.items():
        await session.call(ToolCall(f"call-{name}", name, arguments, origin=origin))
    await session.aclose()
    assert set(ARGUMENTS) == {*tools._tools, *tools._hidden_tools}
    assert recorder.before_calls == recorder.after_calls == list(ARGUMENTS)


DENIAL = '{"decision": "deny", "reason": "not now"}'


@pytest.mark.req("EN-15")
@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (DENIAL, "not now"),
        (f"\ufeff{DENIAL}", "not now"),
        (f"welcome to this shell\n{DENIAL}\n", "not now"),
        (DENIAL[:-2], "not a JSON object"),
        ("welcome\n{ this is code }\n", ""),
        ("welcome", ""),
        ("", ""),
    ],
)
async def test_output_before_the_answer_is_ignored(tmp_path, printed, reason):
    (tmp_path / "printed").write_text(printed)
    hook = HookSpec("before_tool", ("cat", str(tmp_path / "printed")))
    denial = await HookRunner([hook], SourceFolder(str(tmp_path), "project", [])).before(
        ToolCall("1", "read", {}), SilentContext()
    )
    assert reason in denial and bool(reason) == bool(denial)


@pytest.mark.req("EN-15")
async def test_denial_names_the_hook(tmp_path):
    class DenyingInterceptor(RecordingInterceptor):
        async def before(self, call, context):
            return "not on a Monday"

    tools = LocalToolHost([FakeTool("probe")], LocalWorkspace(str(tmp_path)), interceptor=DenyingInterceptor())
    result = await tools.run(ToolCall("1", "probe", {}), SilentContext())
    assert (result.status, result.for_model) == ("denied", "The user's hook denied this. not on a Monday")


class SilentContext:
    """A context that ignores events."""

    def emit(self, event):
        pass
