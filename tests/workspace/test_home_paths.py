"""What sandboxed commands can read in home directories, with real sandboxes, repositories and symlinks."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from ostler.core.commands import CommandRequest
from ostler.core.tools import ToolCall
from ostler.processes import bubblewrap, landlock
from ostler.processes.sandbox_policy import SandboxPolicy, describe_homes, resolve_layout
from ostler.tools.bash import BashParams, BashTool
from ostler.tools.local_tool_context import LocalToolContext
from ostler.workspace import home_paths, session_workspace
from ostler.workspace.home_paths import hidden_homes, readable_paths, repository_folders
from ostler.workspace.session_workspace import SessionShell, SessionWorkspace

pytestmark = pytest.mark.req("SH-8")
_REASONS = {"bubblewrap": bubblewrap.unavailable_reason(), "landlock": landlock.unavailable_reason()}
with_both_backends = pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=pytest.mark.skipif(bool(why), reason=why)) for name, why in _REASONS.items()]
)
with_bubblewrap = pytest.mark.skipif(bool(_REASONS["bubblewrap"]), reason=_REASONS["bubblewrap"])

outside_temporary_folders = pytest.mark.skipif(
    str(Path(__file__).resolve()).startswith(("/tmp/", "/var/tmp/")),
    reason="the sandbox hides temporary folders",
)


@pytest.fixture
def base():
    """A folder outside the temporary ones, which are hidden anyway."""
    folder = tempfile.mkdtemp(prefix=".home-", dir=Path(__file__).parents[2])
    os.chmod(folder, 0o755)
    yield Path(folder)
    shutil.rmtree(folder)


@pytest.fixture
def home(base, monkeypatch):
    home = base / "me"
    (home / "work").mkdir(parents=True)
    (home / "diary").write_text("private")
    (home / ".gitconfig").write_text("[user]\n\tname = Me\n")
    (home / ".cargo").mkdir()
    (home / ".cargo" / "config.toml").write_text("[build]")
    (home / ".cargo" / "credentials.toml").write_text("private token")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    return home


@pytest.fixture
async def run(home, monkeypatch):
    """Return a function that runs a command in the sandbox and returns its output; the shells are closed at the end."""
    shells: list[SessionShell] = []

    async def run(command, *, root=None, backend="bubblewrap", readable=(), **request):
        shell = SessionShell(str(root or home / "work"), writable=True, sandbox="require", readable=readable)
        shell._ensure_processes()._backends = (backend,)
        shells.append(shell)
        await shell._ensure_processes().prepare()
        result = await shell.run(CommandRequest(command, timeout=60, **request))
        return result.stdout + result.stderr

    run.shells = shells
    yield run
    for shell in shells:
        await shell.aclose()


@with_both_backends
@pytest.mark.parametrize("read_only", [False, True], ids=["writable", "read-only"])
async def test_only_listed_paths_of_the_home_can_be_read(run, home, backend, read_only):
    output = await run(
        "cat ~/diary ~/.cargo/credentials.toml ~/.cargo/config.toml; ls -A ~; git config user.name",
        backend=backend,
        read_only=read_only,
    )
    assert "private" not in output and "diary" not in output.replace("/me/diary", "")
    assert "[build]" in output and "Me" in output


@with_both_backends
async def test_home_cannot_be_written(run, home, backend):
    await run("echo x > ~/new; echo x > ~/.cargo/new; mkdir ~/folder", backend=backend)
    assert not {"new", "folder"} & set(os.listdir(home))
    assert sorted(os.listdir(home / ".cargo")) == ["config.toml", "credentials.toml"]


def homes_description(shell: SessionShell) -> str:
    processes = shell._ensure_processes()
    return describe_homes(processes._sandboxes[processes._policy].layout)


@with_both_backends
@pytest.mark.parametrize("relation", ["parent", "same"])
async def test_workspace_that_contains_the_home_is_readable(run, home, backend, relation):
    root = home.parent if relation == "parent" else home
    output = await run("cat ~/diary; cat ~/.cargo/credentials.toml", root=root, backend=backend)
    assert "private" in output and "token" not in output
    assert "readable except for credentials" in homes_description(run.shells[0])


@with_both_backends
async def test_homes_of_other_users_are_hidden(run, home, base, backend, monkeypatch):
    (base / "other").mkdir()
    (base / "other" / "diary").write_text("private")
    monkeypatch.setattr(home_paths, "_OTHER_HOMES", (str(base),))
    output = await run(f"cat {base}/other/diary; ls {base}; cat ~/.gitconfig", backend=backend)
    assert "private" not in output and "other\n" not in output and "Me" in output
    assert str(base) in homes_description(run.shells[0])


@outside_temporary_folders
@with_both_backends
async def test_symlinked_home(run, home, base, backend, monkeypatch):
    (base / "homes").mkdir()
    (base / "homes" / "me").symlink_to(home)
    monkeypatch.setenv("HOME", str(base / "homes" / "me"))
    monkeypatch.setattr(home_paths, "_OTHER_HOMES", (str(base / "homes"),))
    output = await run("cat ~/diary; cat ~/.gitconfig; cd ~/work && echo over > file", backend=backend)
    assert "private" not in output and "Me" in output and (home / "work" / "file").read_text() == "over\n"


@with_both_backends
async def test_symlinks_to_settings_elsewhere_in_the_home(run, home, backend):
    (home / "dotfiles").mkdir()
    (home / ".gitconfig").rename(home / "dotfiles" / "gitconfig")
    (home / ".gitconfig").symlink_to("dotfiles/gitconfig")
    assert "Me" in await run("git config user.name", backend=backend)


@outside_temporary_folders
@with_both_backends
async def test_granted_paths_can_be_read(run, home, backend):
    (home / "data").mkdir()
    (home / "data" / "table.csv").write_text("1,2")
    assert "1,2" in await run("cat ~/data/table.csv", backend=backend, readable=("~/data",))
    assert "1,2" in await run("cat ~/data/table.csv", backend=backend, readable=("~",))
    assert "1,2" in await run("cat ~/data/table.csv", backend=backend, readable=("/",))
    assert "1,2" not in await run("cat ~/data/table.csv", backend=backend)


async def test_paths_that_a_command_names_can_be_read_by_it_alone(run, home):
    (home / "notes").mkdir()
    (home / "notes" / "a.md").write_text("first note")
    (home / "notes" / "b.md").write_text("second note")
    command = "cat ~/notes/*"
    assert "first" not in await run(command)
    request = CommandRequest(command, timeout=60, readable=(str(home / "notes" / "a.md"),))
    assert (await run.shells[-1].run(request)).stdout == "first note"
    assert "first" not in await run(command)


@with_both_backends
async def test_missing_file_of_the_home_is_explained(run, home, backend):
    assert "security.sandbox_readable" in await run("cat ~/diary", backend=backend)
    assert "security.sandbox_readable" not in await run("cat missing", backend=backend)


async def test_sandboxes_of_single_commands_are_closed(run, home):
    await run("true")
    shell = run.shells[-1]
    for number in range(8):
        (home / f"data{number}").write_text(f"text {number}")
        request = CommandRequest(f"cat ~/data{number}", timeout=60, readable=(str(home / f"data{number}"),))
        assert (await shell.run(request)).stdout == f"text {number}"
    assert len(shell._ensure_processes()._sandboxes) <= 6


async def test_command_with_network_access_can_use_keys_but_not_read_the_rest(run, home):
    (home / ".ssh").mkdir()
    (home / ".ssh" / "known_hosts").write_text("host key")
    output = await run("cat ~/.ssh/known_hosts ~/diary", network=True)
    assert "host key" in output and "private" not in output


def _git(*words, cwd):
    subprocess.run(["git", "-c", "protocol.file.allow=always", *words], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def repository(home):
    folder = home / "repository"
    folder.mkdir()
    _git("init", "-q", ".", cwd=folder)
    (folder / "file").write_text("text")
    _git("add", ".", cwd=folder)
    _git("-c", "user.email=me@example.org", "commit", "-q", "-m", "first", cwd=folder)
    return folder


@with_both_backends
async def test_git_works_in_a_worktree(run, home, repository, backend):
    _git("worktree", "add", "-q", str(home / "tree"), cwd=repository)
    output = await run("git log --oneline; git status --short --branch", root=home / "tree", backend=backend)
    assert "first" in output and "## tree" in output and "fatal" not in output


@with_both_backends
async def test_worktree_in_ostlers_folder_is_writable_and_the_rest_is_hidden(run, home, repository, backend):
    tree = home / ".ostler" / "worktrees" / "repository" / "fix"
    _git("worktree", "add", "-q", str(tree), cwd=repository)
    (home / ".ostler" / "config.json").write_text("private")
    output = await run("cat ~/.ostler/config.json; git status --short; echo new > file", root=tree, backend=backend)
    assert "private" not in output and "fatal" not in output and (tree / "file").read_text() == "new\n"
    assert "private" not in await run(
        "cat ../x ../../../config.json", root=home / ".ostler" / "worktrees", backend=backend
    )


async def test_git_works_in_a_submodule_and_below_the_top_of_a_repository(run, home, repository):
    whole = home / "whole"
    whole.mkdir()
    _git("init", "-q", ".", cwd=whole)
    _git("submodule", "add", "-q", str(repository), "part", cwd=whole)
    (whole / "sub").mkdir()
    for folder in ("part", "sub"):
        assert "fatal" not in await run("git status --short --branch", root=whole / folder)


async def test_git_pointer_of_a_hostile_repository_shows_nothing(run, home):
    secrets = home / "secrets"
    (secrets / "worktrees" / "x").mkdir(parents=True)
    (secrets / "HEAD").write_text("private")
    (secrets / "worktrees" / "x" / "commondir").write_text("../..")
    (home / "work" / ".git").write_text(f"gitdir: {secrets}/worktrees/x\n")
    assert "private" not in await run(f"cat {secrets}/HEAD")
    assert list(repository_folders(str(home / "work"))) == [str(home / "work")]


@pytest.mark.timeout(20)
def test_pipe_instead_of_a_file_of_git_does_not_block(home):
    work, directory = home / "work", home / "elsewhere"
    os.mkfifo(work / ".git")
    assert list(repository_folders(str(work))) == [str(work)]
    (work / ".git").unlink()
    (work / ".git").write_text(f"gitdir: {directory}\n")
    directory.mkdir()
    for name in ("gitdir", "config"):
        os.mkfifo(directory / name)
        assert list(repository_folders(str(work))) == [str(work)]


@with_both_backends
async def test_symlink_in_the_workspace_shows_nothing(run, home, backend, monkeypatch):
    (home / "work" / "bin").symlink_to(home)
    (home / "link").symlink_to("work/bin")
    monkeypatch.setenv("PATH", f"{home}/work/bin:{home}/link:{os.environ['PATH']}")
    output = await run("cat ~/diary ~/link/diary bin/diary", backend=backend, readable=("~/link", "~/work/bin/diary"))
    assert "private" not in output


@with_bubblewrap
async def test_programs_on_the_path_run(run, home, monkeypatch):
    for folder in ("tool/bin", "tool/lib", "scripts"):
        (home / folder).mkdir(parents=True)
    (home / "tool" / "lib" / "text").write_text("from the library")
    for program, text in {"tool/bin/tool": 'cat "$(dirname "$0")"/../lib/text', "scripts/plain": "echo plain"}.items():
        (home / program).write_text(f"#!/bin/sh\n{text}\n")
        (home / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}/tool/bin:{home}/scripts:{os.environ['PATH']}")
    assert await run("tool; plain") == "from the libraryplain\n"


def test_path_and_variables_never_show_a_whole_home(home, monkeypatch):
    (home / "lib").mkdir()
    (home / "bin").mkdir()
    environ = {"PATH": f"{home}/bin:{home}:/home/other/bin", "CARGO_HOME": str(home), "JAVA_HOME": "/"}
    found = readable_paths(str(home / "work"), (), environ)
    assert str(home / "bin") in found
    assert not {str(home), "/", "/home", "/home/other", str(home.parent)} & set(found)


@pytest.mark.parametrize("name", ["/", "/usr", "/etc", "relative", ""])
def test_home_that_is_part_of_the_system_is_not_hidden(tmp_path, monkeypatch, name):
    monkeypatch.setenv("HOME", name)
    layout = resolve_layout(SandboxPolicy(homes=hidden_homes(), readable=(str(tmp_path),)), "/tmp")
    assert not {"/", "/usr", "/etc", os.getcwd()} & set(layout.homes)
    assert layout.shows_home is (name != "relative")


def test_without_home_the_password_database_tells_it(monkeypatch):
    import pwd

    monkeypatch.delenv("HOME")
    assert pwd.getpwuid(os.getuid()).pw_dir in hidden_homes()


def test_paths_are_collected_once_per_session(home, monkeypatch):
    calls = []
    monkeypatch.setattr(home_paths, "readable_paths", lambda *args: calls.append(args) or ())
    shell = session_workspace.SessionShell(str(home / "work"), writable=True, sandbox="prefer")
    assert shell._sandbox_policy() is shell._sandbox_policy() and len(calls) == 1


@pytest.fixture
async def checked(home):
    """Return a function that checks a command as the bash tool, does something, and runs it whatever is decided."""
    shell = SessionShell(str(home / "work"), writable=True, sandbox="require")
    workspace = SessionWorkspace(str(home / "work"), shell, read_anywhere=False)
    (home / "work" / "show.py").write_text(f"print(open('{home}/diary').read())")

    async def run(command, between=lambda: None):
        bash, params = BashTool(), BashParams(command=command)
        permission = await bash.permission(params, workspace)
        between()
        context = LocalToolContext(ToolCall("c1", "bash", {}), "workspace", workspace, None)
        context.progress = lambda display: None
        return [need.subject for need in permission.needs], (await bash.run(params, context)).for_model

    yield run
    await workspace.aclose()


@with_bubblewrap
@pytest.mark.parametrize("command", ["cat './a*'; python3 show.py", "cat \\./a\\*; cat $(pwd)/a; python3 show.py"])
async def test_quoted_pattern_shows_no_link_that_its_permission_does_not_name(checked, home, command):
    (home / "work" / "abc").symlink_to(home / "diary")
    needs, output = await checked(command)
    assert f"outside the workspace: {home}/diary" not in needs
    assert "private" not in output and "FileNotFoundError" in output


@with_bubblewrap
@pytest.mark.invariant("W6")
async def test_link_that_changes_after_the_check_shows_nothing(checked, home):
    (home / "work" / "file").write_text("harmless")

    def change():
        (home / "work" / "file").unlink()
        (home / "work" / "file").symlink_to(home / "diary")

    needs, output = await checked("cat ./file; python3 show.py", change)
    assert not any(need.startswith("outside") for need in needs)
    assert "private" not in output and "FileNotFoundError" in output


@with_bubblewrap
async def test_pattern_shows_the_files_it_matches_and_where_its_links_lead(checked, home):
    (home / "notes").mkdir()
    (home / "notes" / "a.md").write_text("first note")
    (home / "notes" / "link").symlink_to("../diary")
    needs, output = await checked("cat ~/notes/*")
    assert {f"outside the workspace: {home}/notes/*", f"outside the workspace: {home}/diary"} <= set(needs)
    assert "first note" in output and "private" in output


def test_links_in_the_temporary_folder_show_nothing(home, tmp_path):
    (tmp_path / "link").symlink_to(home / "diary")
    policy = SandboxPolicy(homes=(str(home),), readable=(str(tmp_path / "link"), str(home / ".gitconfig")))
    assert resolve_layout(policy, str(tmp_path)).readable == (str(home / ".gitconfig"),)
