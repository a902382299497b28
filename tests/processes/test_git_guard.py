"""Commands in a sandbox that try to make git outside of it run a program, and git then really run outside."""

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

WITH_BOTH = [
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
AS_A = ("-c", "user.name=a", "-c", "user.email=a@b")

# Each is run in a folder of its own; a person then works in its folder `in`.
NESTED = {
    "a bare repository": f"mkdir in; cd in; {BARE.format('.')}; git config -f config {ALIAS}",
    "commondir": (
        "git init -q in; mkdir evil; mv in/.git/objects in/.git/refs evil;"
        f"git config -f evil/config {EVIL}; echo ../../evil > in/.git/commondir"
    ),
    "commondir without a HEAD where it leads": (
        "mkdir -p in e/worktrees/y e/objects e/refs; echo 'ref: refs/heads/m' > e/worktrees/y/HEAD;"
        f"echo ../.. > e/worktrees/y/commondir; git config -f e/config {EVIL};"
        "echo 'gitdir: ../e/worktrees/y' > in/.git"
    ),
    "settings": f"git init -q in; git -C in config {EVIL}",
    "settings of a worktree": (
        f"git init -q in; cd in; git config extensions.worktreeConfig true; git config -f .git/config.worktree {EVIL}"
    ),
    "an include": f"git init -q in; git -C in config include.path ../../evil; git config -f evil {EVIL}",
    "settings by a link": f"git init -q in; git -C in config {EVIL}; mv in/.git/config c; ln -s ../../c in/.git/config",
    "a hook": f"git init -q in; mkdir -p in/.git/hooks; {HOOK.format('in/.git/hooks/pre-commit')}",
    "hooks by a link": (
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
    "a submodule that status looks into": (
        f"git init -q in; cd in; git init -q sub; cd sub; git {' '.join(AS_A)} commit -q --allow-empty -m x;"
        f"git config {EVIL}; cd ..; git add sub"
    ),
    "a submodule in a folder of its own": (
        "git init -q o; mkdir -p o/.git/modules/lib; git init -q --separate-git-dir o/.git/modules/lib/sub in;"
        f"git -C in config {EVIL}"
    ),
    "settings that only some can see": (
        f"mkdir in; git init -q in; mv in/.git/config in/c; git config -f in/c {EVIL};"
        "ln -s /proc/self/cwd/c in/.git/config"
    ),
    "commondir that depends on who looks": (
        "mkdir -p in/e/objects in/e/refs ../e/worktrees/y ../e/objects ../e/refs;"
        "echo 'ref: refs/heads/m' > ../e/worktrees/y/HEAD; echo /proc/self/cwd/e > ../e/worktrees/y/commondir;"
        f"git config -f in/e/config {EVIL}; echo 'gitdir: ../../e/worktrees/y' > in/.git"
    ),
    "a folder that cannot be written": f"git init -q in; git -C in config {EVIL}; chmod a-w in/.git",
}
AT_THE_ROOT = {
    "a bare repository": f"rm .git/HEAD; {BARE.format('.')}; git config -f config {ALIAS}",
    "commondir": (
        "mkdir evil; cp -r .git/objects .git/refs evil; git config -f evil/config core.worktree ..;"
        f"git config -f evil/config {EVIL}; echo ../evil > .git/commondir"
    ),
}


def _git(folder, *words):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)


class Yard:
    """A workspace with a repository, and a folder where the programs of attacks leave a mark when they run."""

    def __init__(self, base):
        self.root = base / "workspace"
        self.marks = base / "marks"
        self.marks.mkdir()
        assert _git(base, "init", "-q", str(self.root)).returncode == 0
        _git(self.root, *AS_A, "commit", "-q", "--allow-empty", "-m", "first")

    def script(self, attack, command):
        return command.replace("PROGRAM", f'touch "{self.marks}/{attack}"')

    def all_nested(self):
        folders = enumerate(NESTED.items())
        lines = (f"mkdir n{n}; (cd n{n}; {self.script(attack, command)})" for n, (attack, command) in folders)
        return "\n".join(lines)

    def work_in(self, *folders):
        """git as a person uses it."""
        for folder in folders:
            _git(self.root / folder, "status")
            _git(self.root / folder, "st")  # an alias that many people have
            _git(self.root / folder, *AS_A, "commit", "-q", "--allow-empty", "-m", "x")

    def work_in_all(self):
        self.work_in(*(f"n{n}/in" for n in range(len(NESTED))))

    @property
    def ran(self):
        return set(os.listdir(self.marks))

    def config(self, folder="."):
        return (self.root / folder / ".git" / "config").read_text()


@pytest.fixture
def yard(tmp_path):
    return Yard(tmp_path)


@pytest.fixture(autouse=True)
def only_at_the_end(monkeypatch):
    """A look in the middle of an attack would make it another one, on a slow machine."""
    monkeypatch.setattr("ostler.processes.git_guard._INTERVAL_SECONDS", 3600.0)


@pytest.fixture
async def processes(request, yard):
    """Of a sandboxed session; with the backend of the test's choice, or the best there is."""
    policy = SandboxPolicy(mode="require", writable=(str(yard.root),))
    backends = (request.param,) if hasattr(request, "param") else BACKENDS
    made = SessionProcesses(str(yard.root), policy=policy, backends=backends, grace=0.3)
    yield made
    await made.aclose()


def test_without_a_guard_git_runs_what_the_attacks_name(yard, tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run(["bash", "-c", yard.all_nested()], cwd=yard.root, env=env, check=True)
    yard.work_in_all()
    assert yard.ran >= {"settings", "a hook", "an include"}  # what else works depends on git's version


@pytest.mark.parametrize("processes", WITH_BOTH, indirect=True)
async def test_git_outside_runs_nothing_that_a_command_chose(yard, processes):
    ran = await processes.run(yard.all_nested(), timeout=60)
    yard.work_in_all()
    assert yard.ran == set()
    assert ran.stderr.count("was set aside") >= len(NESTED)


@pytest.mark.parametrize("attack", AT_THE_ROOT)
def test_without_a_guard_it_runs_them_in_the_root_too(yard, attack):
    subprocess.run(["bash", "-c", yard.script(attack, AT_THE_ROOT[attack])], cwd=yard.root, check=True)
    yard.work_in(".")
    if not yard.ran:
        pytest.skip("this git does not fall for it anyway")
    assert yard.ran == {attack}


@pytest.mark.parametrize("attack", AT_THE_ROOT)
@pytest.mark.parametrize("processes", WITH_BOTH, indirect=True)
async def test_the_repository_of_the_workspace_is_not_put_out_of_the_way(yard, processes, attack):
    ran = await processes.run(yard.script(attack, AT_THE_ROOT[attack]), timeout=60)
    yard.work_in(".")
    assert yard.ran == set() and "was set aside" in ran.stderr


@pytest.mark.parametrize("processes", WITH_BOTH, indirect=True)
async def test_what_runs_no_program_stays_and_nothing_is_said(yard, processes):
    ran = await processes.run(
        "git init -q one && cd one && git config user.name Ann && git remote add other https://example.org/x.git"
        " && git config user.email a@b && git commit -q --allow-empty -m x && git worktree add -q ../two"
        " && git -c protocol.file.allow=always submodule --quiet add $PWD three && cd .."
        " && git clone -q one four && git clone -q --bare one five.git && git init -q --separate-git-dir six.git six",
        timeout=60,
    )
    assert ran.exit_code == 0 and ran.stderr == ""
    for folder in ("one", "two", "one/three", "four", "five.git", "six"):
        assert _git(yard.root / folder, "rev-parse", "--git-dir").returncode == 0
    assert "example.org" in yard.config("one")


async def test_the_harmless_rest_of_settings_stays(yard, processes):
    await processes.run(f"git init -q in; cd in; git config user.name 'A \"b\" \\c'; git config {EVIL}", timeout=60)
    assert _git(yard.root / "in", "config", "user.name").stdout == 'A "b" \\c\n'
    assert "fsmonitor" not in yard.config("in")
    assert "fsmonitor" in (yard.root / "in" / ".git" / f"config{QUARANTINE_SUFFIX}").read_text()


async def test_what_a_person_set_before_stays(yard, processes):
    inner = yard.root / "in"
    _git(yard.root, "init", "-q", "in")
    _git(inner, "config", "core.editor", "vim")
    hook = inner / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntrue\n")
    hook.chmod(0o755)
    ran = await processes.run(
        f"cd in; git config user.name Ann; git config alias.x '!y'; echo PROGRAM >> {hook}", timeout=60
    )
    assert "alias.x" in ran.stderr and "core.editor" not in ran.stderr
    assert _git(inner, "config", "core.editor").stdout == "vim\n" and "Ann" in yard.config("in")
    assert hook.read_text() == "#!/bin/sh\ntrue\n" and os.access(hook, os.X_OK)


async def test_what_a_person_sets_between_two_commands_stays(yard, processes):
    await processes.run("git init -q in", timeout=60)
    _git(yard.root / "in", "config", "core.editor", "vim")
    ran = await processes.run("git -C in config user.name Ann", timeout=60)
    assert ran.stderr == "" and "vim" in yard.config("in")


async def test_what_a_background_command_does_is_undone_at_its_end_and_told(yard, processes):
    job = await processes.start_background(f"git init -q in; git -C in config {EVIL}")
    output = await processes.read_background(job, wait=60)
    assert output.job.state == "exited" and "was set aside" in output.text
    assert "fsmonitor" not in yard.config("in")


async def test_what_a_background_command_does_is_undone_while_it_runs(yard, processes):
    job = await processes.start_background(f"git init -q in; git -C in config {EVIL}; echo done; sleep 1000")
    text = ""
    while "done" not in text:
        text += (await processes.read_background(job, wait=1)).text
    ran = await processes.run("true", timeout=60)
    assert "fsmonitor" not in yard.config("in")
    assert "was set aside" in text + ran.stderr


async def test_it_is_looked_at_while_a_command_runs(yard, processes, monkeypatch):
    monkeypatch.setattr("ostler.processes.git_guard._INTERVAL_SECONDS", 0.01)
    await processes.start_background(f"git init -q in; git -C in config {EVIL}; sleep 1000")
    async with asyncio.timeout(300):
        while not (yard.root / "in" / ".git" / f"config{QUARANTINE_SUFFIX}").exists():
            await asyncio.sleep(0.01)


async def test_what_a_background_command_does_is_undone_when_the_session_closes(yard, processes):
    job = await processes.start_background(f"git init -q in; git -C in config {EVIL}; echo done; sleep 1000")
    while "done" not in (await processes.read_background(job, wait=1)).text:
        pass
    await processes.aclose()
    assert "fsmonitor" not in yard.config("in")


async def test_what_a_cancelled_command_did_is_undone(yard, processes):
    done = asyncio.Event()
    command = f"git init -q in; git -C in config {EVIL}; echo done; sleep 1000"
    running = asyncio.create_task(processes.run(command, timeout=600, on_output=lambda _: done.set()))
    await done.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled() and "fsmonitor" not in yard.config("in")


async def test_a_pipe_in_place_of_settings_hangs_nothing(yard, processes):
    ran = await processes.run("git init -q in; rm in/.git/config; mkfifo in/.git/config", timeout=60)
    assert "no plain file" in ran.stderr and not (yard.root / "in" / ".git" / "config").exists()


async def test_names_that_are_taken_do_not_help(yard, processes):
    taken = " ".join(f"in/.git/config{number}{QUARANTINE_SUFFIX}" for number in ("", "-2"))
    await processes.run(f"git init -q in; mkdir -p {taken}; git -C in config {EVIL}", timeout=60)
    assert "fsmonitor" not in yard.config("in")


async def test_a_git_from_the_workspace_is_not_asked(yard, processes, monkeypatch):
    monkeypatch.setenv("PATH", f"{yard.root}/bin:{os.environ['PATH']}")
    mine = (
        f"mkdir bin; printf '#!/bin/sh\\ntouch {yard.marks}/git' > bin/git; chmod +x bin/git; /usr/bin/git init -q in"
    )
    await processes.run(mine, timeout=60)
    assert yard.ran == set()


async def test_nothing_is_put_where_a_link_leads_meanwhile(tmp_path):
    root, outside = tmp_path / "w", tmp_path / "outside"
    for folder in (root / "in" / ".git", outside / ".git"):
        folder.mkdir(parents=True)
    guard = GitGuard((str(root),))
    await guard.command_started()
    for folder in (root / "in", outside):
        (folder / ".git" / "config").write_text("[core]\n\teditor = evil\n")
    look = guard._scan

    def swapped():
        found = look()
        (root / "in").rename(root / "was")
        (root / "in").symlink_to(outside)
        guard._scan = look
        return found

    guard._scan = swapped
    await guard.command_ended()
    assert os.listdir(outside / ".git") == ["config"]


@pytest.mark.parametrize("key", ["alias.x", "core.sshcommand", "filter.a.b.clean", "diff.external", "hook.x.command"])
def test_a_key_that_is_not_known_to_be_harmless_is_not(key):
    assert not is_safe_setting(key, "x", lambda _: True)


@pytest.mark.parametrize(
    ("key", "value", "fine"),
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
def test_values_count_where_they_matter(key, value, fine):
    assert is_safe_setting(key, value, lambda _: True) is fine


async def test_settings_survive_being_written():
    text = b'[core]\n\tbare\n[remote "a.b \\"c\\" \\\\d"]\n\turl = " x;y#z\\n\\t\\\\ "\n[user]\n\tname = \n'
    pairs = await read_settings(text)
    assert pairs == [("core.bare", "true"), ('remote.a.b "c" \\d.url', " x;y#z\n\t\\ "), ("user.name", "")]
    assert await read_settings(format_config(pairs)) == pairs


def test_a_folder_that_is_new_the_second_time_is_found(tmp_path):
    folders = GitDirectoryScanner((str(tmp_path),))
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert folders.find().directories == set()
    (tmp_path / "a" / "b" / ".git").mkdir()
    assert folders.find().directories == {f"{tmp_path}/a/b/.git"}
    (tmp_path / "a" / "b" / ".git" / "modules" / "x" / "objects").mkdir(parents=True)
    (tmp_path / "a" / "b" / ".git" / "modules" / "x" / "HEAD").touch()
    assert f"{tmp_path}/a/b/.git/modules/x" in folders.find().directories


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
async def test_folders_that_cannot_be_listed_hide_nothing(yard, processes):
    shut = "chmod 311 a/in a; chmod 311 b/in/.git/hooks b/in/.git"
    hook = f"git init -q b/in; mkdir -p b/in/.git/hooks; {HOOK.format('b/in/.git/hooks/pre-commit')}"
    command = f"git init -q a/in; git -C a/in config {EVIL}; {hook}; {shut}"
    await processes.run(yard.script("shut", command), timeout=60)
    yard.work_in("a/in", "b/in")
    assert yard.ran == set()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_was_shut_meanwhile_is_looked_into(tmp_path):
    inner = tmp_path / "a" / "b"
    (inner / ".git").mkdir(parents=True)
    inner.chmod(0)
    folders = GitDirectoryScanner((str(tmp_path),))
    assert folders.find().directories == set()
    inner.chmod(0o755)
    assert folders.find().directories == {f"{inner}/.git"}


async def test_a_change_in_the_very_moment_of_a_look_is_seen(tmp_path):
    """Stamps of young files are not believed: the clock of a kernel ticks, and two changes may bear the same time."""
    config = tmp_path / "in" / ".git" / "config"
    config.parent.mkdir(parents=True)
    guard = GitGuard((str(tmp_path),))
    await guard.command_started()
    config.write_text("[core]\n\tabbrev = 1\n")
    await guard.check()
    config.write_text("[core]\n\teditor = x\n")
    await guard.command_ended()
    assert "core.editor" in guard.take_notes()[0]


async def test_what_is_told_cannot_write_on_a_terminal(tmp_path):
    guard = GitGuard((str(tmp_path),))
    await guard.command_started()
    config = tmp_path / "a\x1b[2J\nb\udcff" / ".git" / "config"
    config.parent.mkdir(parents=True)
    config.write_text("[core]\n\teditor = x\n")
    await guard.command_ended()
    (told,) = guard.take_notes()
    assert told.isprintable()
