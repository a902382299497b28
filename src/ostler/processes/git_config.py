"""Decides which git settings cannot run a program, and rewrites a config file without the others.

Uses a list of safe settings, because each version of git adds new ways to run a program.
"""

import os
import re
from collections.abc import Callable

from ostler.core.errors import ToolError

MAX_CONFIG_BYTES = 256 * 1024
_TIMEOUT_SECONDS = 20.0
GitSetting = tuple[str, str]

_SAFE_KEYS = {
    "core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol"
    " safecrlf whitespace quotepath abbrev compression loosecompression bigfilethreshold sharedrepository trustctime"
    " checkstat untrackedcache preloadindex sparsecheckout sparsecheckoutcone splitindex fsync fsyncmethod commitgraph"
    " multipackindex protecthfs protectntfs longpaths hidedotfiles commentchar packedgitlimit packedgitwindowsize",
    "extensions": "worktreeconfig objectformat refstorage partialclone relativeworktrees preciousobjects noop"
    " compatobjectformat",
    "branch": "sort autosetupmerge autosetuprebase",
    "remote": "pushdefault",
    "submodule": "active recurse fetchjobs propagatebranches alternatelocation alternateerrorstrategy",
    "user": "name email useconfigonly",
    "author": "name email",
    "committer": "name email",
    "commit": "gpgsign verbose status cleanup",
    "tag": "gpgsign sort",
    "pull": "rebase ff octopus",
    "push": "default autosetupremote followtags recursesubmodules useforceifincludes",
    "fetch": "prune prunetags recursesubmodules fsckobjects parallel writecommitgraph showforcedupdates",
    "merge": "ff conflictstyle renames renamelimit log stat autostash directoryrenames",
    "diff": "algorithm renames renamelimit colormoved context mnemonicprefix noprefix indentheuristic submodule",
    "rebase": "autosquash autostash updaterefs stat",
    "rerere": "enabled autoupdate",
    "gc": "auto autodetach autopacklimit pruneexpire reflogexpire reflogexpireunreachable worktreepruneexpire packrefs"
    " writecommitgraph cruftpacks",
    "maintenance": "auto strategy",
    "index": "version threads sparse skiphash",
    "feature": "manyfiles experimental",
    "pack": "threads window depth windowmemory compression writebitmaphashcache",
    "status": "showuntrackedfiles short branch relativepaths aheadbehind renames",
    "log": "date decorate abbrevcommit follow showroot",
    "init": "defaultbranch",
    "i18n": "commitencoding logoutputencoding",
    "receive": "denycurrentbranch denynonfastforwards denydeletes fsckobjects unpacklimit autogc",
    "transfer": "fsckobjects hiderefs unpacklimit",
    "http": "postbuffer version lowspeedlimit lowspeedtime",
    "color": "ui branch diff status grep interactive",
    "lfs": "repositoryformatversion",
}
_SAFE_SUBSECTION_KEYS = {
    "remote": "fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall promisor partialclonefilter"
    " followremotehead gh-resolved",
    "branch": "remote merge rebase description pushremote gh-merge-base vscode-merge-base",
    "submodule": "active branch fetchrecursesubmodules ignore shallow path",
    "lfs": "access locksverify",
    "color": "branch diff status grep",
}
_SAFE_SETTINGS = {
    **{(section, False): frozenset(names.split()) for section, names in _SAFE_KEYS.items()},
    **{(section, True): frozenset(names.split()) for section, names in _SAFE_SUBSECTION_KEYS.items()},
}
_SAFE_UPDATES = frozenset({"checkout", "rebase", "merge", "none", ""})
_BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0"})
_HELPER_URL = re.compile(r"[A-Za-z0-9+.-]*::")  # a URL that a remote helper program fetches


class GitConfigUnreadable(Exception):
    """Raised when git cannot parse a config file."""


async def read_settings(data: bytes, untrusted: tuple[str, ...] = ()) -> list[GitSetting]:
    """Parse a config file with git, without includes. A git program in an `untrusted` folder is not used."""
    from ostler.processes.command_environment import path_without
    from ostler.processes.helper_programs import run_program

    if len(data) > MAX_CONFIG_BYTES:
        raise GitConfigUnreadable("it is too large")
    argv = ["git", "config", "--file", "-", "--no-includes", "--list", "-z"]
    env = {
        "PATH": path_without(os.environ.get("PATH", os.defpath), untrusted),
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": "/nonexistent",
    }
    try:
        result = await run_program(
            argv, cwd="/", timeout=_TIMEOUT_SECONDS, env=env, stdin=data, cap=8 * MAX_CONFIG_BYTES
        )
    except ToolError as error:
        raise GitConfigUnreadable(str(error)) from error
    if result.exit_code != 0 or result.truncated:
        raise GitConfigUnreadable("git cannot read it")
    settings = (line.partition("\n") for line in result.stdout.split("\0") if line)
    return [(key, value if separator else "true") for key, separator, value in settings]


def is_safe_setting(key: str, value: str, may_point_to: Callable[[str], bool]) -> bool:
    """Return whether a setting cannot run a program or move the work tree to a forbidden place."""
    section, _, rest = key.partition(".")
    _, dot, key = rest.rpartition(".")
    if (section, key) == ("core", "worktree"):
        return not dot and may_point_to(value)
    if (section, key) == ("core", "fsmonitor"):
        return not dot and value.lower() in _BOOLEANS
    if section in ("remote", "submodule") and dot and key in ("url", "pushurl"):
        return not _HELPER_URL.match(value)
    if section == "submodule" and dot and key == "update":
        return value in _SAFE_UPDATES
    return key in _SAFE_SETTINGS.get((section, bool(dot)), ())


def format_config(pairs: list[GitSetting]) -> bytes:
    """Return the settings as a config file that git reads back unchanged."""
    lines = []
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, dot, last = rest.rpartition(".")
        lines.append(f"[{section} {_quote(name)}]" if dot else f"[{section}]")
        lines.append(f"\t{last} = {_quote(value)}")
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
