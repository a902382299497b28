"""Real sandboxes on this kernel: as root and as nobody, with both backends."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from ostler.processes import bubblewrap, git_discovery, landlock
from ostler.processes.sandbox_policy import SandboxPolicy, SandboxUnavailable, resolve_layout
from ostler.processes.sandbox_selftest import probe, run_selftest
from ostler.processes.session_processes import SessionProcesses

pytestmark = pytest.mark.req("SH-8")

_CHECKOUT = Path(__file__).parents[2]


def _outside_temp():
    """Return a folder that the sandbox does not mask."""
    masked = ("/tmp", "/var/tmp", "/run", os.path.realpath(tempfile.gettempdir()))
    folders = (str(_CHECKOUT), os.path.expanduser("~"), "/opt", "/srv")
    for folder in folders:
        if os.access(folder, os.W_OK) and not os.path.realpath(folder).startswith(masked):
            return folder
    pytest.skip("no writable folder outside the temporary ones")


_NOBODY = 65534
# What Landlock does not block (see its module); everything else must be blocked by both backends.
_OPEN_WITH_LANDLOCK = {
    "chmod",
    "protected hooks",
    "protected config",
    "protected by way of its folder",
}
_BACKENDS = [
    pytest.param(
        "bubblewrap",
        marks=pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason()),
    ),
    pytest.param(
        "landlock", marks=pytest.mark.skipif(bool(landlock.unavailable_reason()), reason=landlock.unavailable_reason())
    ),
]
with_both_backends = pytest.mark.parametrize("backend", _BACKENDS)


@pytest.fixture
def base():
    """A folder outside the temporary ones, because bubblewrap masks those."""
    folder = tempfile.mkdtemp(prefix=".proof-", dir=_outside_temp())
    os.chmod(folder, 0o755)
    yield Path(folder)
    shutil.rmtree(folder)


@pytest.fixture
async def sandboxed(base):
    """Return a function that creates the processes of a sandboxed session; all are closed at the end."""
    sessions: list[SessionProcesses] = []
    workspace = base / "workspace"
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)

    def make(backend: str, **policy) -> SessionProcesses:
        policy = {"writable": (str(workspace),), **policy}
        sandbox_policy = SandboxPolicy(mode="require", **policy)
        sessions.append(SessionProcesses(str(workspace), policy=sandbox_policy, backends=(backend,), grace=0.3))
        return sessions[-1]

    yield make
    for processes in sessions:
        await processes.aclose()


def _breaches(results: list[list[object]]) -> set[str]:
    return {name for name, blocked, _ in results if not blocked}


def _check_results(results: list[list[object]], backend: str) -> None:
    assert results[0] == ["sandbox", True, backend]
    assert len(results) == 26
    expected = set() if backend == "bubblewrap" else _OPEN_WITH_LANDLOCK
    if landlock.abi() < 6 and backend == "landlock":
        expected = expected | {"kill"}
    assert _breaches(results) == expected


@with_both_backends
async def test_attacks_are_blocked(backend, base):
    results = await run_selftest((backend,), base=str(base))
    _check_results([[result.name, result.blocked, result.detail] for result in results], backend)
    assert os.listdir(base) == []


_AS_NOBODY = textwrap.dedent("""
    import asyncio, json, os, sys
    os.chdir("/")
    from ostler.processes.sandbox_selftest import run_selftest
    results = asyncio.run(run_selftest((sys.argv[1],), base=sys.argv[2]))
    print(json.dumps([[result.name, result.blocked, result.detail] for result in results]))
""")


def _as_nobody(*argv: str) -> subprocess.CompletedProcess[str]:
    import msgspec

    packages = Path(msgspec.__file__).parents[1]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{_CHECKOUT / 'src'}:{packages}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        argv,
        user=_NOBODY,
        group=_NOBODY,
        extra_groups=[],
        env=env,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def _interpreter_of_nobody() -> str:
    """Return a Python that the user nobody can start and that can import Ostler."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            if _as_nobody(python, "-c", "import ostler.processes.session_processes").returncode == 0:
                return python
        except OSError:
            continue
    return ""


@with_both_backends
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_attacks_are_blocked_for_ordinary_user(backend, base):
    python = _interpreter_of_nobody()
    if not python:
        pytest.skip("no Python that the user nobody can start")
    os.chown(base, _NOBODY, _NOBODY)
    completed = _as_nobody(python, "-c", _AS_NOBODY, backend, str(base))
    assert completed.returncode == 0, completed.stderr
    _check_results(json.loads(completed.stdout), backend)


@pytest.mark.req("SH-8")
@pytest.mark.parametrize("writable", [True, False])
def test_bwrap_in_workspace_is_ignored(tmp_path, monkeypatch, writable):
    work, system = tmp_path / "work", tmp_path / "system"
    for folder in (work / ".venv" / "bin", system):
        folder.mkdir(parents=True)
        (folder / "bwrap").touch(0o755)
    layout = resolve_layout(
        SandboxPolicy(writable=(str(work),) if writable else ()), str(tmp_path / "temp"), (str(work),)
    )
    monkeypatch.setenv("PATH", f"{work}/.venv/bin:{system}")
    assert bubblewrap.wrapper_command(layout)[0] == str(system / "bwrap")
    monkeypatch.setenv("PATH", f"{work}/.venv/bin")
    assert bubblewrap.unavailable_reason(layout)


def test_missing_placeholder_does_not_prevent_sandbox(tmp_path):
    """For example in a workspace of another user."""
    layout = resolve_layout(SandboxPolicy(writable=(str(tmp_path),)), str(tmp_path))
    argv = bubblewrap.wrapper_command(layout)
    assert argv[argv.index(str(tmp_path / ".mcp.json")) - 1] == "--ro-bind-try"


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_socket_removed_during_start_does_not_prevent_sandbox(sandboxed, base, monkeypatch):
    socket_lists = iter([[str(base / "gone" / "socket")], []])
    monkeypatch.setattr(bubblewrap, "_socket_paths", lambda: next(socket_lists, []))
    assert await sandboxed("bubblewrap").prepare() == "bubblewrap"


@pytest.mark.req("SH-8")
@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
@pytest.mark.parametrize("kind", ["STREAM", "DGRAM"])
async def test_socket_bound_after_start_cannot_be_reached(tmp_path, kind):
    """For example that of Docker, started or restarted while a session is open."""
    address, policy = str(tmp_path / "daemon.sock"), SandboxPolicy(mode="require")
    command = f"python3 -c 'import socket; socket.socket(1, socket.SOCK_{kind}).connect(\"{address}\")'"
    processes = SessionProcesses(str(tmp_path), policy=policy, backends=("bubblewrap",))
    job = await processes.start_background("read line; echo $line", interactive=True)
    for _ in range(2):
        with socket.socket(socket.AF_UNIX, getattr(socket, f"SOCK_{kind}")) as daemon:
            daemon.bind(address)
            if kind == "STREAM":
                daemon.listen()
            result = await processes.run(command, timeout=60)
            assert "refused" in result.stderr, result
        os.unlink(address)
    processes.write_background(job, b"still running\n")
    assert "still running" in (await processes.read_background(job, 60)).text
    await processes.aclose()


def test_probe_does_not_run_bwrap_of_current_folder(tmp_path, monkeypatch):
    planted = tmp_path / "bin" / "bwrap"
    planted.parent.mkdir()
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    probe()
    assert not (tmp_path / "was-run").exists()


def test_probe_reports_capabilities():
    found = {capability.name: capability for capability in probe()}
    assert found["bubblewrap"].available is not bool(bubblewrap.unavailable_reason())
    assert found["landlock"].available is not bool(landlock.unavailable_reason())
    assert all(capability.detail for capability in found.values())


@with_both_backends
async def test_workspace_is_writable_and_ordinary_work_succeeds(backend, sandboxed, base):
    processes = sandboxed(backend)
    assert await processes.prepare() == backend
    work = """
        set -e
        echo text > file; mkdir -p a/b; mv file a/b/moved; ln -s a link; ln a/b/moved hard; chmod +x hard
        git add -A; git -c user.name=n -c user.email=e commit -q -m m
        git checkout -q -b other; git log --oneline | wc -l
        python3 -c 'import multiprocessing; multiprocessing.Lock()'
        python3 -c 'import tempfile; tempfile.TemporaryFile().write(b"x")'
        echo x | tee /dev/null > /dev/null; cat /proc/self/status > /dev/null
    """
    result = await processes.run(work, timeout=30)
    assert (result.stderr, result.stdout, result.exit_code) == ("", "1\n", 0)
    assert (base / "workspace" / "a" / "b" / "moved").read_text() == "text\n"


@with_both_backends
async def test_temporary_files_are_visible_to_later_commands_and_tools(backend, sandboxed):
    processes = sandboxed(backend)
    temp_file = (await processes.run("f=$(mktemp); echo kept > $f; echo $f", timeout=60)).stdout.strip()
    assert (await processes.run(f"cat {temp_file}", timeout=60)).stdout == "kept\n"
    assert Path(temp_file).read_text() == "kept\n"
    await processes.aclose()
    assert not Path(temp_file).parents[1].exists()


@with_both_backends
async def test_read_only_workspace_cannot_be_changed(backend, sandboxed, base):
    file = base / "workspace" / "file"
    file.write_text("precious")
    file.chmod(0o640)
    before = file.stat()
    processes = sandboxed(backend, writable=())
    for command in ("echo x > file", "rm file", "touch new", "mv file f2", "chmod 777 file", "echo x > .git/config"):
        assert (await processes.run(command, timeout=60)).exit_code != 0, command
    assert (await processes.run("cat file; echo x > $TMPDIR/x", timeout=60)).exit_code == 0
    after = file.stat()
    assert (after.st_mtime_ns, after.st_mode, after.st_ino) == (before.st_mtime_ns, before.st_mode, before.st_ino)
    assert sorted(os.listdir(base / "workspace")) == [".git", "file"]


@with_both_backends
async def test_read_only_workspace_in_temporary_folder_can_be_read(backend, tmp_path):
    (tmp_path / "file").write_text("text")
    processes = SessionProcesses(str(tmp_path), policy=SandboxPolicy(mode="require"), backends=(backend,))
    result = await processes.run("cat file; echo x > file", timeout=60)
    await processes.aclose()
    assert result.stdout == "text" and result.exit_code != 0


@with_both_backends
async def test_write_access_everywhere_unmasks_nothing(backend, sandboxed, base, monkeypatch):
    monkeypatch.setattr(git_discovery, "MAX_FOLDERS", 100)
    processes = sandboxed(backend, writable=("/",))
    command = (
        f"echo x > '{base}/new'; cat /proc/1/comm; ls /run /dev/vda /dev/sda; v=/proc/sys/vm/swappiness; cat $v > $v"
    )
    result = await processes.run(command, timeout=60)
    assert (base / "new").exists()
    if backend == "bubblewrap":
        assert result.exit_code != 0 and result.stdout == "ostler-keeper\n/run:\n"


@with_both_backends
async def test_network_is_available_if_granted(backend, sandboxed):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo hello >&3"
        processes = sandboxed(backend)
        assert (await processes.run(command, timeout=60)).exit_code != 0
        granted = SandboxPolicy(mode="require", writable=(), network=True)
        assert (await processes.run(command, timeout=60, policy=granted)).exit_code == 0
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(16) == b"hello\n"


@with_both_backends
async def test_network_access_does_not_allow_file_access(backend, base):
    results = await run_selftest((backend,), base=str(base), network=True)
    blocked = {"write", "create", "truncate", "delete", "ptrace", "mount"}
    blocked |= {"kill", "abstract socket"} if landlock.abi() >= 6 else set()
    assert blocked <= {result.name for result in results if result.blocked}


@with_both_backends
async def test_hidden_paths_cannot_be_read(backend, sandboxed, base):
    secrets = base / "secrets"
    secrets.mkdir()
    (secrets / "key").write_text("sk-1")
    (base / "token").write_text("sk-2")
    (base / "open").write_text("readable")
    processes = sandboxed(backend, hidden=(str(secrets), str(base / "token")))
    result = await processes.run(
        f"cat '{secrets}/key' '{base}/token' '{base}/open' ./.git/HEAD; ls / > /dev/null", timeout=60
    )
    assert "sk-" not in result.stdout and "readable" in result.stdout and "refs/heads" in result.stdout


@with_both_backends
async def test_protected_paths_are_locked_or_quarantined(backend, sandboxed, base):
    processes = sandboxed(backend)
    hook = "echo '#!' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
    result = await processes.run(f"{hook}; mkdir -p .vscode; echo x > .vscode/tasks.json", timeout=60)
    hook = base / "workspace" / ".git" / "hooks" / "pre-commit"
    if backend == "bubblewrap":
        assert not hook.exists() and "Read-only" in result.stderr
        await processes.aclose()
        assert os.listdir(base / "workspace") == [".git"]  # no placeholder is left in the workspace
    else:
        assert f"{base}/workspace/.vscode was quarantined" in result.stderr
        assert not (base / "workspace" / ".vscode").exists()
        assert not hook.exists() and f"{hook} was quarantined" in result.stderr


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_unlockable_path_is_quarantined_when_created(sandboxed, base):
    processes = sandboxed("bubblewrap", read_only=(f"{base}/workspace/a/b",))
    result = await processes.run("mkdir a; echo x > a/b", timeout=60)
    assert f"{base}/workspace/a/b was quarantined" in result.stderr
    assert os.listdir(base / "workspace" / "a") == ["b.set-aside-by-ostler"]
    started = await processes.start_background("echo x > a/b")
    output = await processes.read_background(started, wait=60)
    assert "was quarantined" in output.text


@pytest.fixture
def home_workspace(base, monkeypatch, sandboxed):
    """A workspace that is a home directory."""
    home = base / "workspace"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("ostler.processes.startup_files.home_directories", lambda: (str(home),))
    (home / ".bashrc").write_text("mine\n")
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "zshrc").write_text("mine\n")
    (home / ".zshrc").symlink_to("dotfiles/zshrc")
    (home / ".ssh").mkdir()
    (home / ".ostler").mkdir()
    (home / ".ostler" / "config.json").write_text("{}")
    (home / "project").mkdir()
    return home


def _tree(folder):
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if ".git/" not in f"{path}/"}
    return {
        name: os.readlink(path) if path.is_symlink() else path.is_file() and path.read_text()
        for name, path in found.items()
    }


_STARTUP_FILES = (
    *(".bashrc", ".profile", ".bash_profile", ".zshenv", ".xprofile", ".xsession", ".gitconfig", ".pam_environment"),
    *(".config/autostart/x.desktop", ".config/systemd/user/x.service", ".ssh/authorized_keys", ".ostler/config.json"),
    *(".local/bin/ls", ".vscode/tasks.json", ".mcp.json", "dotfiles/zshrc"),
)


@with_both_backends
async def test_startup_files_of_home_are_unchanged(backend, sandboxed, home_workspace):
    before = _tree(home_workspace)
    processes = sandboxed(backend)
    lines = [f"mkdir -p $(dirname {name}); echo evil >> {name}" for name in _STARTUP_FILES]
    lines += ["rm -f .zshrc; echo evil > .zshrc", "mv .ssh away; mv .ostler away", "echo mine > project/file"]
    await processes.run("\n".join(lines), timeout=60)
    await processes.aclose()
    after = {name: content for name, content in _tree(home_workspace).items() if "set-aside" not in name}
    assert after == {**before, "project/file": "mine\n"}


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_login_works_while_home_is_sandboxed(sandboxed, home_workspace):
    (home_workspace / ".profile").write_text("echo from the profile\n")
    await sandboxed("bubblewrap").prepare()
    completed = subprocess.run(
        ["bash", "-l", "-c", "true"], env={"HOME": str(home_workspace)}, capture_output=True, text=True, check=True
    )
    assert (completed.stdout, completed.stderr) == ("from the profile\n", "")


@pytest.mark.skipif(bool(landlock.unavailable_reason()), reason=landlock.unavailable_reason())
async def test_keys_in_home_cannot_be_read_with_landlock(sandboxed, home_workspace):
    (home_workspace / ".ssh" / "id").write_text("secret")
    (home_workspace / ".pypirc").write_text("secret")
    processes = sandboxed("landlock", hidden=(str(home_workspace / ".ssh"), str(home_workspace / ".pypirc")))
    result = await processes.run(
        "cat .ssh/id .pypirc; echo new > project/x; cat project/x .bashrc; echo y > y", timeout=60
    )
    assert result.stdout == "new\nmine\n"


@with_both_backends
async def test_files_written_by_ostler_in_home_are_not_reported(backend, base, home_workspace):
    own = home_workspace / ".ostler"
    shutil.rmtree(own)
    policy = SandboxPolicy(mode="require", writable=(str(home_workspace),), read_only=(str(own),))
    marker_dir = str(own / "running")
    processes = SessionProcesses(
        str(home_workspace), policy=policy, backends=(backend,), marker_dir=marker_dir, grace=0.3
    )
    result = await processes.run(f"echo hi; echo evil > {own}/config.json", timeout=60)
    await processes.aclose()
    assert result.stdout == "hi\n" and "quarantined" not in result.stderr and "changed" not in result.stderr
    assert os.listdir(own) == ["running"] and own.stat().st_mode & 0o777 == 0o700


@with_both_backends
async def test_programs_and_settings_of_login_are_blocked_or_quarantined(backend, sandboxed, home_workspace):
    lines = ["mkdir -p bin .kube .docker/cli-plugins", "echo evil > bin/ls; echo evil > .kube/config"]
    await sandboxed(backend).run("\n".join([*lines, "echo evil > .bash_completion"]), timeout=60)
    assert not any((home_workspace / name).exists() for name in ("bin", ".kube/config", ".docker/cli-plugins"))
    assert not (home_workspace / ".bash_completion").exists()


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_file_replaced_by_user_stays_locked(sandboxed, base):
    """git replaces the config file when it writes settings, and the lock is on the old file."""
    processes, config = sandboxed("bubblewrap"), base / "workspace" / ".git" / "config"
    await processes.prepare()
    subprocess.run(["git", "-C", str(base / "workspace"), "config", "core.editor", "mine"], check=True)
    before = config.read_text()
    result = await processes.run("echo '[core] fsmonitor = evil' >> .git/config", timeout=60)
    assert "Read-only" in result.stderr and config.read_text() == before


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_lock_lost_during_command_is_compensated_afterwards(sandboxed, base):
    processes, config = sandboxed("bubblewrap"), base / "workspace" / ".git" / "config"
    subprocess.run(["git", "-C", str(base / "workspace"), "config", "core.editor", "mine"], check=True)
    work = base / "workspace"
    os.mkfifo(work / "go")
    with open(work / "go", "r+b", buffering=0) as fifo:
        attack = "printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/config"
        running = asyncio.create_task(processes.run(f"touch started; read x < go; {attack}", timeout=600))
        while not (running.done() or (work / "started").exists()):
            await asyncio.sleep(0.01)
        subprocess.run(["git", "-C", str(work), "config", "user.name", "me"], check=True)
        fifo.write(b"on\n")
        result = await running
    assert "it sets core.fsmonitor" in result.stderr
    assert "evil" not in config.read_text() and "mine" in config.read_text() and "me" in config.read_text()


@with_both_backends
async def test_command_has_no_new_privileges(backend, sandboxed):
    status = (await sandboxed(backend).run("cat /proc/self/status", timeout=60)).stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"
    dangerous = (1 << 21) | (1 << 16) | (1 << 17) | (1 << 19) | (1 << 2) | (1 << 27) | (1 << 12) | (1 << 13)
    assert int(fields["CapEff"], 16) & dangerous == 0


@with_both_backends
@pytest.mark.parametrize(
    "command",
    [
        "unshare -U true",
        "unshare -r mount -t tmpfs none /mnt",
        "python3 -c 'import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)'",
        "python3 -c 'import os; os.mknod(\"device\", 0o60600, os.makedev(8, 0))'",
        "for d in vda sda nvme0n1 mem; do dd if=/dev/null of=/dev/$d conv=nocreat,notrunc && exit 0; done; exit 1",
        "dd if=/dev/null of=/proc/sysrq-trigger conv=nocreat,notrunc",
    ],
)
async def test_escapes_are_blocked(backend, sandboxed, command):
    result = await sandboxed(backend).run(command, timeout=60)
    assert result.exit_code != 0 and not result.timed_out


@with_both_backends
async def test_command_can_signal_command_of_same_session(backend, sandboxed):
    processes = sandboxed(backend)
    job = await processes.start_background("echo $$ > pid; exec sleep 1000")
    assert (await processes.run("until [ -s pid ]; do :; done; kill $(cat pid)", timeout=60)).exit_code == 0
    assert (await processes.read_background(job, wait=10)).job.exit_code == 128 + signal.SIGTERM


@with_both_backends
async def test_command_that_kills_its_supervisor_leaves_no_process(backend, sandboxed, marked):
    """It may kill its supervisor, and under Landlock the spawner; the guard process and the namespace remain."""
    processes = sandboxed(backend)
    command = "(setsid sleep 1000 &); kill -9 $(cut -d' ' -f4 /proc/$PPID/stat) $PPID; sleep 1000"
    result = await processes.run(command, timeout=60, env=marked.env)
    assert result.exit_code is None
    await processes.aclose()
    assert marked.all_gone()


@with_both_backends
async def test_dead_spawner_is_replaced_in_sandbox(backend, sandboxed, eventually):
    processes = sandboxed(backend)
    await processes.run("true", timeout=60)
    (sandbox,) = processes._sandboxes.values()
    os.kill(sandbox.spawner._process.pid, signal.SIGKILL)
    assert eventually(lambda: not sandbox.is_alive)
    result = await processes.run("echo back; echo x > /etc/ostler-test", timeout=60)
    assert result.stdout == "back\n" and result.exit_code != 0
    assert await processes.prepare() == backend


async def test_missing_required_sandbox_raises(tmp_path, monkeypatch):
    monkeypatch.setattr("ostler.processes.bubblewrap.unavailable_reason", lambda _: "not installed")
    monkeypatch.setattr("ostler.processes.landlock.unavailable_reason", lambda: "disabled")
    processes = SessionProcesses(str(tmp_path), policy=SandboxPolicy(mode="require", writable=(str(tmp_path),)))
    with pytest.raises(SandboxUnavailable, match="bubblewrap: not installed; landlock: disabled"):
        await processes.run("touch ran", timeout=60)
    await processes.aclose()
    assert os.listdir(tmp_path) == []


async def test_missing_preferred_sandbox_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("ostler.processes.bubblewrap.unavailable_reason", lambda _: "not installed")
    monkeypatch.setattr("ostler.processes.landlock.unavailable_reason", lambda: "disabled")
    processes = SessionProcesses(str(tmp_path))
    assert (await processes.run("echo ran", timeout=60)).stdout == "ran\n"
    assert await processes.prepare() == "none: bubblewrap: not installed; landlock: disabled"
    await processes.aclose()


async def test_sandbox_that_does_not_start_gives_reason(tmp_path, monkeypatch):
    work, system = tmp_path / "work", tmp_path / "system"
    work.mkdir()
    system.mkdir()
    fake = system / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: no permission to make namespaces' >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{system}:{os.environ['PATH']}")
    processes = SessionProcesses(str(work), backends=("bubblewrap",))
    assert await processes.prepare() == "none: bubblewrap: bwrap: no permission to make namespaces"
    await processes.aclose()
    assert os.listdir(work) == []


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_sandboxed_session_never_runs_unsandboxed_later(tmp_path, monkeypatch, eventually):
    processes = SessionProcesses(str(tmp_path))
    assert not (await processes.prepare()).startswith("none")
    (sandbox,) = processes._sandboxes.values()
    os.kill(sandbox.spawner._process.pid, signal.SIGKILL)
    assert eventually(lambda: not sandbox.is_alive)
    monkeypatch.setattr("ostler.processes.bubblewrap.unavailable_reason", lambda _: "gone")
    monkeypatch.setattr("ostler.processes.landlock.unavailable_reason", lambda: "gone")
    with pytest.raises(SandboxUnavailable):
        await processes.run("touch ran", timeout=60)
    await processes.aclose()
    assert os.listdir(tmp_path) == []


@with_both_backends
async def test_long_output_can_be_read_by_later_command(backend, sandboxed):
    processes = sandboxed(backend)
    result = await processes.run("head -c 1M /dev/zero | tr '\\0' x", timeout=60)
    assert (
        await processes.run(f"wc -c < {result.output_file}; rm -f {result.output_file}", timeout=60)
    ).stdout == "1048576\n"
    assert os.path.exists(result.output_file)
