"""Patches made by git, applied by Ostler and by git: both produce the same files."""

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
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
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


def random_edit(rng, text, end):
    text_lines = text.splitlines(keepends=True)
    for _ in range(rng.randint(1, 4)):
        index = rng.randint(0, len(text_lines))
        text_lines[index : index + rng.randint(0, 3)] = [rng.choice(WORDS) + end for _ in range(rng.randint(0, 3))]
    return "".join(text_lines)


def random_trees(rng):
    """Return a random tree, and the tree after changes: edits, new, deleted and renamed files, other modes."""
    before, after = {}, {}
    for name in NAMES:
        end = rng.choice(["\n", "\n", "\r\n"])
        text = lines(rng, end)
        data, mode = text.encode(), rng.choice([0, 0, 0o100])
        change = rng.choice(["change", "change", "delete", "create", "rename", "mode", "keep"])
        new = random_edit(rng, text, end).encode()
        if change != "create":
            before[name] = (data, mode)
        if change in ("change", "create"):
            after[name] = (new, mode)
        elif change == "rename":
            after[f"moved/{name}"] = (new if rng.random() < 0.5 else data, mode)
        elif change == "mode":
            after[name] = (data, mode ^ 0o100)
        elif change == "keep":
            after[name] = (data, mode)
    return before, after


async def apply_ours(folder, patch):
    """Apply a patch with Ostler; return the files afterwards, or None if it is rejected."""
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
    """Return the diff that git makes between two trees."""
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
@pytest.mark.sampled(every=4)
async def test_patches_made_by_git_apply(tmp_path, seed):
    rng = random.Random(seed)
    before, after = random_trees(rng)
    options = [["-M"], ["-M", "-C", "--find-copies-harder"], ["--no-renames"], ["--no-prefix"], ["-U1"], ["-U8"]]
    patch = make_patch(tmp_path, before, after, *options[seed % len(options)])
    if not patch:
        assert before == after
        return
    ours = tmp_path / "ours"
    ours.mkdir()
    write_all(ours, before)
    assert await apply_ours(ours, patch) == after


def insert_lines(rng, files):
    """Return the files with random inserted lines."""
    changed_files = {}
    for name, (data, mode) in files.items():
        text_lines = data.decode().splitlines(keepends=True)
        index = rng.randint(0, len(text_lines))
        end = "\r\n" if b"\r\n" in data else "\n"
        if rng.random() < 0.7:
            text_lines[index:index] = [f"inserted {n}{end}" for n in range(rng.randint(1, 4))]
        changed_files[name] = ("".join(text_lines).encode(), mode)
    return changed_files


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sampled(every=4)
async def test_results_on_changed_files_agree_with_git_or_are_rejected(tmp_path, seed):
    rng = random.Random(1000 + seed)
    before, after = random_trees(rng)
    patch = make_patch(tmp_path, before, after, "--no-renames")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    current = insert_lines(rng, before)
    for folder in (theirs, ours):
        folder.mkdir()
        write_all(folder, current)
    if not patch:
        return
    accepted = git(theirs, "apply", "--whitespace=nowarn", "-", text=patch.encode()).returncode == 0
    result = await apply_ours(ours, patch)
    if result is None:
        assert files_of(ours) == current
    elif accepted:
        assert result == files_of(theirs)


async def test_git_format_patch_mail(tmp_path):
    before, after = {"x.txt": (b"a\nb\nc\n", 0)}, {"x.txt": (b"a\nB\nc\n", 0)}
    make_patch(tmp_path, before, after)
    folder = tmp_path / "history"
    git(folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "Change\n\n--- a note\n- b")
    mail = git(folder, "format-patch", "-1", "--stdout").stdout.decode()
    ours = tmp_path / "ours"
    ours.mkdir()
    write_all(ours, before)
    assert await apply_ours(ours, mail) == after
