"""The sandboxes of this kernel, really tried: as root and as nobody, by both backends."""

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
    """A folder that the sandbox does not mask, wherever the checkout lies."""
    masked = ("/tmp", "/var/tmp", "/run", os.path.realpath(tempfile.gettempdir()))
    places = (str(_CHECKOUT), os.path.expanduser("~"), "/opt", "/srv")
    for place in places:
        if os.access(place, os.W_OK) and not os.path.realpath(place).startswith(masked):
            return place
    pytest.skip("there is no folder outside the temporary ones that can be written")


_NOBODY = 65534
# What Landlock leaves open, said in its module; all else must hold with either backend.
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
both = pytest.mark.parametrize("backend", _BACKENDS)


@pytest.fixture
def base():
    """A folder outside the temporary ones, which bubblewrap would hide and so prove nothing about."""
    folder = tempfile.mkdtemp(prefix=".proof-", dir=_outside_temp())
    os.chmod(folder, 0o755)
    yield Path(folder)
    shutil.rmtree(folder)


@pytest.fixture
async def sandboxed(base):
    """Make the processes of a sandboxed session, closed at the end."""
    made: list[SessionProcesses] = []
    workspace = base / "workspace"
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)

    def make(backend: str, **policy) -> SessionProcesses:
        policy = {"writable": (str(workspace),), **policy}
        confinement = SandboxPolicy(mode="require", **policy)
        made.append(SessionProcesses(str(workspace), policy=confinement, backends=(backend,), grace=0.3))
        return made[-1]

    yield make
    for processes in made:
        await processes.aclose()


def _breaches(proofs: list[list[object]]) -> set[str]:
    return {name for name, held, _ in proofs if not held}


def _expect(proofs: list[list[object]], backend: str) -> None:
    assert proofs[0] == ["sandbox", True, backend]
    assert len(proofs) == 24
    expected = set() if backend == "bubblewrap" else _OPEN_WITH_LANDLOCK
    if landlock.abi() < 6 and backend == "landlock":
        expected = expected | {"kill"}
    assert _breaches(proofs) == expected


@both
async def test_what_is_forbidden_does_not_work(backend, base):
    proofs = await run_selftest((backend,), base=str(base))
    _expect([[proof.name, proof.blocked, proof.detail] for proof in proofs], backend)
    assert os.listdir(base) == []


_AS_NOBODY = textwrap.dedent("""
    import asyncio, json, os, sys
    os.chdir("/")
    from ostler.processes.sandbox_selftest import run_selftest
    proofs = asyncio.run(run_selftest((sys.argv[1],), base=sys.argv[2]))
    print(json.dumps([[proof.name, proof.blocked, proof.detail] for proof in proofs]))
""")


def _as_nobody(*words: str) -> subprocess.CompletedProcess[str]:
    import msgspec

    packages = Path(msgspec.__file__).parents[1]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{_CHECKOUT / 'src'}:{packages}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        words,
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
    """A Python that a user without any rights can start and that has our library."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            if _as_nobody(python, "-c", "import ostler.processes.session_processes").returncode == 0:
                return python
        except OSError:
            continue
    return ""


@both
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody; the other tests ran unprivileged already")
def test_what_is_forbidden_does_not_work_for_an_ordinary_user_either(backend, base):
    python = _interpreter_of_nobody()
    if not python:
        pytest.skip("no Python here that the user nobody may start")
    os.chown(base, _NOBODY, _NOBODY)
    answer = _as_nobody(python, "-c", _AS_NOBODY, backend, str(base))
    assert answer.returncode == 0, answer.stderr
    _expect(json.loads(answer.stdout), backend)


@pytest.mark.req("SH-8")
@pytest.mark.parametrize("writable", [True, False])
def test_a_sandbox_that_the_workspace_brings_along_is_not_taken(tmp_path, monkeypatch, writable):
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


def test_a_place_that_could_not_be_kept_does_not_keep_the_sandbox_from_starting(tmp_path):
    """As in a workspace that belongs to somebody else."""
    layout = resolve_layout(SandboxPolicy(writable=(str(tmp_path),)), str(tmp_path))
    (tmp_path / ".vscode").mkdir()
    words = bubblewrap.wrapper_command(layout)
    assert str(tmp_path / ".vscode") in words and str(tmp_path / ".mcp.json") not in words


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_a_socket_that_goes_while_the_sandbox_starts_is_no_reason_to_have_none(sandboxed, base, monkeypatch):
    answers = iter([[str(base / "gone" / "socket")], []])
    monkeypatch.setattr(bubblewrap, "_socket_paths", lambda: next(answers, []))
    assert await sandboxed("bubblewrap").ready() == "bubblewrap"


def test_the_probe_starts_no_bwrap_of_the_folder_it_is_asked_in(tmp_path, monkeypatch):
    planted = tmp_path / "bin" / "bwrap"
    planted.parent.mkdir()
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    probe()
    assert not (tmp_path / "was-run").exists()


def test_the_probe_tells_what_there_is():
    found = {capability.name: capability for capability in probe()}
    assert found["bubblewrap"].available is not bool(bubblewrap.unavailable_reason())
    assert found["landlock"].available is not bool(landlock.unavailable_reason())
    assert all(capability.detail for capability in found.values())


@both
async def test_the_workspace_is_writable_and_ordinary_work_goes_on(backend, sandboxed, base):
    processes = sandboxed(backend)
    assert (
        await processes.prepare() == processes.sandbox == backend
        and f"run in {backend}, without a network" in processes.description
    )
    work = """
        set -e
        echo text > file; mkdir -p a/b; mv file a/b/moved; ln -s a link; ln a/b/moved hard; chmod +x hard
        git add -A; git -c user.name=n -c user.email=e commit -q -m m
        git checkout -q -b other; git log --oneline | wc -l
        python3 -c 'import multiprocessing; multiprocessing.Lock()'
        python3 -c 'import tempfile; tempfile.TemporaryFile().write(b"x")'
        echo x | tee /dev/null > /dev/null; cat /proc/self/status > /dev/null
    """
    ran = await processes.run(work, timeout=30)
    assert (ran.stderr, ran.stdout, ran.exit_code) == ("", "1\n", 0)
    assert (base / "workspace" / "a" / "b" / "moved").read_text() == "text\n"


@both
async def test_temporary_files_serve_later_commands_and_our_own_tools(backend, sandboxed):
    processes = sandboxed(backend)
    made = (await processes.run("f=$(mktemp); echo kept > $f; echo $f", timeout=60)).stdout.strip()
    assert (await processes.run(f"cat {made}", timeout=60)).stdout == "kept\n"
    assert Path(made).read_text() == "kept\n"
    await processes.aclose()
    assert not Path(made).parents[1].exists()


@both
async def test_a_read_only_workspace_is_one(backend, sandboxed, base):
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


@both
async def test_a_read_only_workspace_among_the_temporary_folders_can_be_read(backend, tmp_path):
    (tmp_path / "file").write_text("text")
    processes = SessionProcesses(str(tmp_path), policy=SandboxPolicy(mode="require"), backends=(backend,))
    ran = await processes.run("cat file; echo x > file", timeout=60)
    await processes.aclose()
    assert ran.stdout == "text" and ran.exit_code != 0


@both
async def test_a_grant_to_write_everywhere_uncovers_nothing(backend, sandboxed, base, monkeypatch):
    monkeypatch.setattr(git_discovery, "MAX_FOLDERS", 100)
    processes = sandboxed(backend, writable=("/",))
    command = (
        f"echo x > {base}/new; cat /proc/1/comm; ls /run /dev/vda /dev/sda; v=/proc/sys/vm/swappiness; cat $v > $v"
    )
    ran = await processes.run(command, timeout=60)
    assert (base / "new").exists()
    if backend == "bubblewrap":
        assert ran.exit_code != 0 and ran.stdout == "ostler-keeper\n/run:\n"


@both
async def test_the_network_is_there_when_granted(backend, sandboxed):
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


@both
async def test_a_grant_for_the_network_opens_no_files(backend, base):
    proofs = await run_selftest((backend,), base=str(base), network=True)
    held = {"write", "create", "truncate", "delete", "ptrace", "mount"}
    held |= {"kill", "abstract socket"} if landlock.abi() >= 6 else set()
    assert held <= {proof.name for proof in proofs if proof.blocked}


@both
async def test_what_is_hidden_cannot_be_read(backend, sandboxed, base):
    secrets = base / "secrets"
    secrets.mkdir()
    (secrets / "key").write_text("sk-1")
    (base / "token").write_text("sk-2")
    (base / "open").write_text("readable")
    processes = sandboxed(backend, hidden=(str(secrets), str(base / "token")))
    ran = await processes.run(f"cat {secrets}/key {base}/token {base}/open ./.git/HEAD; ls / > /dev/null", timeout=60)
    assert "sk-" not in ran.stdout and "readable" in ran.stdout and "refs/heads" in ran.stdout


@both
async def test_protected_paths_are_locked_or_at_least_told(backend, sandboxed, base):
    processes = sandboxed(backend)
    hook = "echo '#!' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
    ran = await processes.run(f"{hook}; mkdir -p .vscode; echo x > .vscode/tasks.json", timeout=60)
    hook = base / "workspace" / ".git" / "hooks" / "pre-commit"
    if backend == "bubblewrap":
        assert not hook.exists() and "Read-only" in ran.stderr
        await processes.aclose()
        assert os.listdir(base / "workspace") == [".git"]  # nothing of ours is left in the workspace
    else:
        assert f"{base}/workspace/.vscode was set aside" in ran.stderr
        assert not (base / "workspace" / ".vscode").exists()
        assert not hook.exists() and f"{hook} was set aside" in ran.stderr


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_what_no_sandbox_could_lock_is_set_aside_when_it_was_made(sandboxed, base):
    processes = sandboxed("bubblewrap", read_only=(f"{base}/workspace/a/b",))
    ran = await processes.run("mkdir a; echo x > a/b", timeout=60)
    assert f"{base}/workspace/a/b was set aside" in ran.stderr
    assert os.listdir(base / "workspace" / "a") == ["b.set-aside-by-ostler"]
    started = await processes.start_background("echo x > a/b")
    told = await processes.read_background(started, wait=60)
    assert "was set aside" in told.text


@pytest.fixture
def at_home(base, monkeypatch, sandboxed):
    """A workspace that is somebody's home."""
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


_START_UP = (
    *(".bashrc", ".profile", ".bash_profile", ".zshenv", ".xprofile", ".xsession", ".gitconfig", ".pam_environment"),
    *(".config/autostart/x.desktop", ".config/systemd/user/x.service", ".ssh/authorized_keys", ".ostler/config.json"),
    *(".local/bin/ls", ".vscode/tasks.json", ".mcp.json", "dotfiles/zshrc"),
)


@both
async def test_start_up_files_of_a_home_are_as_they_were_there_or_not(backend, sandboxed, at_home):
    before = _tree(at_home)
    processes = sandboxed(backend)
    lines = [f"mkdir -p $(dirname {name}); echo evil >> {name}" for name in _START_UP]
    lines += ["rm -f .zshrc; echo evil > .zshrc", "mv .ssh away; mv .ostler away", "echo mine > project/file"]
    await processes.run("\n".join(lines), timeout=60)
    await processes.aclose()
    after = {name: held for name, held in _tree(at_home).items() if "set-aside" not in name}
    assert after == {**before, "project/file": "mine\n"}


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_a_login_goes_on_as_usual_while_a_sandbox_holds_a_home(sandboxed, at_home):
    (at_home / ".profile").write_text("echo from the profile\n")
    await sandboxed("bubblewrap").ready()
    said = subprocess.run(
        ["bash", "-l", "-c", "true"], env={"HOME": str(at_home)}, capture_output=True, text=True, check=True
    )
    assert (said.stdout, said.stderr) == ("from the profile\n", "")


@pytest.mark.skipif(bool(landlock.unavailable_reason()), reason=landlock.unavailable_reason())
async def test_keys_in_a_home_cannot_be_read_under_landlock_either(sandboxed, at_home):
    (at_home / ".ssh" / "id").write_text("secret")
    (at_home / ".pypirc").write_text("secret")
    processes = sandboxed("landlock", hidden=(str(at_home / ".ssh"), str(at_home / ".pypirc")))
    ran = await processes.run(
        "cat .ssh/id .pypirc; echo new > project/x; cat project/x .bashrc; echo y > y", timeout=60
    )
    assert ran.stdout == "new\nmine\n"
    assert "nothing new" in processes.description


@both
async def test_what_ostler_itself_writes_in_a_home_is_not_a_command_s_doing(backend, base, at_home):
    own = at_home / ".ostler"
    shutil.rmtree(own)
    confinement = SandboxPolicy(mode="require", writable=(str(at_home),), read_only=(str(own),))
    marks = str(own / "running")
    processes = SessionProcesses(str(at_home), policy=confinement, backends=(backend,), marker_dir=marks, grace=0.3)
    ran = await processes.run(f"echo hi; echo evil > {own}/config.json", timeout=60)
    await processes.aclose()
    assert ran.stdout == "hi\n" and "set aside" not in ran.stderr and "changed" not in ran.stderr
    assert os.listdir(own) == ["running"] and own.stat().st_mode & 0o777 == 0o700


@both
async def test_programs_and_settings_that_a_login_would_find_first_are_held_or_set_aside(backend, sandboxed, at_home):
    lines = ["mkdir -p bin .kube .docker/cli-plugins", "echo evil > bin/ls; echo evil > .kube/config"]
    await sandboxed(backend).run("\n".join([*lines, "echo evil > .bash_completion"]), timeout=60)
    assert not any((at_home / name).exists() for name in ("bin", ".kube/config", ".docker/cli-plugins"))
    assert not (at_home / ".bash_completion").exists()


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_what_is_locked_stays_so_when_a_person_has_replaced_it(sandboxed, base):
    """git writes settings by putting a new file in the old one's place, and a lock lies on the old one."""
    processes, config = sandboxed("bubblewrap"), base / "workspace" / ".git" / "config"
    await processes.ready()
    subprocess.run(["git", "-C", str(base / "workspace"), "config", "core.editor", "mine"], check=True)
    before = config.read_text()
    ran = await processes.run("echo '[core] fsmonitor = evil' >> .git/config", timeout=60)
    assert "Read-only" in ran.stderr and config.read_text() == before


@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
async def test_a_lock_lost_while_a_command_runs_is_made_up_for_when_it_ends(sandboxed, base):
    processes, config = sandboxed("bubblewrap"), base / "workspace" / ".git" / "config"
    subprocess.run(["git", "-C", str(base / "workspace"), "config", "core.editor", "mine"], check=True)
    work = base / "workspace"
    os.mkfifo(work / "go")
    with open(work / "go", "r+b", buffering=0) as go:
        poison = "printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/config"
        running = asyncio.create_task(processes.run(f"touch started; read x < go; {poison}", timeout=600))
        while not (running.done() or (work / "started").exists()):
            await asyncio.sleep(0.01)
        subprocess.run(["git", "-C", str(work), "config", "user.name", "me"], check=True)
        go.write(b"on\n")
        ran = await running
    assert "it sets core.fsmonitor" in ran.stderr
    assert "evil" not in config.read_text() and "mine" in config.read_text() and "me" in config.read_text()


@both
async def test_no_new_rights_and_no_way_up(backend, sandboxed):
    status = (await sandboxed(backend).run("cat /proc/self/status", timeout=60)).stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"
    dangerous = (1 << 21) | (1 << 16) | (1 << 17) | (1 << 19) | (1 << 2) | (1 << 27) | (1 << 12) | (1 << 13)
    assert int(fields["CapEff"], 16) & dangerous == 0


@both
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
async def test_ways_out_are_shut(backend, sandboxed, command):
    ran = await sandboxed(backend).run(command, timeout=60)
    assert ran.exit_code != 0 and not ran.timed_out


@both
async def test_a_command_may_signal_another_of_the_session(backend, sandboxed):
    processes = sandboxed(backend)
    job = await processes.start_background("echo $$ > pid; exec sleep 1000")
    assert (await processes.run("until [ -s pid ]; do :; done; kill $(cat pid)", timeout=60)).exit_code == 0
    assert (await processes.read_background(job, wait=10)).job.exit_code == 128 + signal.SIGTERM


@both
async def test_a_command_that_kills_all_it_can_leaves_nothing(backend, sandboxed, marked):
    """It may kill its warden, and under Landlock the keeper too; the guard outside and the namespace stay."""
    processes = sandboxed(backend)
    command = "(setsid sleep 1000 &); kill -9 $(cut -d' ' -f4 /proc/$PPID/stat) $PPID; sleep 1000"
    ran = await processes.run(command, timeout=60, env=marked.env)
    assert ran.exit_code is None
    await processes.aclose()
    assert marked.all_gone()


@both
async def test_a_dead_keeper_is_replaced_inside_a_sandbox_again(backend, sandboxed, eventually):
    processes = sandboxed(backend)
    await processes.run("true", timeout=60)
    (sandbox,) = processes._sandboxes.values()
    os.kill(sandbox.spawner._process.pid, signal.SIGKILL)
    assert eventually(lambda: not sandbox.is_alive)
    ran = await processes.run("echo back; echo x > /etc/ostler-test", timeout=60)
    assert ran.stdout == "back\n" and ran.exit_code != 0
    assert processes.sandbox == backend


async def test_a_sandbox_that_is_required_and_missing_is_a_refusal(tmp_path, monkeypatch):
    monkeypatch.setattr("ostler.processes.bubblewrap.unavailable_reason", lambda _: "not installed")
    monkeypatch.setattr("ostler.processes.landlock.unavailable_reason", lambda: "switched off")
    processes = SessionProcesses(str(tmp_path), policy=SandboxPolicy(mode="require", writable=(str(tmp_path),)))
    with pytest.raises(SandboxUnavailable, match="bubblewrap: not installed; landlock: switched off"):
        await processes.run("touch ran", timeout=60)
    await processes.aclose()
    assert os.listdir(tmp_path) == []


async def test_a_sandbox_that_is_preferred_and_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("ostler.processes.bubblewrap.unavailable_reason", lambda _: "not installed")
    monkeypatch.setattr("ostler.processes.landlock.unavailable_reason", lambda: "switched off")
    processes = SessionProcesses(str(tmp_path))
    assert processes.sandbox == "not started"
    assert (await processes.run("echo ran", timeout=60)).stdout == "ran\n"
    assert processes.sandbox == "none: bubblewrap: not installed; landlock: switched off"
    assert processes.description == "commands run without a sandbox (bubblewrap: not installed; landlock: switched off)"
    await processes.aclose()


async def test_a_sandbox_that_does_not_start_says_why(tmp_path, monkeypatch):
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
async def test_what_was_confined_once_is_not_run_unconfined_later(tmp_path, monkeypatch, eventually):
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


@both
async def test_long_output_can_be_read_by_a_later_command(backend, sandboxed):
    processes = sandboxed(backend)
    ran = await processes.run("head -c 1M /dev/zero | tr '\\0' x", timeout=60)
    assert (
        await processes.run(f"wc -c < {ran.output_file}; rm -f {ran.output_file}", timeout=60)
    ).stdout == "1048576\n"
    assert os.path.exists(ran.output_file)
