"""What the model is told of where it works: nothing that changes with the clock, and no program is run for it."""

import os

from ostler.knowledge.prompt_sections import PromptSection
from ostler.knowledge.source_folder import SourceFolder
from ostler.text.lazy_regex import lazy_regex

_BRANCH = lazy_regex(r"ref: refs/heads/([\w./+@#=-]{1,100})\n?")
_WORKTREE = lazy_regex(r"gitdir: (/[^\n\0]{1,1000}/\.git/(?:worktrees|modules)/[^\n\0]{1,200})\n?")
_MAX_BYTES = 4096


def make_environment_section(folder: SourceFolder) -> PromptSection:
    """Folder, system and git branch."""
    uname = os.uname()
    lines = [f"Workspace: {folder.root}", f"System: {uname.sysname} {uname.machine}"]
    git = git_branch(folder)
    if git:
        lines.append(f"Git branch when the session began: {git}")
    return PromptSection("environment", "this machine", "\n".join(lines))


def git_branch(folder: SourceFolder) -> str:
    """The branch that is checked out, as git's own file names it; nothing when there is none or it looks odd."""
    if folder.kind(".git") == "file":
        pointer = folder.read(".git", _MAX_BYTES)
        linked = _WORKTREE.fullmatch(pointer.text) if pointer else None
        head = SourceFolder(linked[1], "user", []).read("HEAD", _MAX_BYTES) if linked else None
    else:
        head = folder.read(".git/HEAD", _MAX_BYTES)
    found = _BRANCH.fullmatch(head.text) if head else None
    return found[1] if found else ""
