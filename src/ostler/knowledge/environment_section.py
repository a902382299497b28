"""Builds the prompt section about the workspace, system and git branch; runs no program."""

import os

from ostler.knowledge.prompt_sections import PromptSection
from ostler.knowledge.source_folder import SourceFolder
from ostler.text.lazy_regex import lazy_regex

_BRANCH = lazy_regex(r"ref: refs/heads/([\w./+@#=-]{1,100})\n?")
_WORKTREE = lazy_regex(r"gitdir: (/[^\n\0]{1,1000}/\.git/(?:worktrees|modules)/[^\n\0]{1,200})\n?")
_MAX_BYTES = 4096


def make_environment_section(folder: SourceFolder) -> PromptSection:
    """Return the section; it has no time or date, so that the prompt stays cacheable."""
    uname = os.uname()
    lines = [f"Workspace: {folder.root}", f"System: {uname.sysname} {uname.machine}"]
    branch = git_branch(folder)
    if branch:
        lines.append(f"Git branch at session start: {branch}")
    return PromptSection("environment", "this machine", "\n".join(lines))


def git_branch(folder: SourceFolder) -> str:
    """Return the checked-out branch from git's HEAD file, or an empty string if there is none or it is unusual."""
    if folder.kind(".git") == "file":
        pointer = folder.read(".git", _MAX_BYTES)
        worktree = _WORKTREE.fullmatch(pointer.text) if pointer else None
        head = SourceFolder(worktree[1], "user", []).read("HEAD", _MAX_BYTES) if worktree else None
    else:
        head = folder.read(".git/HEAD", _MAX_BYTES)
    branch = _BRANCH.fullmatch(head.text) if head else None
    return branch[1] if branch else ""
