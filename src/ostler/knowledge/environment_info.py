"""The active sandbox and the git branch, found without starting a process."""

from pathlib import Path

MAX_BRANCH_LENGTH = 60


def sandbox_name(setting: str) -> str:
    """Return the name of the sandbox that commands run in."""
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
    """Return the git branch of a folder, or a short commit hash; empty outside a repository."""
    for candidate in (folder, *folder.parents):
        head = _read_head(candidate / ".git" / "HEAD")
        if not head and (pointer := _read_head(candidate / ".git")).startswith("gitdir: "):
            head = _read_head(candidate / pointer.removeprefix("gitdir: ") / "HEAD")
        if head:
            branch = head.removeprefix("ref: refs/heads/")
            return branch[:MAX_BRANCH_LENGTH] if branch != head else head[:8]
    return ""


def _read_head(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(4096).strip()
    except OSError:
        return ""
