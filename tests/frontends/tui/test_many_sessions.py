"""Several open sessions: the overview, the background, other projects."""

import asyncio

import pytest
from tests.fake_services import FakeServices
from tests.frontends.tui.tui_user import call, full_screen, say
from textual import events

from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import UsageError
from ostler.core.sessions import SessionSummary
from ostler.frontends.tui.projects import OpenedProject, StoredState
from ostler.frontends.tui.screens import overview_screen
from ostler.frontends.tui.screens.dialog import Dialog
from ostler.frontends.tui.screens.overview_screen import OverviewScreen
from ostler.interaction.chat_exit import ChatExit
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ASK_ALL, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace


class Projects:
    """Projects whose sessions ask for approval when the prompt is `ask`, and answer otherwise."""

    def __init__(self, folder):
        self.folder, self.stored, self.opened, self.worktrees = folder, [], [], []
        self.tool = FakeTool("probe")

    def open(self, cwd, backend="", resume=""):
        if cwd == "/missing":
            raise UsageError("--cwd /missing: no such folder")
        return OpenedProject(cwd, self, FakeServices)

    async def sessions(self):
        return self.stored

    async def server_sessions(self):
        return ()

    async def backends(self, cwd):
        return ["engine", "acp:echo"]

    async def make_worktree(self, cwd, name):
        self.worktrees.append(cwd)
        return f"{cwd}-tree"

    async def open_session(self, request):
        self.opened.append(request)

        async def act(context, prompt):
            await (call("probe") if prompt.text == "ask" else say(f"Reply to {prompt.text}."))(context, prompt)

        return await open_test_session(
            ScriptedBackend([act] * 9),
            [self.tool],
            LocalWorkspace(str(self.folder)),
            policy=ASK_ALL,
            journal=MemoryJournal(request.resume or f"session-{len(self.opened)}"),
        )


class Manager:
    """The session manager of `Projects`."""

    def __init__(self, projects):
        self._projects = projects

    async def open(self, request, *, tools=None, workspace=None):
        return await self._projects.open_session(request)


@pytest.fixture
def projects(tmp_path):
    made = Projects(tmp_path)
    plain_open = made.open
    made.open = lambda cwd, *_: OpenedProject(plain_open(cwd).cwd, Manager(made), FakeServices)
    return made


def client(projects, **options):
    return full_screen(None, manager=Manager(projects), projects=projects, **options)


async def open_overview(user):
    await user.press("f5")
    await user.wait_until(lambda: isinstance(user.app.screen, OverviewScreen))
    await user.pilot.pause()


def shown_rows(user):
    return [(item.mark, item.label) for item in user.app.screen.query_one("#choices").items]


@pytest.mark.req("TU-9", "TU-3")
async def test_new_work_starts_from_the_overview_while_the_first_session_waits(projects):
    async with client(projects) as user:
        await user.type("ask")
        await user.wait_for("Allow once")
        await open_overview(user)
        assert shown_rows(user) == [("?", "ask")]
        await user.press(*"more", "ctrl+n")
        await user.wait_for("Reply to more.")
        assert not user.dialog
        assert user.app.live.others.waiting == 1
        assert not projects.tool.runs


@pytest.mark.req("TU-9")
async def test_one_key_shows_the_session_that_waits_and_its_request(projects):
    async with client(projects) as user:
        await user.type("ask")
        await user.wait_for("Allow once")
        await user.app.switch("", "/work/project", prompt="more")
        await user.wait_for("Reply to more.")
        await user.press("alt+n")
        await user.wait_for("Allow once")
        assert "> ask" in user.transcript
        await user.pilot.pause()
        assert not projects.tool.runs


@pytest.mark.req("TU-9")
async def test_sessions_of_all_projects_are_listed_by_state(projects):
    summary = SessionSummary("old", "/work/other", "An old one", changed="2020-01-01T00:00:00+00:00", turns=2)
    elsewhere = SessionSummary("open", "/work/third", "Open there", turns=1)
    projects.stored = [StoredState(summary), StoredState(elsewhere, "working", is_open=True)]
    async with client(projects) as user:
        await open_overview(user)
        await user.wait_until(lambda: len(shown_rows(user)) == 3)
        assert shown_rows(user) == [("▶", "Open there"), ("·", "new session"), ("·", "An old one")]
        await user.press("enter")  # another process has it open
        await user.pilot.pause()
        assert isinstance(user.app.screen, OverviewScreen)
        await user.press(*"old", "enter")
        await user.wait_until(lambda: projects.opened[-1].resume == "old")
        await user.wait_until(lambda: user.app.project.cwd == "/work/other")
    assert projects.opened[-1].cwd == "/work/other"


@pytest.mark.req("TU-9")
async def test_keys_and_the_overview_do_not_wait_for_the_list_of_sessions(projects):
    listed = asyncio.Event()

    async def sessions():
        await listed.wait()
        summary = SessionSummary("old", "/work/other", "An old one", turns=2)
        return [StoredState(summary, "working", is_open=True)]

    projects.sessions = sessions
    async with client(projects) as user:
        await open_overview(user)
        assert shown_rows(user) == [("·", "new session")]
        listed.set()
        await user.wait_until(lambda: len(shown_rows(user)) == 2)
        assert user.app.screen.query_one("#choices").selected.label == "An old one"


@pytest.mark.req("TU-9")
async def test_next_waiting_session_may_be_one_of_a_server(projects):
    summary = SessionSummary("far", "/work/project", "Far away", turns=2)
    here = StoredState(summary, "waiting", backend="remote:unix:/s/api/agent/sessions/far", server="s")

    async def server_sessions():
        return [here]

    projects.server_sessions = server_sessions
    async with client(projects) as user:
        await user.type("ask")
        await user.wait_for("Allow once")
        await open_overview(user)
        await user.wait_until(lambda: len(shown_rows(user)) == 2)
        await user.press("ctrl+g")  # not the one that is shown
        await user.wait_until(lambda: len(projects.opened) == 2)
    assert (projects.opened[-1].backend, projects.opened[-1].resume) == (here.backend, "")


@pytest.mark.req("TU-9")
async def test_slow_server_is_waited_for_while_the_list_is_refreshed(projects, monkeypatch):
    monkeypatch.setattr(overview_screen, "REFRESH_SECONDS", 0.02)
    answered, calls = asyncio.Event(), []

    async def server_sessions():
        calls.append(1)
        await answered.wait()
        return [StoredState(SessionSummary("far", "/work/project", "Far away", turns=2), backend="remote:s")]

    projects.server_sessions = server_sessions
    async with client(projects) as user:
        await open_overview(user)
        screen = user.app.screen
        await user.wait_until(lambda: screen._refreshes > 8)
        assert len(calls) == 1
        answered.set()
        await user.wait_until(lambda: ("·", "Far away") in shown_rows(user))


@pytest.mark.req("TU-1", "TU-9")
async def test_error_of_a_list_or_a_new_session_does_not_end_the_client(projects):
    async def fail(*arguments):
        raise UsageError("config.json:2:1: the file ends")

    async with client(projects) as user:
        await user.type("hi")
        await user.wait_for("Reply to hi.")
        projects.sessions = projects.backends = projects.open_session = fail
        await open_overview(user)
        title = user.app.screen.query_one("#overview-title")
        await user.wait_until(lambda: "the file ends" in "".join(title.lines))
        await user.press("escape")
        await user.app.chat.action_do("backend")
        await user.wait_for("the file ends")
        user.app.chat.view.model.entries.clear()
        user.app.chat.prompt.insert("draft")
        shown = user.app.live.shown
        user.app.leave(ChatExit(None))
        await user.wait_for("the file ends")
        assert user.app.live.shown is shown
        assert user.app.chat.prompt.text == "draft"


@pytest.mark.req("CL-7", "TU-3")
async def test_new_session_replaces_the_shown_one_and_keeps_the_input(projects):
    async with client(projects) as user:
        await user.type("hi")
        await user.wait_for("Reply to hi.")
        before = user.app.live.shown
        user.app.chat.prompt.insert("draft")
        user.app.leave(ChatExit(None))
        await user.wait_until(lambda: user.app.live.shown not in (before, None))
        assert "Reply to hi." not in user.transcript
        assert user.app.chat.prompt.text == "draft"
        assert list(user.app.live) == [user.app.live.shown]


@pytest.mark.req("TU-1")
@pytest.mark.parametrize("key", ["f1", "f2", "f3", "f5", "f8"])
async def test_keys_pressed_while_a_dialog_closes_do_not_end_the_client(projects, key):
    async with client(projects, arcade="pong") as user:
        await user.press(key)
        await user.wait_until(lambda: isinstance(user.app.screen, Dialog))
        for _ in range(3):  # before the dialog handles the first one
            user.app.screen._forward_event(events.Key("escape", None))
        await user.wait_until(lambda: user.app.screen is user.app.chat)
        await user.type("more")
        await user.wait_for("Reply to more.")


@pytest.mark.req("TU-9")
async def test_new_work_in_a_worktree(projects):
    async with client(projects) as user:
        await open_overview(user)
        await user.press(*"fix", "ctrl+w")
        await user.wait_for("Reply to fix.")
    assert projects.worktrees == ["/work/project"]
    assert projects.opened[-1].cwd == "/work/project-tree"


@pytest.mark.req("TU-9")
async def test_text_of_new_work_that_cannot_start_returns_to_the_input(projects):
    async def fail(cwd, name):
        raise UsageError("not in a git repository")

    projects.make_worktree = fail
    async with client(projects) as user:
        await open_overview(user)
        await user.press(*"fix", "ctrl+w")
        await user.wait_for("not in a git repository")
        assert user.app.chat.prompt.text == "fix"


@pytest.mark.req("TU-3")
async def test_project_is_switched_by_path_and_a_wrong_path_changes_nothing(projects):
    async with client(projects) as user:
        await user.press("f9")
        await user.wait_until(lambda: type(user.app.screen).__name__ == "ChoiceScreen")
        await user.press(*"/missing", "enter")
        await user.wait_for("no such folder")
        assert user.app.project.cwd == "/work/project"
        await user.press("f9")
        await user.wait_until(lambda: type(user.app.screen).__name__ == "ChoiceScreen")
        await user.press(*"/work/else", "enter")
        await user.wait_until(lambda: user.app.project.cwd == "/work/else")
        await user.type("hi")
        await user.wait_for("Reply to hi.")


@pytest.mark.req("TU-3", "TU-6")
async def test_session_with_another_backend_is_started(projects):
    async with client(projects) as user:
        await user.app.chat.action_do("backend")
        await user.wait_until(lambda: type(user.app.screen).__name__ == "ChoiceScreen")
        await user.press(*"echo", "enter")
        await user.wait_until(lambda: projects.opened[-1].backend == "acp:echo")


@pytest.mark.req("TU-3")
async def test_draft_stays_with_its_session(projects):
    async with client(projects) as user:
        first = user.app.live.shown
        user.app.chat.prompt.insert("half a thought")
        await user.app.switch("", "/work/project")
        assert user.app.chat.prompt.text == ""
        await user.app.show(first)
        assert user.app.chat.prompt.text == "half a thought"


@pytest.mark.req("PM-11")
async def test_request_that_arrives_during_another_dialog_waits_until_it_is_closed(projects):
    async with client(projects) as user:
        await user.press("f2")
        await user.wait_until(lambda: type(user.app.screen).__name__ == "ChoiceScreen")
        await user.app.chat.controller.submit("ask", "")
        await user.wait_until(lambda: bool(user.app.chat.controller.requests))
        await user.press("y", "y", "y")
        await user.pilot.pause()
        assert type(user.app.screen).__name__ == "ChoiceScreen"
        await user.press("escape")
        await user.wait_for("Allow once")
        assert not projects.tool.runs


@pytest.mark.req("TU-9")
@pytest.mark.parametrize("state", ["working", "asks you"])
async def test_quit_warns_while_another_session_works_or_waits(projects, state):
    async with client(projects) as user:
        await user.type("ask")
        await user.wait_for("Allow once")
        if state == "working":
            user.app.chat.controller.requests._answered_id = next(iter(user.app.chat.controller.requests._forms))
        await user.app.switch("", "/work/project")
        await user.press("f10")
        await user.wait_until(lambda: f"1 {state} in the background" in user.app.chat._note)
        await user.press("f10")
        await user.wait_until(lambda: user.app.return_value == 0)


@pytest.mark.req("TU-1", "TU-10")
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (200, 1), (2, 40)])
@pytest.mark.sampled(every=3)
async def test_every_screen_survives_a_tiny_window(projects, size):
    async with client(projects, arcade="pong") as user:
        await user.type("hi")
        await user.wait_for("Reply to hi.")
        for key in ("f4", "f7", "f1", "f2", "f3", "f5", "f8", "ctrl+f", "/", "ask"):
            await (user.press(key) if key != "ask" else user.type("ask"))
            for columns, rows in (size, (100, 30)):
                await user.pilot.resize_terminal(columns, rows)
                await user.pilot.pause()
            if key in ("f1", "f2", "f3", "f5", "f8", "ctrl+f"):
                await user.press("escape")
            if key == "/":
                await user.press("escape", "ctrl+c")
        await user.wait_for("Allow once")
        await user.pilot.resize_terminal(*size)
        await user.pilot.pause()
        await user.pilot.resize_terminal(100, 30)
        await user.wait_for("Allow once")
