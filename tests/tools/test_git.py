"""The git tools on real repositories, including hostile ones that try to run programs."""

import os
import subprocess

import pytest

IDENTITY = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_CONFIG_GLOBAL": "/dev/null"}
IDENTITY |= {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org", "GIT_CONFIG_NOSYSTEM": "1"}
DATES = {"GIT_AUTHOR_DATE": "2024-02-03T04:05:06Z", "GIT_COMMITTER_DATE": "2024-02-03T04:05:06Z"}


def git(folder, *arguments):
    env = {**os.environ, **IDENTITY, **DATES}
    done = subprocess.run(["git", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repo(harness, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(harness.root, "init", "-q", "-b", "main")
    harness.file("a.txt", "one\ntwo\n")
    harness.file("sub/b.txt", "x\n")
    git(harness.root, "add", ".")
    git(harness.root, "commit", "-q", "-m", "Begin", "-m", "The body.")
    harness.file("a.txt", "one\n2\n")
    git(harness.root, "commit", "-q", "-am", "Change a")
    return harness


@pytest.mark.req("TL-2")
async def test_status(repo):
    assert (await repo.ok("git_status")).for_model == "main: no changes"
    repo.file("a.txt", "three\n")
    repo.file("new file.txt")
    git(repo.root, "mv", "sub/b.txt", "sub/c.txt")
    result = await repo.ok("git_status")
    assert result.for_model.splitlines()[1:] == [".M a.txt", "R. sub/c.txt", "?? new file.txt"]
    assert (result.data["tool"], result.data["ok"], result.data["summary"]) == ("git_status", True, "main: 3 changed")
    files = result.data["data"]["files"]
    assert files[1] == {"status": "R.", "path": "sub/c.txt", "old_path": "sub/b.txt"}
    assert (await repo.ok("git_status", path="sub")).data["data"]["files"] == files[1:2]


@pytest.mark.req("TL-2")
async def test_diff(repo):
    assert (await repo.ok("git_diff")).for_model == "no changes"
    repo.file("a.txt", "one\n3\n")
    repo.file("sub/b.txt", "y\n")
    git(repo.root, "add", "sub")
    unstaged = (await repo.ok("git_diff")).for_model
    assert "-2\n+3" in unstaged
    assert "sub/b.txt" not in unstaged
    staged = (await repo.ok("git_diff", staged=True)).for_model
    assert "+++ b/sub/b.txt" in staged
    assert "a.txt" not in staged
    between = await repo.ok("git_diff", from_ref="HEAD~1", to_ref="HEAD", name_only=True)
    assert between.data["data"]["files"] == [{"status": "modified", "raw_status": "M", "path": "a.txt"}]
    assert "1 file changed, 1 insertion(+), 1 deletion(-)" in (await repo.ok("git_diff", stat=True)).for_model
    assert len((await repo.ok("git_diff", from_ref="HEAD~1", context_lines=0)).for_model.splitlines()) < 16


@pytest.mark.req("TL-10")
async def test_long_diff_is_truncated(repo):
    repo.file("a.txt", "".join(f"line {number}\n" for number in range(5000)))
    result = await repo.ok("git_diff", max_bytes=2000)
    assert len(result.for_model) <= 2000
    assert "left out" in result.for_model
    assert result.data["data"]["truncated"] is True


@pytest.mark.req("TL-2")
async def test_log(repo):
    result = await repo.ok("git_log")
    assert [line.split(" ", 1)[1] for line in result.for_model.splitlines()] == [
        "2024-02-03 Ada: Change a",
        "2024-02-03 Ada: Begin",
    ]
    first = result.data["data"]["commits"][1]
    assert (first["author"], first["email"], first["subject"], first["body"]) == (
        "Ada",
        "ada@example.org",
        "Begin",
        "The body.",
    )
    assert len((await repo.ok("git_log", limit=1)).data["data"]["commits"]) == 1
    assert (await repo.ok("git_log", path="sub")).data["data"]["commits"][0]["subject"] == "Begin"
    assert (await repo.ok("git_log", count=True)).data["data"]["count"] == 2
    files = (await repo.ok("git_log", with_files=True, limit=1)).data["data"]["commits"][0]["files"]
    assert files == [{"raw_status": "M", "path": "a.txt"}]
    assert "    The body." in (await repo.ok("git_log", oneline=False)).for_model


@pytest.mark.req("TL-2")
async def test_log_with_files(repo):
    git(repo.root, "mv", "a.txt", "c.txt")
    git(repo.root, "commit", "-q", "-m", "Rename")
    repo.file("new.txt", "n\n")
    git(repo.root, "rm", "-q", "sub/b.txt")
    git(repo.root, "add", ".")
    git(repo.root, "commit", "-q", "-m", "Two", "-m", "A body.\n\nOf two parts.")
    commits = (await repo.ok("git_log", with_files=True)).data["data"]["commits"]
    files = [[(file["raw_status"], file["path"]) for file in commit["files"]] for commit in commits]
    assert files == [
        [("A", "new.txt"), ("D", "sub/b.txt")],
        [("R100", "c.txt")],
        [("M", "a.txt")],
        [("A", "a.txt"), ("A", "sub/b.txt")],
    ]
    assert [(commit["subject"], commit["body"]) for commit in commits][:2] == [
        ("Two", "A body.\n\nOf two parts."),
        ("Rename", ""),
    ]
    plain = (await repo.ok("git_log")).data["data"]["commits"]
    assert [commit["subject"] for commit in plain] == ["Two", "Rename", "Change a", "Begin"]


@pytest.mark.req("TL-2")
async def test_log_contains_merges(repo):
    git(repo.root, "checkout", "-q", "-b", "side")
    repo.file("tabs.txt", "a\tb\n")
    git(repo.root, "add", ".")
    git(repo.root, "commit", "-q", "-m", "Side")
    git(repo.root, "checkout", "-q", "main")
    git(repo.root, "merge", "-q", "--no-ff", "-m", "Merge", "side")
    commits = (await repo.ok("git_log")).data["data"]["commits"]
    output = [(commit["subject"], commit.get("files")) for commit in commits]
    assert sorted(output) == [("Begin", None), ("Change a", None), ("Merge", None), ("Side", None)]
    assert output[0] == ("Merge", None)
    assert (await repo.ok("git_log", count=True)).data["data"]["count"] == 4
    merge = (await repo.ok("git_log", limit=1, with_files=True)).data["data"]["commits"][0]
    assert merge["files"] == [{"raw_status": "A", "path": "tabs.txt"}]


@pytest.mark.req("TL-2")
async def test_show(repo):
    result = await repo.ok("git_show")
    assert "Author: Ada <ada@example.org>" in result.for_model
    assert "    Change a" in result.for_model
    assert "-two\n+2" in result.for_model
    plain = (await repo.ok("git_show", sha="HEAD~1", patch=False)).for_model
    assert "    The body." in plain
    assert "2 files changed" in plain
    assert "+one" not in plain
    narrowed = (await repo.ok("git_show", sha="HEAD~1", path="sub")).for_model
    assert "+x" in narrowed
    assert "+one" not in narrowed


@pytest.mark.req("TL-2")
async def test_blame(repo):
    result = await repo.ok("git_blame", path="a.txt")
    assert [line.split(" ", 1)[1] for line in result.for_model.splitlines()] == [
        "Ada 2024-02-03 1\tone",
        "Ada 2024-02-03 2\t2",
    ]
    (line,) = (await repo.ok("git_blame", path="a.txt", line=2, limit=1)).data["data"]["lines"]
    assert (line["line"], line["text"], line["summary"]) == (2, "2", "Change a")
    older = await repo.ok("git_blame", path="a.txt", ref="HEAD~1")
    assert older.data["data"]["lines"][1]["text"] == "two"


async def test_repository_without_commits(harness, monkeypatch):
    git(harness.root, "init", "-q", "-b", "main")
    assert (await harness.ok("git_log")).for_model == "there are no commits yet"
    assert (await harness.ok("git_status")).for_model == "main: no changes"
    harness.file("a.txt", "x\n")
    assert "the repository has no commits yet" in await harness.fails("git_show")
    assert "the repository has no commits yet" in await harness.fails("git_blame", path="a.txt")


async def test_blame_of_invalid_paths(repo):
    repo.file("new.txt", "x\n")
    assert "no such path 'new.txt' in HEAD; git_status lists untracked files" in await repo.fails(
        "git_blame", path="new.txt"
    )
    assert "sub is a folder; name a file in it" in await repo.fails("git_blame", path="sub")
    assert "has only 2 lines" in await repo.fails("git_blame", path="a.txt", line=10**20)


async def test_commit_with_an_invalid_date(repo):
    git(repo.root, "config", "core.hooksPath", "/dev/null")
    tree, parent = git(repo.root, "write-tree"), git(repo.root, "rev-parse", "HEAD")
    who = "Ada <ada@example.org> 99999999999999999 +0000"
    text = f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nOdd\n"
    result = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
        cwd=repo.root,
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    git(repo.root, "update-ref", "HEAD", result.stdout.strip())
    for tool, arguments in (("git_log", {}), ("git_show", {}), ("git_blame", {"path": "a.txt"})):
        await repo.ok(tool, **arguments)


async def test_repository_in_a_subfolder(harness):
    harness.file("inner/x.txt", "1\n")
    git(harness.root / "inner", "init", "-q", "-b", "main")
    result = await harness.ok("git_status", repo="inner")
    assert result.data["data"]["files"] == [{"status": "??", "path": "inner/x.txt"}]


@pytest.mark.req("FS-1")
async def test_repository_around_the_workspace_shows_only_the_workspace(harness):
    outer = harness.root.parent
    harness.file("mine.txt", "mine\n")
    git(outer, "init", "-q", "-b", "main")
    git(outer, "add", "outside")
    assert (await harness.ok("git_status")).data["data"]["files"] == [{"status": "??", "path": "."}]
    git(outer, "add", "w")
    git(outer, "commit", "-q", "-m", "All")
    (outer / "outside" / "secret.txt").write_text("SECRET changed\n")
    harness.file("mine.txt", "mine, changed\n")
    for tool, arguments in (("git_show", {}), ("git_diff", {}), ("git_diff", {"from_ref": "HEAD"}), ("git_status", {})):
        output = (await harness.ok(tool, **arguments)).for_model
        assert "mine.txt" in output
        assert "SECRET" not in output
        assert "secret.txt" not in output


BAD = {
    "no such commit": ("git_show", {"sha": "nope"}, "there is no commit 'nope'"),
    "a file, not a commit": ("git_show", {"sha": "HEAD:a.txt"}, "there is no commit"),
    "an option": ("git_show", {"sha": "--output=x"}, "is not the name of a commit"),
    "an option in a range": ("git_diff", {"from_ref": "-O/etc/passwd"}, "is not the name of a commit"),
    "a path outside": ("git_diff", {"path": "../outside"}, "outside the workspace"),
    "a repository outside": ("git_status", {"repo": "../outside"}, "outside the workspace"),
    "no such file": ("git_blame", {"path": "gone.txt"}, "no such path"),
    "no path": ("git_blame", {}, "git_blame needs path"),
    "lines after the end": ("git_blame", {"path": "a.txt", "line": 99}, "has only 2 lines"),
    "a file for a folder": ("git_status", {"repo": "a.txt"}, "this is not a folder"),
    "an invalid number": ("git_log", {"skip": -1}, "skip must be at least 0, not -1"),
}


@pytest.mark.parametrize("case", BAD, ids=str)
async def test_invalid_calls(repo, case):
    tool, arguments, message = BAD[case]
    assert message in await repo.fails(tool, **arguments)
    assert not (repo.root / "x").exists()


async def test_without_a_repository(harness):
    assert "not in a git repository" in await harness.fails("git_status")


async def test_paths_are_names_not_patterns(repo):
    repo.file("a*.txt", "star\n")
    repo.file("ab.txt", "other\n")
    assert (await repo.ok("git_status", path="a*.txt")).data["data"]["files"] == [{"status": "??", "path": "a*.txt"}]


EVERY_TOOL = {
    "git_status": {},
    "git_diff": {},
    "git_log": {"with_files": True},
    "git_show": {},
    "git_blame": {"path": "a.txt"},
}
SETTINGS = {
    "core.fsmonitor": "touch {mark}",
    "core.pager": "touch {mark}",
    "core.hooksPath": "hooks",
    "core.sshCommand": "touch {mark}",
    "diff.external": "touch {mark}",
    "diff.x.command": "touch {mark}",
    "diff.x.textconv": "touch {mark};:",
    "filter.x.clean": "touch {mark}; cat",
    "filter.x.smudge": "touch {mark}; cat",
    "filter.x.process": "touch {mark}",
    "filter.a=b.clean": "touch {mark}; cat",
    "filter.x.required": "true",
    "log.showSignature": "true",
    "gpg.program": "touch-mark",
    "alias.status": "!touch {mark}",
    "pager.log": "touch {mark}",
    "core.editor": "touch {mark}",
}


@pytest.mark.req("PM-8", "TL-2")
@pytest.mark.parametrize("tool", EVERY_TOOL)
async def test_repository_config_cannot_run_programs(repo, tool, tmp_path):
    marker = tmp_path / "mark"
    repo.file(".gitattributes", "a.txt filter=x diff=x\n*.txt filter=x diff=x\nsub/* filter=a=b\n")
    hook = repo.file("hooks/post-index-change", f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    for name, value in SETTINGS.items():
        git(repo.root, "config", name, value.format(mark=marker))
    repo.file("a.txt", "changed\n")
    repo.file("sub/b.txt", "changed\n")
    for path in ("a.txt", "sub/b.txt"):
        os.utime(repo.root / path, (1, 1))
    await repo.ok(tool, **EVERY_TOOL[tool])
    assert not marker.exists()


@pytest.mark.req("PM-8", "TL-2")
@pytest.mark.parametrize("tool", ["git_status", "git_diff"])
async def test_filter_with_a_non_utf8_name_is_not_run(repo, tool, tmp_path):
    marker = tmp_path / "mark"
    repo.file(".gitattributes", b"* filter=\xff\n")
    with (repo.root / ".git/config").open("ab") as settings:
        settings.write(b'[filter "\xff"]\n\tclean = touch %b; cat\n' % os.fsencode(marker))
    repo.file("a.txt", "2\n1\n")
    assert "a.txt" in (await repo.ok(tool)).for_model
    assert not marker.exists()


@pytest.mark.req("PM-8", "TL-2")
async def test_repository_with_too_many_filters_is_rejected(repo, monkeypatch):
    from ostler.tools import git_repo

    monkeypatch.setattr(git_repo, "MAX_OUTPUT_BYTES", 1024)
    with (repo.root / ".git/config").open("a") as settings:
        settings.writelines(f'[filter "name-{number}"]\n\tclean = cat\n' for number in range(100))
    assert "too many" in await repo.fails("git_diff")


@pytest.mark.req("PM-8", "TL-2")
@pytest.mark.parametrize("tool", ["git_status", "git_diff", "git_show", "git_log"])
async def test_submodule_config_cannot_run_programs(repo, tool, tmp_path):
    marker, inner = tmp_path / "mark", repo.root / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    repo.file("inner/a.txt", "1\n")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "One")
    repo.file(".gitmodules", '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n')
    git(repo.root, "add", ".")
    git(repo.root, "commit", "-q", "-m", "With it")
    repo.file("inner/a.txt", "2\n")
    git(inner, "commit", "-q", "-am", "Two")
    git(repo.root, "commit", "-q", "-am", "Newer")
    repo.file("inner/a.txt", "3\n")
    git(inner, "commit", "-q", "-am", "Three")
    repo.file("inner/a.txt", "4\n")
    git(repo.root, "config", "diff.submodule", "diff")
    for name in ("diff.external", "core.fsmonitor"):
        git(inner, "config", name, f"touch {marker}")
    await repo.ok(tool)
    assert not marker.exists()


async def test_plain_git_would_run_the_configured_programs(repo, tmp_path):
    """Prove that the tests above can fail: plain git creates the marker."""
    marker = tmp_path / "mark"
    repo.file(".gitattributes", "*.txt filter=x\n")
    git(repo.root, "config", "filter.x.clean", f"touch {marker}; cat")
    repo.file("a.txt", "2\n1\n")
    git(repo.root, "status")
    assert marker.exists()


@pytest.mark.req("FS-2")
async def test_repository_with_a_work_tree_elsewhere_is_rejected(repo):
    git(repo.root, "config", "core.worktree", str(repo.root.parent / "outside"))
    output = await repo.fails("git_diff")
    assert "elsewhere" in output
    assert "SECRET" not in output


def _redirect_by_file(root, victim):
    (root / ".git").write_text(f"gitdir: {victim}/.git\n")


def _redirect_by_link(root, victim):
    (root / ".git").symlink_to(victim / ".git")


def _redirect_by_commondir(root, victim):
    git(root, "init", "-q", "-b", "main")
    (root / ".git/commondir").write_text(f"{victim}/.git\n")


def _redirect_by_links(root, victim):
    git(root, "init", "-q", "-b", "main")
    for name in ("objects", "refs"):
        (root / ".git" / name).rename(root / f"old-{name}")
        (root / ".git" / name).symlink_to(victim / ".git" / name)


@pytest.mark.req("FS-2", "TL-2")
@pytest.mark.parametrize("redirect", [_redirect_by_file, _redirect_by_link, _redirect_by_commondir, _redirect_by_links])
async def test_link_to_a_repository_elsewhere_is_rejected(harness, tmp_path, monkeypatch, redirect):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    victim = tmp_path / "victim"
    victim.mkdir()
    git(victim, "init", "-q", "-b", "main")
    (victim / "a.txt").write_text("SECRET")
    git(victim, "add", ".")
    git(victim, "commit", "-q", "-m", "SECRET")
    redirect(harness.root, victim)
    output = await harness.fails("git_log")
    assert "elsewhere" in output
    assert "SECRET" not in output


@pytest.mark.req("TL-2")
async def test_linked_work_trees_and_submodules_are_accepted(harness, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q", "-b", "main")
    (main / "a.txt").write_text("one\n")
    git(main, "add", ".")
    git(main, "commit", "-q", "-m", "Begin")
    git(main, "worktree", "add", "-q", "-b", "beside", str(harness.root / "tree"))
    assert "Begin" in (await harness.ok("git_log", repo="tree")).for_model
    inner = harness.root / "in"
    inner.mkdir()
    (main / ".git/modules").mkdir()
    git(inner, "init", "-q", "-b", "main", "--separate-git-dir", str(main / ".git/modules/in"))
    git(inner, "pull", "-q", str(main), "main")
    git(inner, "config", "core.worktree", str(inner))
    assert "Begin" in (await harness.ok("git_log", repo="in")).for_model


async def test_git_environment_variables_are_ignored(repo, monkeypatch, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {tmp_path / 'mark'}")
    repo.file("a.txt", "changed\n")
    assert (await repo.ok("git_status")).for_model.startswith("main: 1 changed")
    assert "+changed" in (await repo.ok("git_diff")).for_model
    assert not (tmp_path / "mark").exists()


@pytest.mark.req("PM-8", "TL-2")
async def test_bare_repository_in_the_workspace_is_rejected(repo):
    git(repo.root, "clone", "-q", "--bare", ".", "sub/bare")
    assert "bare repositories" in await repo.fails("git_log", repo="sub/bare")


@pytest.mark.req("PM-8", "TL-2")
async def test_git_program_in_the_workspace_is_not_run(repo, monkeypatch):
    repo.file("bin/git", "#!/bin/sh\necho evil\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{repo.root}/bin:{os.environ['PATH']}")
    assert (await repo.ok("git_log")).for_model.count("evil") == 0


@pytest.mark.req("TL-2")
async def test_file_names_are_escaped_like_in_other_tools(repo):
    repo.file("d\ne/two\nlines.txt", "a\n")
    git(repo.root, "add", ".")
    git(repo.root, "commit", "-q", "-m", "Odd")
    repo.file("d\ne/two\nlines.txt", "b\n")
    shown = r"d\ne/two\nlines.txt"
    files = [{"status": ".M", "path": shown}]
    assert (await repo.ok("git_status")).data["data"]["files"] == files
    assert (await repo.ok("git_status", path=shown)).data["data"]["files"] == files
    assert (await repo.ok("git_status", repo=r"d\ne")).data["data"]["files"] == files
    assert (await repo.ok("git_diff", path=shown, name_only=True)).data["data"]["files"][0]["path"] == shown
    assert "Odd" in (await repo.ok("git_log", path=shown)).for_model
    for arguments in ({"path": shown}, {"repo": r"d\ne"}):
        (commit,) = (await repo.ok("git_log", with_files=True, **arguments)).data["data"]["commits"]
        assert commit["files"] == [{"raw_status": "A", "path": shown}]
    assert "1\tb" in (await repo.ok("git_blame", path=shown)).for_model


@pytest.mark.req("TL-2")
async def test_legacy_encodings_are_decoded(repo):
    repo.file("a.txt", "café\nthé\n".encode("cp1252"))
    repo.file("sub/b.txt", "Привет, мир\n".encode("cp1251"))
    repo.file("ü.txt", "größer\n")
    git(repo.root, "add", ".")
    shown = ("+café", "+thé", "+Привет, мир", "+größer", "b/ü.txt")
    diff = (await repo.ok("git_diff", staged=True)).for_model
    assert all(part in diff for part in shown), diff
    git(repo.root, "commit", "-q", "-m", "Größer")
    output = (await repo.ok("git_show")).for_model
    assert all(part in output for part in (*shown, "Größer")), output
    assert "2\tthé" in (await repo.ok("git_blame", path="a.txt")).for_model


@pytest.mark.req("TL-2")
async def test_non_utf8_file_name_is_escaped(repo):
    (repo.root / os.fsdecode(b"caf\xe9.txt")).write_text("a\n")
    shown = r"caf\xe9.txt"
    assert (await repo.ok("git_status")).data["data"]["files"] == [{"status": "??", "path": shown}]
    git(repo.root, "add", ".")
    git(repo.root, "commit", "-q", "-m", "Odd")
    (repo.root / os.fsdecode(b"caf\xe9.txt")).write_text("b\n")
    assert (await repo.ok("git_diff", name_only=True)).data["data"]["files"][0]["path"] == shown
