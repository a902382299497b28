"""Handlers for git: lost work, rewritten history, and every option that runs a command."""

import re

from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.option_parser import parse_options

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
_DISABLED_VALUES = frozenset({"", "true", "false", "never", "/dev/null"})
_COMMAND_KEYS = re.compile(
    r"alias\..*|core\.(?:pager|editor|sshcommand|askpass)|sequence\.editor|pager\..*|web\.browser|gpg(?:\..*)?\.program"
    r"|(?:difftool|mergetool|browser|man)\..*\.(?:cmd|path)",
    re.IGNORECASE,
)
_SAFE_HELPERS = re.compile(
    r"(?:store|cache|osxkeychain|manager(?:-core)?|libsecret|wincred)(?: --.*)?|!?(?:gh|glab) auth .*"
)
_LONGS_WITH_VALUE = ("git-dir", "work-tree", "namespace", "super-prefix", "config-env")


def _git(call: CommandCall) -> str:
    options = parse_options(call.args, "Cc", _LONGS_WITH_VALUE, stop_at_operand=True)
    for setting in options.values("c"):
        key, _, value = setting.text.partition("=")
        if setting.starts_unknown:
            return "sets a git option that is known only at run time"
        if reason := _setting_reason(call, key, value):
            return reason
    if options.has("config-env") or any(value and option.startswith("--exec") for option, value in options.pairs):
        return "changes which programs git runs"
    for folder in options.values("C"):
        call.shell = call.shell.fork()
        call.shell.change_folder(folder.text, exists=True)
    if not options.operands:
        return ""
    verb, *args = options.operands
    if not verb.exact:
        return "its subcommand is known only at run time"
    return git_verb_reason(call, verb.text, args)


def git_verb_reason(call: CommandCall, verb: str, args: list[ExpandedWord]) -> str:
    """Return why a git subcommand needs approval, or an empty string."""
    call.args = args
    if call.arg_texts()[:1] == ["--help"]:
        return ""
    if reason := _run_option_reason(call, verb):
        return reason
    handler = _VERB_HANDLERS.get(verb)
    if handler:
        return handler(call)
    if _EXTENSION_VERBS.fullmatch(verb):
        return "deletes, renames or undoes something"
    options = parse_options(args, "o", ("output",))
    return (
        call.any_overwrite_reason(options.values("output")) if verb in {"diff", "log", "show", "format-patch"} else ""
    )


# destructive subcommands of git extensions
_EXTENSION_VERBS = re.compile(
    r"(?:delete|reset|clear|rename)-.+|delete|undo|obliterate|unpublish|sed|nuke|purge|discard|abort|wipe"
)


def _setting_reason(call: CommandCall, key: str, value: str) -> str:
    """Return why a configuration value needs approval: it is a command, or makes git run one."""
    if not _EXEC_KEYS.fullmatch(key) or value.strip() in _DISABLED_VALUES:
        return ""
    if key.lower().startswith("credential") and _SAFE_HELPERS.fullmatch(value):
        return ""
    if key.lower().startswith("alias.") and not value.startswith("!"):
        words = value.split()
        return git_verb_reason(
            CommandCall(call.evaluator, call.shell, "git", "git", [], NO_STDIN),
            words[0],
            [ExpandedWord(word) for word in words[1:]],
        )
    if not _COMMAND_KEYS.fullmatch(key):
        return f"sets {key}, which decides what git runs or trusts"
    if "/" in value.removeprefix("!").strip().partition(" ")[0]:
        return f"sets {key}, which makes git run a file"
    call.evaluate_text(value.removeprefix("!"), NO_STDIN)
    return ""


def _run_option_reason(call: CommandCall, verb: str) -> str:
    """Return why a git command needs approval because of an option or URL that runs another program."""
    for arg in call.args:
        name = arg.text.partition("=")[0]
        if re.match(r"(?:--[\w-]+=)?ext::", arg.text):
            return "makes git run a command as its transport"
        if len(name) > 5 and verb != "rebase" and any(long.startswith(name) for long in _RUNNING_OPTIONS):
            return "makes git run another program"
    if verb in {"init", "clone"} and any(
        arg.text for arg in parse_options(call.args, "", ("template",)).values("template")
    ):
        return "copies hooks from a template folder"
    if verb in {"clone", "fetch", "pull", "submodule", "ls-remote"}:
        options = parse_options(call.args, "cuojb", ("config", "upload-pack", "template"))
        if options.has("u") and verb == "clone":
            return "makes git run another program"
        for setting in options.values("c", "config") if verb == "clone" else []:
            key, _, value = setting.text.partition("=")
            if reason := _setting_reason(call, key, value):
                return reason
    return ""


_RUNNING_OPTIONS = ("--upload-pack", "--receive-pack", "--exec", "--open-files-in-pager", "--sendmail-cmd")


# one handler for each subcommand that can lose data


def _always_dangerous(reason: str) -> CommandHandler:
    return lambda call: reason


def _dangerous_unless(reason: str, *harmless: str) -> CommandHandler:
    def handler(call: CommandCall) -> str:
        return "" if parse_options(call.args).has(*harmless) else reason

    return handler


def _dangerous_if(reason: str, *harmful: str) -> CommandHandler:
    def handler(call: CommandCall) -> str:
        return reason if parse_options(call.args, "c").has(*harmful) else ""

    return handler


def _dangerous_verbs(reason: str, *verbs: str) -> CommandHandler:
    def handler(call: CommandCall) -> str:
        operands = [arg.text for arg in parse_options(call.args).operands]
        return reason if operands[:1] and operands[0] in verbs else ""

    return handler


def _checkout(call: CommandCall) -> str:
    texts = call.arg_texts()
    options = parse_options(call.args, "bB", ("orphan", "conflict", "pathspec-from-file"))
    if options.has("f", "force", "B", "p", "patch", "ours", "theirs", "m", "pathspec-from-file"):
        return "discards changes"
    if "--" in texts:
        return "discards changes" if texts.index("--") < len(texts) - 1 else ""
    names = options.operands
    if options.has("b", "orphan", "t", "track", "detach", "d"):
        return ""
    paths = len(names) > 1 or any(
        arg.text.startswith((".", ":/", "/")) or re.search(r"[*?[]", arg.text) or _exists(call, arg) for arg in names
    )
    return "discards changes" if paths else ""


def _exists(call: CommandCall, arg: ExpandedWord) -> bool:
    return arg.exact and call.evaluator.filesystem.may_exist(arg, call.shell)


def _restore(call: CommandCall) -> str:
    options = parse_options(call.args, "s", ("source", "pathspec-from-file"))
    staged = options.has("S", "staged") and not options.has("W", "worktree")
    return "" if staged else "discards changes"


def _reset(call: CommandCall) -> str:
    return "discards changes" if parse_options(call.args).has("hard", "merge", "keep") else ""


def _clean(call: CommandCall) -> str:
    return "" if parse_options(call.args, "e", ("exclude",)).has("n", "dry-run") else "deletes untracked files"


def _push(call: CommandCall) -> str:
    options = parse_options(call.args, "o", ("push-option", "repo"))
    if options.has("n", "dry-run"):
        return ""
    force_options = ("f", "force", "force-with-lease", "force-if-includes", "d", "delete", "mirror", "prune")
    if (
        options.has(*force_options)
        or any(option.startswith("--force") for option, _ in options.pairs)
        or any(arg.text[:1] in {"+", ":"} for arg in options.operands[1:])
    ):
        return "overwrites or deletes remote branches or tags"
    return ""


def _branch(call: CommandCall) -> str:
    options = parse_options(
        call.args, "u", ("set-upstream-to", "format", "sort", "contains", "merged", "no-merged", "points-at")
    )
    forced = options.has("D", "C", "M", "f", "force")
    return "deletes or moves a branch" if forced else ""


def _stash(call: CommandCall) -> str:
    operands = parse_options(call.args, "m", ("message",)).operands
    verb = operands[0].text if operands else "push"
    if operands and not operands[0].exact:
        return "its subcommand is known only at run time"
    return "discards stashed changes" if verb in {"drop", "clear"} else ""


def _config(call: CommandCall) -> str:
    options = parse_options(call.args, "ft", ("file", "blob", "type", "default", "comment", "value", "fixed-value"))
    operands = [arg.text for arg in options.operands]
    if operands[:1] == ["set"]:
        operands = operands[1:]
    if options.has("remove-section", "rename-section", "e", "edit"):
        return "rewrites git's configuration"
    if len(operands) > 1 and UNKNOWN_TEXT in operands[0]:
        return "sets a git option that is known only at run time"
    return _setting_reason(call, operands[0], operands[1]) if len(operands) > 1 else ""


def _bisect(call: CommandCall) -> str:
    if call.args and call.args[0].text == "run":
        call.evaluate_argv(call.args[1:])
    return ""


def _submodule(call: CommandCall) -> str:
    operands = parse_options(call.args, stop_at_operand=True).operands
    verb = operands[0].text if operands else ""
    if verb == "foreach":
        rest = parse_options(operands[1:], stop_at_operand=True).operands
        call.evaluate_text(" ".join(arg.text for arg in rest), NO_STDIN)
    return (
        "removes or overwrites the files of a submodule"
        if verb == "deinit" or (verb == "update" and _is_forced(call))
        else ""
    )


def _is_forced(call: CommandCall) -> bool:
    return parse_options(call.args).has("f", "force")


def _archive(call: CommandCall) -> str:
    options = parse_options(call.args, "o", ("output", "format", "prefix", "remote", "exec"))
    return call.any_overwrite_reason(options.values("o", "output"))


def _bundle(call: CommandCall) -> str:
    operands = parse_options(call.args).operands
    return call.any_overwrite_reason(operands[1:2]) if operands[:1] and operands[0].text == "create" else ""


def _grep(call: CommandCall) -> str:
    for option, _ in parse_options(call.args, "efABCm").pairs:
        if option == "O":
            return "makes git run another program"
    return ""


def _fetch(call: CommandCall) -> str:
    options = parse_options(call.args, "ojS", ("depth", "refmap", "upload-pack", "strategy", "jobs"))
    forced = options.has("f", "force") or any(arg.text.startswith("+") for arg in options.operands)
    return "overwrites local branches with remote ones" if forced else ""


def _rebase(call: CommandCall) -> str:
    options = parse_options(call.args, "xsX", ("exec", "strategy", "onto"))
    call.evaluate_texts(options.values("x", "exec"))
    return _ABORTS_MERGE if options.has("abort", "skip", "quit") else ""


def _symbolic_ref(call: CommandCall) -> str:
    options = parse_options(call.args, "m")
    return "changes a reference" if options.has("d", "delete") or len(options.operands) > 1 else ""


def _for_each_repo(call: CommandCall) -> str:
    operands = parse_options(call.args, "", ("config",), stop_at_operand=True).operands
    return git_verb_reason(call, operands[0].text, operands[1:]) if operands else ""


def _difftool(call: CommandCall) -> str:
    call.evaluate_texts(parse_options(call.args, "xt", ("extcmd", "tool")).values("x", "extcmd"))
    return ""


def _merge_file(call: CommandCall) -> str:
    options = parse_options(call.args, "L")
    return "" if options.has("p", "stdout") else "overwrites the first file with the merge result"


_ABORTS_MERGE = "aborts a merge or rebase and discards its changes"
_REPLACES_FILES = "removes or replaces files"
_VERB_HANDLERS: dict[str, CommandHandler] = {
    "checkout": _checkout,
    "restore": _restore,
    "reset": _reset,
    "clean": _clean,
    "push": _push,
    "branch": _branch,
    "stash": _stash,
    "config": _config,
    "rm": _dangerous_unless("deletes files", "cached", "n", "dry-run"),
    "mv": _dangerous_if("moves files over others", "f", "force"),
    "switch": _dangerous_if("discards changes", "f", "force", "discard-changes", "C", "force-create"),
    "apply": _dangerous_unless("changes the files that a patch names", "check", "stat", "numstat", "summary", "cached"),
    "am": _dangerous_unless("changes the files that a patch names", "show-current-patch"),
    **dict.fromkeys(("merge", "cherry-pick", "revert"), _dangerous_if(_ABORTS_MERGE, "abort", "skip", "quit")),
    **dict.fromkeys(("fetch", "pull"), _fetch),
    "symbolic-ref": _symbolic_ref,
    "for-each-repo": _for_each_repo,
    "rerere": _dangerous_verbs("deletes recorded conflict resolutions", "clear", "forget"),
    "tag": _dangerous_if("deletes or moves a tag", "d", "delete", "f", "force"),
    "worktree": _dangerous_verbs("deletes a working tree", "remove", "move"),
    "remote": _dangerous_verbs("removes a remote and its branches", "remove", "rm"),
    "notes": _dangerous_verbs("deletes notes", "remove", "prune"),
    "reflog": _dangerous_verbs("makes lost commits unrecoverable", "expire", "delete"),
    "gc": _dangerous_if("makes lost commits unrecoverable", "prune"),
    "prune": _dangerous_unless("deletes objects permanently", "n", "dry-run"),
    "update-ref": _always_dangerous("changes or deletes a reference"),
    "replace": _dangerous_if("changes history", "d", "delete", "f", "force"),
    "filter-branch": _always_dangerous("rewrites history"),
    "filter-repo": _always_dangerous("rewrites history"),
    "read-tree": _dangerous_if(_REPLACES_FILES, "u", "reset"),
    "checkout-index": _dangerous_if(_REPLACES_FILES, "f", "force"),
    "sparse-checkout": _dangerous_verbs(_REPLACES_FILES, "set", "add", "reapply", "disable", "init"),
    "merge-file": _merge_file,
    "submodule": _submodule,
    "archive": _archive,
    "bundle": _bundle,
    "bisect": _bisect,
    "rebase": _rebase,
    "difftool": _difftool,
    "grep": _grep,
    "annex": _dangerous_verbs(_REPLACES_FILES, "drop", "dropunused", "unannex", "uninit", "move"),
    "lfs": _dangerous_verbs("deletes objects permanently", "prune"),
    "svn": _dangerous_verbs(_REPLACES_FILES, "reset"),
}


HANDLERS: dict[str, CommandHandler] = {"git": _git, "hub": _git}
