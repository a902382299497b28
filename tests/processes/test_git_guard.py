"""Attacks by sandboxed commands that would make git run a program outside, checked with a real git."""

import asyncio
import os
import subprocess

import pytest

from ostler.processes import bubblewrap, landlock
from ostler.processes.git_config import format_config, is_safe_setting, read_settings
from ostler.processes.git_discovery import GitDirectoryScanner
from ostler.processes.git_exec_files import QUARANTINE_SUFFIX
from ostler.processes.git_guard import GitGuard
from ostler.processes.sandbox import BACKENDS
from ostler.processes.sandbox_policy import SandboxPolicy
from ostler.processes.session_processes import SessionProcesses

pytestmark = pytest.mark.req("SH-8")

BOTH_BACKENDS = [
    pytest.param(
        "bubblewrap",
        marks=pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason()),
    ),
    pytest.param(
        "landlock", marks=pytest.mark.skipif(bool(landlock.unavailable_reason()), reason=landlock.unavailable_reason())
    ),
]
BARE = "mkdir -p {0}/objects {0}/refs; echo 'ref: refs/heads/main' > {0}/HEAD"
EVIL = "core.fsmonitor 'PROGRAM;'"
ALIAS = "alias.st '!PROGRAM'"
HOOK = "printf '#!/bin/sh\\nPROGRAM' > {0}; chmod +x {0}"
AS_USER = ("-c", "user.name=a", "-c", "user.email=a@b")

# Each attack runs in its own folder; the user then works in its folder `in`.
NESTED = {
    "a bare repository": f"mkdir in; cd in; {BARE.format('.')}; git config -f config {ALIAS}",
    "commondir": (
        "git init -q in; mkdir evil; mv in/.git/objects in/.git/refs evil;"
        f"git config -f evil/config {EVIL}; echo ../../evil > in/.git/commondir"
    ),
    "commondir that points to a folder without HEAD": (
        "mkdir -p in e/worktrees/y e/objects e/refs; echo 'ref: refs/heads/m' > e/worktrees/y/HEAD;"
        f"echo ../.. > e/worktrees/y/commondir; git config -f e/config {EVIL};"
        "echo 'gitdir: ../e/worktrees/y' > in/.git"
    ),
    "settings": f"git init -q in; git -C in config {EVIL}",
    "settings of a worktree": (
        f"git init -q in; cd in; git config extensions.worktreeConfig true; git config -f .git/config.worktree {EVIL}"
    ),
    "an include": f"git init -q in; git -C in config include.path ../../evil; git config -f evil {EVIL}",
    "settings behind a symlink": (
        f"git init -q in; git -C in config {EVIL}; mv in/.git/config c; ln -s ../../c in/.git/config"
    ),
    "a hook": f"git init -q in; mkdir -p in/.git/hooks; {HOOK.format('in/.git/hooks/pre-commit')}",
    "hooks behind a symlink": (
        f"git init -q in; rm -rf in/.git/hooks; mkdir h; {HOOK.format('h/pre-commit')}; ln -s ../../h in/.git/hooks"
    ),
    "a pointer into the objects of another": (
        f"git init -q o; {BARE.format('o/.git/objects/e')}; git config -f o/.git/objects/e/config {EVIL};"
        "git config -f o/.git/objects/e/config core.worktree ../../../../in;"
        "mkdir in; echo 'gitdir: ../o/.git/objects/e' > in/.git"
    ),
    "a pointer to the temporary folder": (
        f"mkdir in; {BARE.format('$TMPDIR/e')}; git config -f $TMPDIR/e/config {EVIL};"
        'git config -f $TMPDIR/e/config core.worktree $PWD/in; echo "gitdir: $TMPDIR/e" > in/.git'
    ),
    "a submodule that status reads": (
        f"git init -q in; cd in; git init -q sub; cd sub; git {' '.join(AS_USER)} commit -q --allow-empty -m x;"
        f"git config {EVIL}; cd ..; git add sub"
    ),
    "a nested submodule": (
        "git init -q o; mkdir -p o/.git/modules/lib; git init -q --separate-git-dir o/.git/modules/lib/sub in;"
        f"git -C in config {EVIL}"
    ),
    "settings that depend on the process": (
        f"mkdir in; git init -q in; mv in/.git/config in/c; git config -f in/c {EVIL};"
        "ln -s /proc/self/cwd/c in/.git/config"
    ),
    "commondir that depends on the process": (
        "mkdir -p in/e/objects in/e/refs ../e/worktrees/y ../e/objects ../e/refs;"
        "echo 'ref: refs/heads/m' > ../e/worktrees/y/HEAD; echo /proc/self/cwd/e > ../e/worktrees/y/commondir;"
        f"git config -f in/e/config {EVIL}; echo 'gitdir: ../../e/worktrees/y' > in/.git"
    ),
    "a read-only folder": f"git init -q in; git -C in config {EVIL}; chmod a-w in/.git",
}
AT_THE_ROOT = {
    "a bare repository": f"rm .git/HEAD; {BARE.format('.')}; git config -f config {ALIAS}",
    "commondir": (
        "mkdir evil; cp -r .git/objects .git/refs evil; git config -f evil/config core.worktree ..;"
        f"git config -f evil/config {EVIL}; echo ../evil > .git/commondir"
    ),
}


def _git(folder, *argv):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *argv], cwd=folder, env=env, capture_output=True, text=True, check=False)


class AttackSite:
    """A workspace with a repository, and a folder where the attack programs create a file when they run."""

    def __init__(self, base):
        self.root = base / "workspace"
        self.marker_dir = base / "markers"
        self.marker_dir.mkdir()
        assert _git(base, "init", "-q", str(self.root)).returncode == 0
        _git(self.root, *AS_USER, "commit", "-q", "--allow-empty", "-m", "first")

    def script(self, attack, command):
        return command.replace("PROGRAM", f'touch "{self.marker_dir}/{attack}"')

    def all_nested(self):
        scanner = enumerate(NESTED.items())
        lines = (f"mkdir n{n}; (cd n{n}; {self.script(attack, command)})" for n, (attack, command) in scanner)
        return "\n".join(lines)

    def work_in(self, *scanner):
        """Use git like a user."""
        for folder in scanner:
            _git(self.root / folder, "status")
            _git(self.root / folder, "st")  # a common alias
            _git(self.root / folder, *AS_USER, "commit", "-q", "--allow-empty", "-m", "x")

    def work_in_all(self):
        self.work_in(*(f"n{n}/in" for n in range(len(NESTED))))

    @property
    def programs_run(self):
        return set(os.listdir(self.marker_dir))

    def config(self, folder="."):
        return (self.root / folder / ".git" / "config").read_text()


@pytest.fixture
def site(tmp_path):
    return AttackSite(tmp_path)


@pytest.fixture(autouse=True)
def check_only_at_end(monkeypatch):
    """Check only at the end: a check during an attack would change it on a slow machine."""
    monkeypatch.setattr("ostler.processes.git_guard._INTERVAL_SECONDS", 3600.0)


@pytest.fixture
async def processes(request, site):
    """Processes of a sandboxed session, with the requested backend or the best one."""
    policy = SandboxPolicy(mode="require", writable=(str(site.root),))
    backends = (request.param,) if hasattr(request, "param") else BACKENDS
    session_processes = SessionProcesses(str(site.root), policy=policy, backends=backends, grace=0.3)
    yield session_processes
    await session_processes.aclose()


def test_attacks_work_without_guard(site, tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run(["bash", "-c", site.all_nested()], cwd=site.root, env=env, check=True)
    site.work_in_all()
    assert site.programs_run >= {"settings", "a hook", "an include"}  # the others depend on the version of git


@pytest.mark.parametrize("processes", BOTH_BACKENDS, indirect=True)
async def test_attacks_are_quarantined(site, processes):
    result = await processes.run(site.all_nested(), timeout=60)
    site.work_in_all()
    assert site.programs_run == set()
    assert result.stderr.count("was quarantined") >= len(NESTED)


@pytest.mark.parametrize("attack", AT_THE_ROOT)
def test_attacks_at_root_work_without_guard(site, attack):
    subprocess.run(["bash", "-c", site.script(attack, AT_THE_ROOT[attack])], cwd=site.root, check=True)
    site.work_in(".")
    if not site.programs_run:
        pytest.skip("this git is not vulnerable")
    assert site.programs_run == {attack}


@pytest.mark.parametrize("attack", AT_THE_ROOT)
@pytest.mark.parametrize("processes", BOTH_BACKENDS, indirect=True)
async def test_attacks_at_root_are_quarantined(site, processes, attack):
    result = await processes.run(site.script(attack, AT_THE_ROOT[attack]), timeout=60)
    site.work_in(".")
    assert site.programs_run == set() and "was quarantined" in result.stderr


@pytest.mark.parametrize("processes", BOTH_BACKENDS, indirect=True)
async def test_harmless_repositories_are_kept_without_notes(site, processes):
    result = await processes.run(
        "git init -q one && cd one && git config user.name Ann && git remote add other https://example.org/x.git"
        " && git config user.email a@b && git commit -q --allow-empty -m x && git worktree add -q ../two"
        " && git -c protocol.file.allow=always submodule --quiet add $PWD three && cd .."
        " && git clone -q one four && git clone -q --bare one five.git && git init -q --separate-git-dir six.git six",
        timeout=60,
    )
    assert result.exit_code == 0 and result.stderr == ""
    for folder in ("one", "two", "one/three", "four", "five.git", "six"):
        assert _git(site.root / folder, "rev-parse", "--git-dir").returncode == 0
    assert "example.org" in site.config("one")


async def test_harmless_settings_are_kept(site, processes):
    await processes.run(f"git init -q in; cd in; git config user.name 'A \"b\" \\c'; git config {EVIL}", timeout=60)
    assert _git(site.root / "in", "config", "user.name").stdout == 'A "b" \\c\n'
    assert "fsmonitor" not in site.config("in")
    assert "fsmonitor" in (site.root / "in" / ".git" / f"config{QUARANTINE_SUFFIX}").read_text()


async def test_settings_of_user_are_kept(site, processes):
    inner = site.root / "in"
    _git(site.root, "init", "-q", "in")
    _git(inner, "config", "core.editor", "vim")
    hook = inner / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntrue\n")
    hook.chmod(0o755)
    result = await processes.run(
        f"cd in; git config user.name Ann; git config alias.x '!y'; echo PROGRAM >> {hook}", timeout=60
    )
    assert "alias.x" in result.stderr and "core.editor" not in result.stderr
    assert _git(inner, "config", "core.editor").stdout == "vim\n" and "Ann" in site.config("in")
    assert hook.read_text() == "#!/bin/sh\ntrue\n" and os.access(hook, os.X_OK)


async def test_settings_of_user_between_commands_are_kept(site, processes):
    await processes.run("git init -q in", timeout=60)
    _git(site.root / "in", "config", "core.editor", "vim")
    result = await processes.run("git -C in config user.name Ann", timeout=60)
    assert result.stderr == "" and "vim" in site.config("in")


async def test_background_command_is_checked_at_its_end(site, processes):
    job = await processes.start_background(f"git init -q in; git -C in config {EVIL}")
    output = await processes.read_background(job, wait=60)
    assert output.job.state == "exited" and "was quarantined" in output.text
    assert "fsmonitor" not in site.config("in")


async def test_background_command_is_checked_with_next_command(site, processes):
    job = await processes.start_background(f"git init -q in; git -C in config {EVIL}; echo done; sleep 1000")
    text = ""
    while "done" not in text:
        text += (await processes.read_background(job, wait=1)).text
    result = await processes.run("true", timeout=60)
    assert "fsmonitor" not in site.config("in")
    assert "was quarantined" in text + result.stderr


async def test_files_are_checked_while_command_runs(site, processes, monkeypatch):
    monkeypatch.setattr("ostler.processes.git_guard._INTERVAL_SECONDS", 0.01)
    await processes.start_background(f"git init -q in; git -C in config {EVIL}; sleep 1000")
    async with asyncio.timeout(300):
        while not (site.root / "in" / ".git" / f"config{QUARANTINE_SUFFIX}").exists():
            await asyncio.sleep(0.01)


async def test_background_command_is_checked_when_session_closes(site, processes):
    job = await processes.start_background(f"git init -q in; git -C in config {EVIL}; echo done; sleep 1000")
    while "done" not in (await processes.read_background(job, wait=1)).text:
        pass
    await processes.aclose()
    assert "fsmonitor" not in site.config("in")


async def test_cancelled_command_is_checked(site, processes):
    done = asyncio.Event()
    command = f"git init -q in; git -C in config {EVIL}; echo done; sleep 1000"
    running = asyncio.create_task(processes.run(command, timeout=600, on_output=lambda _: done.set()))
    await done.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled() and "fsmonitor" not in site.config("in")


async def test_pipe_instead_of_config_does_not_block(site, processes):
    result = await processes.run("git init -q in; rm in/.git/config; mkfifo in/.git/config", timeout=60)
    assert "not a regular file" in result.stderr and not (site.root / "in" / ".git" / "config").exists()


async def test_existing_quarantine_names_do_not_prevent_quarantine(site, processes):
    existing = " ".join(f"in/.git/config{number}{QUARANTINE_SUFFIX}" for number in ("", "-2"))
    await processes.run(f"git init -q in; mkdir -p {existing}; git -C in config {EVIL}", timeout=60)
    assert "fsmonitor" not in site.config("in")


async def test_git_in_workspace_is_not_used(site, processes, monkeypatch):
    monkeypatch.setenv("PATH", f"{site.root}/bin:{os.environ['PATH']}")
    fake_git = f"printf '#!/bin/sh\\ntouch {site.marker_dir}/git' > bin/git; chmod +x bin/git"
    command = f"mkdir bin; {fake_git}; /usr/bin/git init -q in"
    await processes.run(command, timeout=60)
    assert site.programs_run == set()


async def test_swapped_symlink_is_not_followed(tmp_path):
    root, outside = tmp_path / "w", tmp_path / "outside"
    for folder in (root / "in" / ".git", outside / ".git"):
        folder.mkdir(parents=True)
    guard = GitGuard((str(root),))
    await guard.command_started()
    for folder in (root / "in", outside):
        (folder / ".git" / "config").write_text("[core]\n\teditor = evil\n")
    real_scan = guard._scan

    def scan_and_swap():
        found = real_scan()
        (root / "in").rename(root / "was")
        (root / "in").symlink_to(outside)
        guard._scan = real_scan
        return found

    guard._scan = scan_and_swap
    await guard.command_ended()
    assert os.listdir(outside / ".git") == ["config"]


@pytest.mark.parametrize("key", ["alias.x", "core.sshcommand", "filter.a.b.clean", "diff.external", "hook.x.command"])
def test_unknown_keys_are_unsafe(key):
    assert not is_safe_setting(key, "x", lambda _: True)


@pytest.mark.parametrize(
    ("key", "value", "safe"),
    [
        ("submodule.a.update", "!evil", False),
        ("submodule.a.update", "rebase", True),
        ("remote.origin.url", "ext::sh -c evil", False),
        ("remote.origin.url", "ssh://host/x::y", True),
        ("remote.origin.uploadpack", "evil", False),
        ("core.fsmonitor", "true", True),
        ("core.fsmonitor", "evil", False),
        ("core.x.fsmonitor", "true", False),
        ("branch.a.b.merge", "refs/heads/a.b", True),
        ("merge.mine.driver", "evil", False),
        ("merge.ff", "only", True),
    ],
)
def test_safety_can_depend_on_value(key, value, safe):
    assert is_safe_setting(key, value, lambda _: True) is safe


async def test_formatted_settings_are_read_back():
    text = b'[core]\n\tbare\n[remote "a.b \\"c\\" \\\\d"]\n\turl = " x;y#z\\n\\t\\\\ "\n[user]\n\tname = \n'
    pairs = await read_settings(text)
    assert pairs == [("core.bare", "true"), ('remote.a.b "c" \\d.url', " x;y#z\n\t\\ "), ("user.name", "")]
    assert await read_settings(format_config(pairs)) == pairs


def test_new_folder_is_found_by_second_scan(tmp_path):
    scanner = GitDirectoryScanner((str(tmp_path),))
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert scanner.find().directories == set()
    (tmp_path / "a" / "b" / ".git").mkdir()
    assert scanner.find().directories == {f"{tmp_path}/a/b/.git"}
    (tmp_path / "a" / "b" / ".git" / "modules" / "x" / "objects").mkdir(parents=True)
    (tmp_path / "a" / "b" / ".git" / "modules" / "x" / "HEAD").touch()
    assert f"{tmp_path}/a/b/.git/modules/x" in scanner.find().directories


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
async def test_unreadable_folders_are_checked(site, processes):
    chmod = "chmod 311 a/in a; chmod 311 b/in/.git/hooks b/in/.git"
    hook = f"git init -q b/in; mkdir -p b/in/.git/hooks; {HOOK.format('b/in/.git/hooks/pre-commit')}"
    command = f"git init -q a/in; git -C a/in config {EVIL}; {hook}; {chmod}"
    await processes.run(site.script("unreadable", command), timeout=60)
    site.work_in("a/in", "b/in")
    assert site.programs_run == set()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_folder_made_readable_again_is_scanned(tmp_path):
    inner = tmp_path / "a" / "b"
    (inner / ".git").mkdir(parents=True)
    inner.chmod(0)
    scanner = GitDirectoryScanner((str(tmp_path),))
    assert scanner.find().directories == set()
    inner.chmod(0o755)
    assert scanner.find().directories == {f"{inner}/.git"}


async def test_change_within_clock_tick_is_detected(tmp_path):
    """Stamps of recent files are not trusted: two changes within a clock tick get the same time."""
    config = tmp_path / "in" / ".git" / "config"
    config.parent.mkdir(parents=True)
    guard = GitGuard((str(tmp_path),))
    await guard.command_started()
    config.write_text("[core]\n\tabbrev = 1\n")
    await guard.check()
    config.write_text("[core]\n\teditor = x\n")
    await guard.command_ended()
    assert "core.editor" in guard.take_notes()[0]


async def test_notes_contain_no_control_characters(tmp_path):
    guard = GitGuard((str(tmp_path),))
    await guard.command_started()
    config = tmp_path / "a\x1b[2J\nb\udcff" / ".git" / "config"
    config.parent.mkdir(parents=True)
    config.write_text("[core]\n\teditor = x\n")
    await guard.command_ended()
    (note,) = guard.take_notes()
    assert note.isprintable()
