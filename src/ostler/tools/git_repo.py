"""Runs git read-only: no hooks, no pagers, no prompts, only repositories of the workspace."""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from ostler.core.commands import CommandResult
from ostler.core.display import Display, DisplayText
from ostler.core.errors import PathError, ToolError
from ostler.core.permission import Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.git_ownership import belongs_to_work_tree, is_plain_repository, points_elsewhere
from ostler.tools.legacy_encodings import decode_legacy
from ostler.tools.path_needs import read_needs
from ostler.workspace.paths import escape_path, unescape_path

TIMEOUT_SECONDS = 30.0
MAX_OUTPUT_BYTES = 4 * 1024 * 1024
_PIECE_BYTES = 65_536
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
# A submodule has its own config, and git would read it without the options above.
SAFE_DIFF_OPTIONS = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty")


class RepoParams(msgspec.Struct):
    """Parameters of all git tools. `path` limits the output; `repo` is a folder in the repository."""

    path: str = ""
    repo: str = "."


P = TypeVar("P", bound=RepoParams)


class GitTool(BaseTool[P]):
    """Base class of the git tools, which are read-only."""

    unlisted: ClassVar[tuple[str, ...]] = ("repo",)

    async def permission(self, params: P, workspace: Workspace) -> Permission:
        place, needs = read_needs(self.name, params.path or params.repo, workspace)
        return Permission(f"{self.name.replace('_', ' ')} {place.display_path}", needs)

    async def run(self, params: P, context: ToolContext) -> ToolResult:
        return await self.run_in_repo(params, await open_repo(context.workspace, params.repo))

    async def run_in_repo(self, params: P, repo: "Repo") -> ToolResult:
        raise NotImplementedError

    def make_result(self, summary: str, text: str, data: Mapping[str, Any]) -> ToolResult:
        """Return a result with text for the model, a summary for the user and data for programs."""
        result_data = {"tool": self.name, "ok": True, "summary": summary, "data": dict(data)}
        blocks = (DisplayText(text, "output"),) if text else ()
        return ToolResult("", "ok", text or summary, Display(summary, blocks), result_data)


class Repo:
    """A git repository, used from a folder of the workspace."""

    def __init__(self, workspace: Workspace, folder: str, env: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._folder = folder
        self._env = dict(env)
        self.top = folder

    async def prepare(self) -> None:
        """Find the top folder, and disable the filter programs of the repository's config."""
        self.top = await self._run_line("rev-parse", "--show-toplevel")
        if os.path.commonpath([self.top, self._folder]) != self.top or not await self._owns_its_git_dir():
            raise ToolError(
                "the config of this repository places its files elsewhere; it is not supported", code="no_repository"
            )
        arguments = ("config", "--show-scope", "--name-only", "-z", "--get-regexp", "^filter\\.")
        result = await self.run_raw(*arguments, ok_codes=(0, 1))
        if result.truncated:
            raise ToolError(
                "the config of this repository has too many filter programs; it is not supported", code="git_failed"
            )
        fields = result.stdout.split("\0")
        names = {key for scope, key in zip(fields[::2], fields[1::2], strict=False) if scope in ("local", "worktree")}
        self._env |= _config_env({key: "false" if key.endswith(".required") else "" for key in names})

    async def run(self, *arguments: str, ok_codes: Sequence[int] = (0,)) -> CommandResult:
        """Run git and return its output as readable text. Raises `ToolError` with git's message if it fails."""
        result = await self.run_raw(*arguments, ok_codes=ok_codes)
        return msgspec.structs.replace(result, stdout=decode_legacy(result.stdout))

    async def run_raw(self, *arguments: str, ok_codes: Sequence[int] = (0,)) -> CommandResult:
        """Run git and keep all bytes of its output (as surrogates), for file names."""
        from ostler.processes.helper_programs import run_program

        result = await run_program(
            _command(arguments),
            cwd=self._folder,
            timeout=TIMEOUT_SECONDS,
            env=self._env,
            cap=MAX_OUTPUT_BYTES,
            errors="surrogateescape",
        )
        if result.timed_out:
            raise ToolError(f"git took more than {TIMEOUT_SECONDS:g} s; narrow it with path", code="timeout")
        if result.exit_code not in ok_codes:
            raise _git_error(decode_legacy(result.stderr))
        return result

    async def entries(self, *arguments: str) -> AsyncGenerator[str, None]:
        """Yield the entries that git ends with a zero byte, as they arrive; leaving the loop stops git.

        Raises `ToolError` with git's message if it fails.
        """
        from ostler.processes.helper_programs import open_program

        errors = bytearray()
        program = await open_program(_command(arguments), cwd=self._folder, env=self._env, on_stderr=errors.extend)
        try:
            rest = b""
            while data := await program.stdout.read(_PIECE_BYTES):
                *entries, rest = (rest + data).split(b"\0")
                for entry in entries:
                    yield entry.decode("utf-8", "surrogateescape")
            if await program.wait():
                raise _git_error(decode_legacy(errors.decode("utf-8", "surrogateescape")))
        finally:
            await program.stop(grace=0)

    async def _owns_its_git_dir(self) -> bool:
        """Return whether the git directory belongs to these files, not to a repository elsewhere."""
        if is_plain_repository(self.top):
            return True
        git_dir = await self._run_line("rev-parse", "--absolute-git-dir")
        common = os.path.join(self._folder, await self._run_line("rev-parse", "--git-common-dir"))
        if belongs_to_work_tree(git_dir, common, self.top, self._workspace.root):
            return True
        # The git directory of a submodule names its work tree in `core.worktree`; `top` comes from there.
        is_complete = os.path.realpath(git_dir) == os.path.realpath(common) and not points_elsewhere(git_dir)
        return is_complete and bool(
            await self._run_line("config", "--local", "--get", "core.worktree", ok_codes=(0, 1))
        )

    async def _run_line(self, *arguments: str, ok_codes: Sequence[int] = (0,)) -> str:
        return (await self.run_raw(*arguments, ok_codes=ok_codes)).stdout.removesuffix("\n")

    async def resolve_commit(self, ref: str) -> str:
        """Return the full hash of a commit, so that a name is never passed to git as an option. Raises `ToolError`."""
        if not ref or ref.startswith("-") or not ref.isprintable():
            raise ToolError(f"{ref!r} is not the name of a commit", code="bad_ref", hint="give a hash or a branch")
        result = await self.run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", ok_codes=(0, 1, 128)
        )
        if result.exit_code and ref == "HEAD":
            raise _no_commits_error()
        if result.exit_code:
            raise ToolError(f"there is no commit {ref!r} here", code="bad_ref", hint="git_log lists the commits")
        return result.stdout.strip()

    def path_arguments(self, path: str) -> list[str]:
        """Return the arguments that limit git to a path, or to the workspace."""
        if not path:  # a path would omit merges and empty commits from a log, so give none for the whole repository
            return ["--"] if os.path.realpath(self._folder) == os.path.realpath(self.top) else ["--", "."]
        place = self._workspace.resolve(path)
        if not place.in_workspace:
            raise PathError("outside_workspace", place.display_path, "it is outside the workspace")
        return ["--", os.path.relpath(unescape_path(place.absolute, self._workspace.root), self._folder)]

    def is_folder(self, path: str) -> bool:
        place = self._workspace.resolve(path)
        return place.in_workspace and os.path.isdir(unescape_path(place.absolute, self._workspace.root))

    def path_from_top(self, path: str) -> str:
        """Convert a path relative to the repository's top to one relative to the workspace."""
        if self.top == self._workspace.root:  # fast, because there may be many paths
            return escape_path(path.rstrip("/"))
        return escape_path(os.path.relpath(os.path.join(self.top, path), self._workspace.root))

    def path_from_folder(self, path: str) -> str:
        """Convert a path relative to the folder to one relative to the workspace."""
        return escape_path(os.path.relpath(os.path.join(self._folder, path), self._workspace.root))


async def open_repo(workspace: Workspace, folder: str) -> Repo:
    """Open the repository that contains a folder of the workspace. Raises `PathError` or `ToolError`."""
    place, info = workspace.resolve(folder), await workspace.stat(folder)
    if not place.in_workspace:
        raise PathError("outside_workspace", place.display_path, "it is outside the workspace")
    if info.kind != "directory":
        raise PathError("not_a_directory", place.display_path, "this is not a folder", hint="give a folder as repo")
    repo = Repo(workspace, unescape_path(place.absolute, workspace.root), _environment(workspace.root))
    await repo.prepare()
    return repo


def _command(arguments: Sequence[str]) -> list[str]:
    settings = [word for setting in _GIT_CONFIG for word in ("-c", setting)]
    return ["git", "--no-pager", "--literal-pathspecs", *settings, *arguments]


def truncate(text: str, max_characters: int) -> tuple[str, bool]:
    """Return the text, without its middle if it is too long, and whether it was truncated."""
    from ostler.text.truncate import truncate_middle

    result = truncate_middle(text, max_characters)
    return result.text, result.truncated


def _environment(root: str) -> dict[str, str]:
    from ostler.processes.command_environment import command_environment, path_without

    variables = command_environment(os.environ).items()
    env = {name: value for name, value in variables if not name.startswith("GIT_") or name == "GIT_CONFIG_GLOBAL"}
    return {**env, **_GIT_ENV, "PATH": path_without(env.get("PATH", os.defpath), [root])}


def _config_env(settings: Mapping[str, str]) -> dict[str, str]:
    """Return config settings as variables, which allow keys that a `-c` flag would misparse."""
    pairs = {"GIT_CONFIG_COUNT": str(len(settings))}
    for index, (key, value) in enumerate(sorted(settings.items())):
        pairs |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return pairs


def _git_error(stderr: str) -> ToolError:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    message = next((line for line in lines if line.startswith("fatal:")), lines[-1] if lines else "git failed")
    if "not a git repository" in message:
        return ToolError("the workspace is not in a git repository", code="no_repository")
    if "bare repository" in message:
        return ToolError("bare repositories are not supported", code="no_repository")
    if "dubious ownership" in message:
        hint = "it belongs to another user; the user can allow it with git config --global safe.directory"
        return ToolError("git does not trust this repository", code="no_repository", hint=hint)
    if "no such ref: HEAD" in message:
        return _no_commits_error()
    if "no such path" in message:
        return ToolError(
            message.removeprefix("fatal:").strip(), code="not_found", hint="git_status lists untracked files"
        )
    return ToolError(f"git: {message.removeprefix('fatal:').strip()[:300]}", code="git_failed")


def _no_commits_error() -> ToolError:
    return ToolError("the repository has no commits yet", code="no_commits", hint="git_status lists the files")
