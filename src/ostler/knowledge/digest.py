"""What the model is told of where it works: nothing that changes with the clock, and no program is run for it."""

import os

from ostler.knowledge.folder import Folder
from ostler.knowledge.parts import Part
from ostler.text.regex import regex

_BRANCH = regex(r"ref: refs/heads/([\w./+@#=-]{1,100})\n?")
_WORKTREE = regex(r"gitdir: (/[^\n\0]{1,1000}/\.git/(?:worktrees|modules)/[^\n\0]{1,200})\n?")
_SHORT = 4096


def environment_part(work: Folder) -> Part:
    """Folder, system and git branch."""
    uname = os.uname()
    lines = [f"Workspace: {work.root}", f"System: {uname.sysname} {uname.machine}"]
    git = git_branch(work)
    if git:
        lines.append(f"Git branch when the session began: {git}")
    return Part("environment", "this machine", "\n".join(lines))


def git_branch(work: Folder) -> str:
    """The branch that is checked out, as git's own file names it; nothing when there is none or it looks odd."""
    if work.kind(".git") == "file":
        pointer = work.read(".git", _SHORT)
        linked = _WORKTREE.fullmatch(pointer.text) if pointer else None
        head = Folder(linked[1], "user", []).read("HEAD", _SHORT) if linked else None
    else:
        head = work.read(".git/HEAD", _SHORT)
    found = _BRANCH.fullmatch(head.text) if head else None
    return found[1] if found else ""
