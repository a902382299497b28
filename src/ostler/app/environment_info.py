"""What stands around a session, told without starting anything: the sandbox and the git branch."""

from pathlib import Path

MAX_BRANCH_LENGTH = 60


def sandbox_name(setting: str) -> str:
    """What holds the commands here."""
    from ostler.processes import bubblewrap, landlock

    if setting == "off":
        return "off"
    return (
        "bubblewrap"
        if not bubblewrap.unavailable_reason()
        else "landlock"
        if not landlock.unavailable_reason()
        else "none"
    )


def git_branch(folder: Path) -> str:
    """The git branch of a folder, or the beginning of a commit's name; also in a worktree."""
    for place in (folder, *folder.parents):
        head = _read_head(place / ".git" / "HEAD")
        if not head and (pointer := _read_head(place / ".git")).startswith("gitdir: "):
            head = _read_head(place / pointer.removeprefix("gitdir: ") / "HEAD")
        if head:
            named = head.removeprefix("ref: refs/heads/")
            return named[:MAX_BRANCH_LENGTH] if named != head else head[:8]
    return ""


def _read_head(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(4096).strip()
    except OSError:
        return ""
