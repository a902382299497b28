"""Patches that git makes, applied by us and by git: where git applies one, we leave the same files behind."""

import random
import shutil
import subprocess

import pytest

from ostler.core.errors import ToolError
from ostler.tools.editing.patch_parser import parse_patch
from ostler.tools.editing.patch_plan import plan_patch, resolve_patch_paths
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = [
    pytest.mark.req("TL-5"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git, the oracle of these tests, is not on this machine"),
]
WORDS = ["alpha", "beta", "", "  gamma", "\tdelta", "}", "{", "-- dash", "++ plus", "@@ at", "ünï", "x" * 60]
NAMES = ["a.txt", "dir/b.txt", "dir/deep/c d.txt", "é.txt", "tab\there.txt"]


def git(folder, *arguments, text=None):
    command = ["git", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false", *arguments]
    return subprocess.run(command, cwd=folder, input=text, capture_output=True, check=False)


def files_of(folder):
    found = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o100) for path in found}


def write_all(folder, files):
    for name, (data, executable) in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if executable else 0o644)


def lines(rng, end):
    text = "".join(rng.choice(WORDS) + end for _ in range(rng.randint(0, 30)))
    return text.removesuffix(end) if rng.random() < 0.2 else text


def changed(rng, text, end):
    pieces = text.splitlines(keepends=True)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(pieces))
        pieces[at : at + rng.randint(0, 3)] = [rng.choice(WORDS) + end for _ in range(rng.randint(0, 3))]
    return "".join(pieces)


def two_trees(rng):
    """A tree, and what became of it: files changed, made, deleted, renamed, and given another mode."""
    before, after = {}, {}
    for name in NAMES:
        end = rng.choice(["\n", "\n", "\r\n"])
        text = lines(rng, end)
        data, mode = text.encode(), rng.choice([0, 0, 0o100])
        fate = rng.choice(["change", "change", "delete", "create", "rename", "mode", "keep"])
        new = changed(rng, text, end).encode()
        if fate != "create":
            before[name] = (data, mode)
        if fate in ("change", "create"):
            after[name] = (new, mode)
        elif fate == "rename":
            after[f"moved/{name}"] = (new if rng.random() < 0.5 else data, mode)
        elif fate == "mode":
            after[name] = (data, mode ^ 0o100)
        elif fate == "keep":
            after[name] = (data, mode)
    return before, after


async def applied(folder, patch):
    """Our way with a patch: the files afterwards, None when it is refused."""
    workspace = LocalWorkspace(str(folder))
    try:
        planned = await plan_patch(resolve_patch_paths(parse_patch(patch), workspace), workspace)
        await workspace.apply(planned.changes)
    except ToolError:
        return None
    finally:
        workspace.close()
    return files_of(folder)


def make_patch(tmp_path, before, after, *options):
    """What git says is between two trees."""
    folder = tmp_path / "history"
    folder.mkdir()
    git(folder, "init", "-q")
    write_all(folder, before)
    git(folder, "add", "-A", "-f")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "before")
    for path in [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]:
        path.unlink()
    write_all(folder, after)
    git(folder, "add", "-A", "-f")
    return git(folder, "diff", "--cached", *options, "HEAD").stdout.decode()


@pytest.mark.parametrize("seed", range(24))
async def test_what_git_makes_we_apply(tmp_path, seed):
    rng = random.Random(seed)
    before, after = two_trees(rng)
    options = [["-M"], ["-M", "-C", "--find-copies-harder"], ["--no-renames"], ["--no-prefix"], ["-U1"], ["-U8"]]
    patch = make_patch(tmp_path, before, after, *options[seed % len(options)])
    if not patch:
        assert before == after
        return
    ours = tmp_path / "ours"
    ours.mkdir()
    write_all(ours, before)
    assert await applied(ours, patch) == after


def drifted(rng, files):
    """The files as somebody else changed them meanwhile."""
    moved = {}
    for name, (data, mode) in files.items():
        pieces = data.decode().splitlines(keepends=True)
        at = rng.randint(0, len(pieces))
        end = "\r\n" if b"\r\n" in data else "\n"
        if rng.random() < 0.7:
            pieces[at:at] = [f"inserted {n}{end}" for n in range(rng.randint(1, 4))]
        moved[name] = ("".join(pieces).encode(), mode)
    return moved


@pytest.mark.parametrize("seed", range(24))
async def test_on_drifted_files_we_agree_with_git_or_refuse(tmp_path, seed):
    rng = random.Random(1000 + seed)
    before, after = two_trees(rng)
    patch = make_patch(tmp_path, before, after, "--no-renames")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    now = drifted(rng, before)
    for folder in (theirs, ours):
        folder.mkdir()
        write_all(folder, now)
    if not patch:
        return
    accepted = git(theirs, "apply", "--whitespace=nowarn", "-", text=patch.encode()).returncode == 0
    made = await applied(ours, patch)
    if made is None:
        assert files_of(ours) == now
    elif accepted:
        assert made == files_of(theirs)


async def test_a_mail_of_git(tmp_path):
    before, after = {"x.txt": (b"a\nb\nc\n", 0)}, {"x.txt": (b"a\nB\nc\n", 0)}
    make_patch(tmp_path, before, after)
    folder = tmp_path / "history"
    git(folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "Change\n\n--- a note\n- b")
    mail = git(folder, "format-patch", "-1", "--stdout").stdout.decode()
    ours = tmp_path / "ours"
    ours.mkdir()
    write_all(ours, before)
    assert await applied(ours, mail) == after
