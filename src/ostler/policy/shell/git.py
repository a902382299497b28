"""git: what loses work, what rewrites others' history, and the many places where it runs a command."""

import re

from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import NO_FEED, Call, Handler
from ostler.policy.shell.options import parse

_EXEC_KEYS = re.compile(
    r"core\.(?:pager|editor|sshcommand|fsmonitor|askpass|gitproxy|hookspath|alternaterefscommand)|sequence\.editor"
    r"|pager\..*"
    r"|alias\..*|diff\.external|(?:diff|merge|filter)\..*\.(?:command|driver|clean|smudge|process|textconv)"
    r"|credential\..*helper"
    r"|credential\.helper|gpg(?:\..*)?\.program|(?:difftool|mergetool|browser|man)\..*\.(?:cmd|path)|web\.browser"
    r"|interactive"
    r"\.difffilter|uploadpack\..*|receive\..*|remote\..*\.(?:uploadpack|receivepack|vcs)|sendemail\..*|ssh\.variant"
    r"|init"
    r"\.templatedir|include(?:if\..*)?\.path|protocol\.ext\.allow|trailer\..*\.(?:command|cmd)|submodule\..*\.update|url\..*\.(?:push)?insteadof",
    re.IGNORECASE,
)
_OFF = frozenset({"", "true", "false", "never", "/dev/null"})
_COMMAND_KEYS = re.compile(
    r"alias\..*|core\.(?:pager|editor|sshcommand|askpass)|sequence\.editor|pager\..*|web\.browser|gpg(?:\..*)?\.program"
    r"|(?:difftool|mergetool|browser|man)\..*\.(?:cmd|path)",
    re.IGNORECASE,
)
_SAFE_HELPERS = re.compile(
    r"(?:store|cache|osxkeychain|manager(?:-core)?|libsecret|wincred)(?: --.*)?|!?(?:gh|glab) auth .*"
)
_VALUED = ("git-dir", "work-tree", "namespace", "super-prefix", "config-env")


def _git(call: Call) -> str:
    options = parse(call.args, "Cc", _VALUED, early=True)
    for setting in options.values("c"):
        key, _, value = setting.text.partition("=")
        if setting.opens_unknown:
            return "sets something in git that is known only when it runs"
        if why := _setting(call, key, value):
            return why
    if options.has("config-env") or any(value and given.startswith("--exec") for given, value in options.given):
        return "makes git run something of the caller's choice"
    for folder in options.values("C"):
        call.scope = call.scope.fork()
        call.scope.change_folder(folder.text, there=True)
    if not options.operands:
        return ""
    verb, *args = options.operands
    if not verb.exact:
        return "what git shall do is known only when it runs"
    return git_verb(call, verb.text, args)


def git_verb(call: Call, verb: str, args: list[Arg]) -> str:
    """Judge one git sub-command."""
    call.args = args
    if call.texts()[:1] == ["--help"]:
        return ""
    if why := _runs(call, verb):
        return why
    judge = _VERBS.get(verb)
    if judge:
        return judge(call)
    if _EXTRAS.fullmatch(verb):
        return "deletes, renames or undoes something"
    options = parse(args, "o", ("output",))
    return call.overwrites_any(options.values("output")) if verb in {"diff", "log", "show", "format-patch"} else ""


# verbs that git has only where others have added them
_EXTRAS = re.compile(
    r"(?:delete|reset|clear|rename)-.+|delete|undo|obliterate|unpublish|sed|nuke|purge|discard|abort|wipe"
)


def _setting(call: Call, key: str, value: str) -> str:
    """Why a configured value may not be set unasked: it is a command, or lets one run."""
    if not _EXEC_KEYS.fullmatch(key) or value.strip() in _OFF:
        return ""
    if key.lower().startswith("credential") and _SAFE_HELPERS.fullmatch(value):
        return ""
    if key.lower().startswith("alias.") and not value.startswith("!"):
        words = value.split()
        return git_verb(Call(call.walk, call.scope, "git", "git", [], NO_FEED), words[0], [Arg(w) for w in words[1:]])
    if not _COMMAND_KEYS.fullmatch(key):
        return f"lets {key} decide what git runs or trusts"
    if "/" in value.removeprefix("!").strip().partition(" ")[0]:
        return f"makes git run a file, by {key}"
    call.text(value.removeprefix("!"), NO_FEED)
    return ""


def _runs(call: Call, verb: str) -> str:
    """Options and addresses by which any git command may run another one."""
    for arg in call.args:
        name = arg.text.partition("=")[0]
        if re.match(r"(?:--[\w-]+=)?ext::", arg.text):
            return "makes git run a command as its transport"
        if len(name) > 5 and verb != "rebase" and any(long.startswith(name) for long in _RUNNING_OPTIONS):
            return "makes git run another program"
    if verb in {"init", "clone"} and any(arg.text for arg in parse(call.args, "", ("template",)).values("template")):
        return "takes hooks from a folder of the caller's choice"
    if verb in {"clone", "fetch", "pull", "submodule", "ls-remote"}:
        options = parse(call.args, "cuojb", ("config", "upload-pack", "template"))
        if options.has("u") and verb == "clone":
            return "makes git run another program"
        for setting in options.values("c", "config") if verb == "clone" else []:
            key, _, value = setting.text.partition("=")
            if why := _setting(call, key, value):
                return why
    return ""


_RUNNING_OPTIONS = ("--upload-pack", "--receive-pack", "--exec", "--open-files-in-pager", "--sendmail-cmd")


# one judge for each sub-command that may lose something


def _asks(why: str) -> Handler:
    return lambda call: why


def _unless(why: str, *harmless: str) -> Handler:
    def judge(call: Call) -> str:
        return "" if parse(call.args).has(*harmless) else why

    return judge


def _when(why: str, *harmful: str) -> Handler:
    def judge(call: Call) -> str:
        return why if parse(call.args, "c").has(*harmful) else ""

    return judge


def _first(why: str, *verbs: str) -> Handler:
    def judge(call: Call) -> str:
        operands = [arg.text for arg in parse(call.args).operands]
        return why if operands[:1] and operands[0] in verbs else ""

    return judge


def _checkout(call: Call) -> str:
    texts = call.texts()
    options = parse(call.args, "bB", ("orphan", "conflict", "pathspec-from-file"))
    if options.has("f", "force", "B", "p", "patch", "ours", "theirs", "m", "pathspec-from-file"):
        return "throws changes away"
    if "--" in texts:
        return "throws changes away" if texts.index("--") < len(texts) - 1 else ""
    names = options.operands
    if options.has("b", "orphan", "t", "track", "detach", "d"):
        return ""
    paths = len(names) > 1 or any(
        arg.text.startswith((".", ":/", "/")) or re.search(r"[*?[]", arg.text) or _there(call, arg) for arg in names
    )
    return "throws changes away" if paths else ""


def _there(call: Call, arg: Arg) -> bool:
    return arg.exact and call.walk.places.any_exists(arg, call.scope)


def _restore(call: Call) -> str:
    options = parse(call.args, "s", ("source", "pathspec-from-file"))
    staged = options.has("S", "staged") and not options.has("W", "worktree")
    return "" if staged else "throws changes away"


def _reset(call: Call) -> str:
    return "throws changes away" if parse(call.args).has("hard", "merge", "keep") else ""


def _clean(call: Call) -> str:
    return "" if parse(call.args, "e", ("exclude",)).has("n", "dry-run") else "deletes files that git does not know"


def _push(call: Call) -> str:
    options = parse(call.args, "o", ("push-option", "repo"))
    if options.has("n", "dry-run"):
        return ""
    forced = ("f", "force", "force-with-lease", "force-if-includes", "d", "delete", "mirror", "prune")
    if (
        options.has(*forced)
        or any(given.startswith("--force") for given, _ in options.given)
        or any(arg.text[:1] in {"+", ":"} for arg in options.operands[1:])
    ):
        return "overwrites or deletes what others have"
    return ""


def _branch(call: Call) -> str:
    options = parse(
        call.args, "u", ("set-upstream-to", "format", "sort", "contains", "merged", "no-merged", "points-at")
    )
    forced = options.has("D", "C", "M", "f", "force")
    return "deletes or moves a branch" if forced else ""


def _stash(call: Call) -> str:
    operands = parse(call.args, "m", ("message",)).operands
    verb = operands[0].text if operands else "push"
    if operands and not operands[0].exact:
        return "what git shall do is known only when it runs"
    return "throws away what was put aside" if verb in {"drop", "clear"} else ""


def _config(call: Call) -> str:
    options = parse(call.args, "ft", ("file", "blob", "type", "default", "comment", "value", "fixed-value"))
    operands = [arg.text for arg in options.operands]
    if operands[:1] == ["set"]:
        operands = operands[1:]
    if options.has("remove-section", "rename-section", "e", "edit"):
        return "rewrites git's configuration"
    if len(operands) > 1 and HOLE in operands[0]:
        return "sets something in git that is known only when it runs"
    return _setting(call, operands[0], operands[1]) if len(operands) > 1 else ""


def _bisect(call: Call) -> str:
    if call.args and call.args[0].text == "run":
        call.run(call.args[1:])
    return ""


def _submodule(call: Call) -> str:
    operands = parse(call.args, early=True).operands
    verb = operands[0].text if operands else ""
    if verb == "foreach":
        rest = parse(operands[1:], early=True).operands
        call.text(" ".join(arg.text for arg in rest), NO_FEED)
    return "takes a submodule's files away" if verb == "deinit" or (verb == "update" and _forces(call)) else ""


def _forces(call: Call) -> bool:
    return parse(call.args).has("f", "force")


def _archive(call: Call) -> str:
    options = parse(call.args, "o", ("output", "format", "prefix", "remote", "exec"))
    return call.overwrites_any(options.values("o", "output"))


def _bundle(call: Call) -> str:
    operands = parse(call.args).operands
    return call.overwrites_any(operands[1:2]) if operands[:1] and operands[0].text == "create" else ""


def _grep(call: Call) -> str:
    for given, _ in parse(call.args, "efABCm").given:
        if given == "O":
            return "makes git run another program"
    return ""


def _fetch(call: Call) -> str:
    options = parse(call.args, "ojS", ("depth", "refmap", "upload-pack", "strategy", "jobs"))
    forced = options.has("f", "force") or any(arg.text.startswith("+") for arg in options.operands)
    return "overwrites branches with what others have" if forced else ""


def _rebase(call: Call) -> str:
    options = parse(call.args, "xsX", ("exec", "strategy", "onto"))
    for command in options.values("x", "exec"):
        call.text(command.text)
    return _GIVES_UP if options.has("abort", "skip", "quit") else ""


def _symbolic_ref(call: Call) -> str:
    options = parse(call.args, "m")
    return "changes a reference" if options.has("d", "delete") or len(options.operands) > 1 else ""


def _for_each_repo(call: Call) -> str:
    operands = parse(call.args, "", ("config",), early=True).operands
    return git_verb(call, operands[0].text, operands[1:]) if operands else ""


def _difftool(call: Call) -> str:
    for command in parse(call.args, "xt", ("extcmd", "tool")).values("x", "extcmd"):
        call.text(command.text)
    return ""


def _merge_file(call: Call) -> str:
    options = parse(call.args, "L")
    return "" if options.has("p", "stdout") else "overwrites the first file with the merged one"


_GIVES_UP = "gives up a merge or rebase, and what was done in it"
_TAKES = "takes files away, or puts others in their place"
_VERBS: dict[str, Handler] = {
    "checkout": _checkout,
    "restore": _restore,
    "reset": _reset,
    "clean": _clean,
    "push": _push,
    "branch": _branch,
    "stash": _stash,
    "config": _config,
    "rm": _unless("deletes files", "cached", "n", "dry-run"),
    "mv": _when("moves files over others", "f", "force"),
    "switch": _when("throws changes away", "f", "force", "discard-changes", "C", "force-create"),
    "apply": _unless("changes the files that a patch names", "check", "stat", "numstat", "summary", "cached"),
    "am": _unless("changes the files that a patch names", "show-current-patch"),
    **dict.fromkeys(("merge", "cherry-pick", "revert"), _when(_GIVES_UP, "abort", "skip", "quit")),
    **dict.fromkeys(("fetch", "pull"), _fetch),
    "symbolic-ref": _symbolic_ref,
    "for-each-repo": _for_each_repo,
    "rerere": _first("forgets how conflicts were solved", "clear", "forget"),
    "tag": _when("deletes or moves a tag", "d", "delete", "f", "force"),
    "worktree": _first("deletes a working tree", "remove", "move"),
    "remote": _first("forgets a remote and its branches", "remove", "rm"),
    "notes": _first("deletes notes", "remove", "prune"),
    "reflog": _first("makes lost commits unfindable", "expire", "delete"),
    "gc": _when("makes lost commits unfindable", "prune"),
    "prune": _unless("deletes objects for good", "n", "dry-run"),
    "update-ref": _asks("changes or deletes a reference"),
    "replace": _when("changes history", "d", "delete", "f", "force"),
    "filter-branch": _asks("rewrites history"),
    "filter-repo": _asks("rewrites history"),
    "read-tree": _when(_TAKES, "u", "reset"),
    "checkout-index": _when(_TAKES, "f", "force"),
    "sparse-checkout": _first(_TAKES, "set", "add", "reapply", "disable", "init"),
    "merge-file": _merge_file,
    "submodule": _submodule,
    "archive": _archive,
    "bundle": _bundle,
    "bisect": _bisect,
    "rebase": _rebase,
    "difftool": _difftool,
    "grep": _grep,
    "annex": _first(_TAKES, "drop", "dropunused", "unannex", "uninit", "move"),
    "lfs": _first("deletes objects for good", "prune"),
    "svn": _first(_TAKES, "reset"),
}


HANDLERS: dict[str, Handler] = {"git": _git, "hub": _git}
