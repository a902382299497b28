"""git, run so that nothing a repository says makes it run a program, ask, wait, or look outside the workspace."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from ostler.tools.declared import Declared
from ostler.tools.foreign import readable
from ostler.tools.git_home import belongs, is_plain, leads_away
from ostler.tools.places import reading
from ostler.vocabulary.display import Display, Note
from ostler.vocabulary.errors import PathRefused, ToolFailure
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground, Ran, ToolContext
from ostler.vocabulary.tools import ToolResult
from ostler.workspace.paths import escaped, meant

SECONDS = 30.0
MOST_BYTES = 4 * 1024 * 1024
_SETTINGS = (
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
_VARIABLES = {
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
NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty")


class RepoParams(msgspec.Struct):
    """What every git tool takes: a path to narrow it to, and where the repository is."""

    path: str = ""
    repo: str = "."


P = TypeVar("P", bound=RepoParams)


class GitTool(Declared[P]):
    """A read-only look at a repository."""

    kind = "read"
    effects = False
    unlisted: ClassVar[tuple[str, ...]] = ("repo",)

    async def permission(self, params: P, ground: Ground) -> Permission:
        place, needs = reading(self.name, params.path or params.repo, ground)
        return Permission(f"{self.name.replace('_', ' ')} {place.shown}", needs)

    async def run(self, params: P, context: ToolContext) -> ToolResult:
        return await self.look(params, await open_repo(context.ground, params.repo))

    async def look(self, params: P, repo: "Repo") -> ToolResult:
        raise NotImplementedError

    def answer(self, summary: str, text: str, data: Mapping[str, Any]) -> ToolResult:
        """The result: text for the model, a line for the person, the seeds' shape for machines."""
        told = {"tool": self.name, "ok": True, "summary": summary, "data": dict(data)}
        blocks = (Note(text, "output"),) if text else ()
        return ToolResult("", "ok", text or summary, Display(summary, blocks), told)


class Repo:
    """A repository as it is seen from a folder of the workspace."""

    def __init__(self, ground: Ground, folder: str, env: Mapping[str, str]) -> None:
        self._ground = ground
        self._folder = folder
        self._env = dict(env)
        self.top = folder

    async def prepare(self) -> None:
        """Find its top, and take the programs away that its own settings name."""
        self.top = await self._line("rev-parse", "--show-toplevel")
        if os.path.commonpath([self.top, self._folder]) != self.top or not await self._is_its_own():
            raise ToolFailure(
                "the settings of this repository place its files elsewhere; it is not looked at", code="no_repository"
            )
        asked = ("config", "--show-scope", "--name-only", "-z", "--get-regexp", "^filter\\.")
        own = await self.names(*asked, fine=(0, 1))
        if own.cut:
            raise ToolFailure(
                "the settings of this repository name too many programs; it is not looked at", code="git_failed"
            )
        words = own.stdout.split("\0")
        names = {key for scope, key in zip(words[::2], words[1::2], strict=False) if scope in ("local", "worktree")}
        self._env |= _overriding({key: "false" if key.endswith(".required") else "" for key in names})

    async def run(self, *arguments: str, fine: Sequence[int] = (0,)) -> Ran:
        """git with these arguments, its output for reading; ToolFailure with what it said when it did not end well."""
        ran = await self.names(*arguments, fine=fine)
        return msgspec.structs.replace(ran, stdout=readable(ran.stdout))

    async def names(self, *arguments: str, fine: Sequence[int] = (0,)) -> Ran:
        """The same for an output that is names, which keeps their every byte."""
        from ostler.processes.programs import run_program

        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        argv = ["git", "--no-pager", "--literal-pathspecs", *settings, *arguments]
        ran = await run_program(
            argv, cwd=self._folder, timeout=SECONDS, env=self._env, cap=MOST_BYTES, errors="surrogateescape"
        )
        if ran.timed_out:
            raise ToolFailure(f"git took more than {SECONDS:g} s; narrow it with path", code="timeout")
        if ran.exit_code not in fine:
            raise _failure(readable(ran.stderr))
        return ran

    async def _is_its_own(self) -> bool:
        """Whether what git keeps of these files is theirs, not that of a repository somewhere else."""
        if is_plain(self.top):
            return True
        own = await self._line("rev-parse", "--absolute-git-dir")
        common = os.path.join(self._folder, await self._line("rev-parse", "--git-common-dir"))
        if belongs(own, common, self.top, self._ground.root):
            return True
        # The folder of a submodule says where its files are; `top` is what it said.
        is_one = os.path.realpath(own) == os.path.realpath(common) and not leads_away(own)
        return is_one and bool(await self._line("config", "--local", "--get", "core.worktree", fine=(0, 1)))

    async def _line(self, *arguments: str, fine: Sequence[int] = (0,)) -> str:
        return (await self.names(*arguments, fine=fine)).stdout.removesuffix("\n")

    async def commit(self, ref: str) -> str:
        """The full hash of a commit named in any of git's ways, so that a name is never taken for an option."""
        if not ref or ref.startswith("-") or not ref.isprintable():
            raise ToolFailure(f"{ref!r} is not the name of a commit", code="bad_ref", hint="give a hash or a branch")
        said = await self.run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", fine=(0, 1, 128)
        )
        if said.exit_code and ref == "HEAD":
            raise _no_commits()
        if said.exit_code:
            raise ToolFailure(f"there is no commit {ref!r} here", code="bad_ref", hint="git_log shows those there are")
        return said.stdout.strip()

    def narrowed(self, path: str) -> list[str]:
        """The arguments that keep git to a path, at most to the workspace."""
        if not path:  # all of a repository is no path to git, which would leave merges and empty commits out of a log
            return ["--"] if os.path.realpath(self._folder) == os.path.realpath(self.top) else ["--", "."]
        place = self._ground.place(path)
        if not place.inside:
            raise PathRefused("outside_workspace", place.shown, "it leads outside the workspace")
        return ["--", os.path.relpath(meant(place.absolute, self._ground.root), self._folder)]

    def is_folder(self, path: str) -> bool:
        place = self._ground.place(path)
        return place.inside and os.path.isdir(meant(place.absolute, self._ground.root))

    def shown(self, path: str) -> str:
        """How a path from the repository's top reads in the workspace."""
        return escaped(os.path.relpath(os.path.join(self.top, path), self._ground.root))

    def from_here(self, path: str) -> str:
        """How a path from the folder reads in the workspace."""
        return escaped(os.path.relpath(os.path.join(self._folder, path), self._ground.root))


async def open_repo(ground: Ground, folder: str) -> Repo:
    """The repository a folder of the workspace is in."""
    place, found = ground.place(folder), await ground.stat(folder)
    if not place.inside:
        raise PathRefused("outside_workspace", place.shown, "it leads outside the workspace")
    if found.kind != "directory":
        raise PathRefused("not_a_directory", place.shown, "this is no folder", hint="give a folder as repo")
    repo = Repo(ground, meant(place.absolute, ground.root), _environment(ground.root))
    await repo.prepare()
    return repo


def cut(text: str, most: int) -> tuple[str, bool]:
    """A long output without its middle, and whether something was left out."""
    from ostler.text.cut import cut_middle

    made = cut_middle(text, most)
    return made.text, made.cut


def _environment(root: str) -> dict[str, str]:
    from ostler.processes.environment import for_commands, path_without

    ours = for_commands(os.environ).items()
    kept = {name: value for name, value in ours if not name.startswith("GIT_") or name == "GIT_CONFIG_GLOBAL"}
    return {**kept, **_VARIABLES, "PATH": path_without(kept.get("PATH", os.defpath), [root])}


def _overriding(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as variables, which take names that a `-c` flag would misread."""
    pairs = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(sorted(settings.items())):
        pairs |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return pairs


def _failure(stderr: str) -> ToolFailure:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith("fatal:")), lines[-1] if lines else "git failed")
    if "not a git repository" in told:
        return ToolFailure("the workspace is not in a git repository", code="no_repository")
    if "bare repository" in told:
        return ToolFailure("this is a repository without files, which is not looked at", code="no_repository")
    if "dubious ownership" in told:
        hint = "it belongs to somebody else; the person can allow it with git config --global safe.directory"
        return ToolFailure("git does not trust this repository", code="no_repository", hint=hint)
    if "no such ref: HEAD" in told:
        return _no_commits()
    if "no such path" in told:
        return ToolFailure(
            told.removeprefix("fatal:").strip(), code="not_found", hint="git_status shows what is untracked"
        )
    return ToolFailure(f"git: {told.removeprefix('fatal:').strip()[:300]}", code="git_failed")


def _no_commits() -> ToolFailure:
    return ToolFailure("the repository has no commits yet", code="no_commits", hint="git_status shows what is there")
