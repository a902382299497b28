"""git, run so that nothing a repository says makes it run a program, ask, wait, or look outside the workspace."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from ostler.core.display import Display, DisplayText
from ostler.core.errors import PathError, ToolError
from ostler.core.permission import Permission
from ostler.core.protocols import CommandResult, ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.git_ownership import belongs_to_work_tree, is_plain_repository, points_elsewhere
from ostler.tools.legacy_encodings import decode_legacy
from ostler.tools.path_needs import read_needs
from ostler.workspace.paths import escape_path, unescape_path

TIMEOUT_SECONDS = 30.0
MAX_OUTPUT_BYTES = 4 * 1024 * 1024
_GIT_CONFIG = (
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.quotePath=false",
    "protocol.allow=never",
    "log.showSignature=false",
    "gpg.program=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=dirty",
    "status.submoduleSummary=false",
    "blame.ignoreRevsFile=",
    "color.ui=false",
)
_GIT_ENV = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C.UTF-8",
}
# A submodule has settings of its own, and git would look into it without any of ours.
SAFE_DIFF_OPTIONS = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty")


class RepoParams(msgspec.Struct):
    """What every git tool takes: a path to narrow it to, and where the repository is."""

    path: str = ""
    repo: str = "."


P = TypeVar("P", bound=RepoParams)


class GitTool(BaseTool[P]):
    """A read-only look at a repository."""

    kind = "read"
    effects = False
    unlisted: ClassVar[tuple[str, ...]] = ("repo",)

    async def permission(self, params: P, workspace: Workspace) -> Permission:
        place, needs = read_needs(self.name, params.path or params.repo, workspace)
        return Permission(f"{self.name.replace('_', ' ')} {place.display_path}", needs)

    async def run(self, params: P, context: ToolContext) -> ToolResult:
        return await self.run_in_repo(params, await open_repo(context.workspace, params.repo))

    async def run_in_repo(self, params: P, repo: "Repo") -> ToolResult:
        raise NotImplementedError

    def make_result(self, summary: str, text: str, data: Mapping[str, Any]) -> ToolResult:
        """The result: text for the model, a line for the person, the seeds' shape for machines."""
        told = {"tool": self.name, "ok": True, "summary": summary, "data": dict(data)}
        blocks = (DisplayText(text, "output"),) if text else ()
        return ToolResult("", "ok", text or summary, Display(summary, blocks), told)


class Repo:
    """A repository as it is seen from a folder of the workspace."""

    def __init__(self, workspace: Workspace, folder: str, env: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._folder = folder
        self._env = dict(env)
        self.top = folder

    async def prepare(self) -> None:
        """Find its top, and take the programs away that its own settings name."""
        self.top = await self._run_line("rev-parse", "--show-toplevel")
        if os.path.commonpath([self.top, self._folder]) != self.top or not await self._owns_its_git_dir():
            raise ToolError(
                "the settings of this repository place its files elsewhere; it is not looked at", code="no_repository"
            )
        asked = ("config", "--show-scope", "--name-only", "-z", "--get-regexp", "^filter\\.")
        own = await self.run_raw(*asked, ok_codes=(0, 1))
        if own.truncated:
            raise ToolError(
                "the settings of this repository name too many programs; it is not looked at", code="git_failed"
            )
        words = own.stdout.split("\0")
        names = {key for scope, key in zip(words[::2], words[1::2], strict=False) if scope in ("local", "worktree")}
        self._env |= _config_env({key: "false" if key.endswith(".required") else "" for key in names})

    async def run(self, *arguments: str, ok_codes: Sequence[int] = (0,)) -> CommandResult:
        """git with these arguments, its output for reading; ToolFailure with what it said when it did not end well."""
        ran = await self.run_raw(*arguments, ok_codes=ok_codes)
        return msgspec.structs.replace(ran, stdout=decode_legacy(ran.stdout))

    async def run_raw(self, *arguments: str, ok_codes: Sequence[int] = (0,)) -> CommandResult:
        """The same for an output that is names, which keeps their every byte."""
        from ostler.processes.helper_programs import run_program

        settings = [word for setting in _GIT_CONFIG for word in ("-c", setting)]
        argv = ["git", "--no-pager", "--literal-pathspecs", *settings, *arguments]
        ran = await run_program(
            argv,
            cwd=self._folder,
            timeout=TIMEOUT_SECONDS,
            env=self._env,
            cap=MAX_OUTPUT_BYTES,
            errors="surrogateescape",
        )
        if ran.timed_out:
            raise ToolError(f"git took more than {TIMEOUT_SECONDS:g} s; narrow it with path", code="timeout")
        if ran.exit_code not in ok_codes:
            raise _git_error(decode_legacy(ran.stderr))
        return ran

    async def _owns_its_git_dir(self) -> bool:
        """Whether what git keeps of these files is theirs, not that of a repository somewhere else."""
        if is_plain_repository(self.top):
            return True
        own = await self._run_line("rev-parse", "--absolute-git-dir")
        common = os.path.join(self._folder, await self._run_line("rev-parse", "--git-common-dir"))
        if belongs_to_work_tree(own, common, self.top, self._workspace.root):
            return True
        # The folder of a submodule says where its files are; `top` is what it said.
        is_one = os.path.realpath(own) == os.path.realpath(common) and not points_elsewhere(own)
        return is_one and bool(await self._run_line("config", "--local", "--get", "core.worktree", ok_codes=(0, 1)))

    async def _run_line(self, *arguments: str, ok_codes: Sequence[int] = (0,)) -> str:
        return (await self.run_raw(*arguments, ok_codes=ok_codes)).stdout.removesuffix("\n")

    async def resolve_commit(self, ref: str) -> str:
        """The full hash of a commit named in any of git's ways, so that a name is never taken for an option."""
        if not ref or ref.startswith("-") or not ref.isprintable():
            raise ToolError(f"{ref!r} is not the name of a commit", code="bad_ref", hint="give a hash or a branch")
        said = await self.run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", ok_codes=(0, 1, 128)
        )
        if said.exit_code and ref == "HEAD":
            raise _no_commits_error()
        if said.exit_code:
            raise ToolError(f"there is no commit {ref!r} here", code="bad_ref", hint="git_log shows those there are")
        return said.stdout.strip()

    def path_arguments(self, path: str) -> list[str]:
        """The arguments that keep git to a path, at most to the workspace."""
        if not path:  # all of a repository is no path to git, which would leave merges and empty commits out of a log
            return ["--"] if os.path.realpath(self._folder) == os.path.realpath(self.top) else ["--", "."]
        place = self._workspace.resolve(path)
        if not place.in_workspace:
            raise PathError("outside_workspace", place.display_path, "it leads outside the workspace")
        return ["--", os.path.relpath(unescape_path(place.absolute, self._workspace.root), self._folder)]

    def is_folder(self, path: str) -> bool:
        place = self._workspace.resolve(path)
        return place.in_workspace and os.path.isdir(unescape_path(place.absolute, self._workspace.root))

    def path_from_top(self, path: str) -> str:
        """How a path from the repository's top reads in the workspace."""
        return escape_path(os.path.relpath(os.path.join(self.top, path), self._workspace.root))

    def path_from_folder(self, path: str) -> str:
        """How a path from the folder reads in the workspace."""
        return escape_path(os.path.relpath(os.path.join(self._folder, path), self._workspace.root))


async def open_repo(workspace: Workspace, folder: str) -> Repo:
    """The repository a folder of the workspace is in."""
    place, found = workspace.resolve(folder), await workspace.stat(folder)
    if not place.in_workspace:
        raise PathError("outside_workspace", place.display_path, "it leads outside the workspace")
    if found.kind != "directory":
        raise PathError("not_a_directory", place.display_path, "this is no folder", hint="give a folder as repo")
    repo = Repo(workspace, unescape_path(place.absolute, workspace.root), _environment(workspace.root))
    await repo.prepare()
    return repo


def truncate(text: str, max_characters: int) -> tuple[str, bool]:
    """A long output without its middle, and whether something was left out."""
    from ostler.text.truncate import truncate_middle

    made = truncate_middle(text, max_characters)
    return made.text, made.truncated


def _environment(root: str) -> dict[str, str]:
    from ostler.processes.command_environment import command_environment, path_without

    ours = command_environment(os.environ).items()
    kept = {name: value for name, value in ours if not name.startswith("GIT_") or name == "GIT_CONFIG_GLOBAL"}
    return {**kept, **_GIT_ENV, "PATH": path_without(kept.get("PATH", os.defpath), [root])}


def _config_env(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as variables, which take names that a `-c` flag would misread."""
    pairs = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(sorted(settings.items())):
        pairs |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return pairs


def _git_error(stderr: str) -> ToolError:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith("fatal:")), lines[-1] if lines else "git failed")
    if "not a git repository" in told:
        return ToolError("the workspace is not in a git repository", code="no_repository")
    if "bare repository" in told:
        return ToolError("this is a repository without files, which is not looked at", code="no_repository")
    if "dubious ownership" in told:
        hint = "it belongs to somebody else; the person can allow it with git config --global safe.directory"
        return ToolError("git does not trust this repository", code="no_repository", hint=hint)
    if "no such ref: HEAD" in told:
        return _no_commits_error()
    if "no such path" in told:
        return ToolError(
            told.removeprefix("fatal:").strip(), code="not_found", hint="git_status shows what is untracked"
        )
    return ToolError(f"git: {told.removeprefix('fatal:').strip()[:300]}", code="git_failed")


def _no_commits_error() -> ToolError:
    return ToolError("the repository has no commits yet", code="no_commits", hint="git_status shows what is there")
