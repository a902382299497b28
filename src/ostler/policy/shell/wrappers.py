"""Handlers for commands that run another command (env, sudo, timeout, docker run …)."""

import re
from collections.abc import Sequence

from ostler.policy import danger_tables
from ostler.policy.shell import data_leaks, unknown_programs
from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.command_evaluator import shell_quote
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.network_transfers import evaluate_ssh_setting
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.program_table import ArgumentSpec, argument_spec, group, rows
from ostler.policy.shell.shell_builtins import stdin_reason

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_%]*)=(.*)", re.DOTALL)
_CONTAINER_ENGINES = frozenset({"docker", "docker-compose", "podman", "nerdctl"})
_GLOBAL_VALUED = {"docker": "cHl", "podman": "c", "npm": "C", "pnpm": "C"}


def unwrap(call: CommandCall, spec: ArgumentSpec, args: Sequence[ExpandedWord]) -> str:
    """Evaluate the command that a wrapper runs. Return why its output files need approval, or an empty string."""
    options = parse_options(
        args, spec.shorts_with_value, spec.longs_with_value, stop_at_operand=not spec.options_after_operands
    )
    call.evaluate_texts(options.values(*spec.command_options))
    rest = options.operands[spec.skip_operands :]
    if rest and rest[0].text in {"--", "-"}:
        rest = rest[1:]
    if spec.takes_assignments:
        rest = take_assignments(call, rest)
    if rest and spec.joins_words:
        call.evaluate_text(" ".join(arg.text for arg in rest))
    elif rest:
        if " " in rest[0].text:
            call.evaluate_text(rest[0].text)
        call.evaluate_argv(rest)
    return call.any_overwrite_reason(options.values(*spec.output_options))


def take_assignments(call: CommandCall, args: list[ExpandedWord]) -> list[ExpandedWord]:
    """Check and apply the `NAME=value` words before a command. Return the command."""
    for index, arg in enumerate(args):
        match = _ASSIGNMENT.fullmatch(arg.text)
        if not match:
            return args[index:]
        call.evaluator.check_assignment(match.group(1), match.group(2), call.shell)
        call.shell.assign(match.group(1), match.group(2))
    return []


def run_wrapper(call: CommandCall) -> str:
    """Evaluate the command that a wrapper runs, by its row."""
    return unwrap(call, argument_spec(call.name, "wrapper"), call.args)


def run_runner(call: CommandCall) -> str:
    """Evaluate the command that a runner runs after a subcommand, by its row."""
    spec = argument_spec(call.name, "runner-options")
    operands = parse_options(
        call.args, _GLOBAL_VALUED.get(call.name, ""), ("context", "host", "file"), stop_at_operand=True
    ).operands
    if [arg.text for arg in operands[:1]] == ["compose"]:
        longs = ("file", "project-name", "profile", "env-file", "project-directory")
        operands = [operands[0], *parse_options(operands[1:], "fp", longs, stop_at_operand=True).operands]
    if operands and operands[0].text in group("package-binaries") and call.name in group("package-managers"):
        call.evaluate_argv(operands)
    for subcommand in rows("runner")[call.name].split(", "):
        words = subcommand.split()
        if [arg.text for arg in operands[: len(words)]] == words:
            rest = operands[len(words) :]
            if call.name == "uv" and rest and (rest[0].text == "-" or rest[0].text.endswith(".py")):
                rest = [ExpandedWord("python"), *rest]
            call.shell = call.shell.fork()
            call.shell.in_project_environment = call.name not in group("fetchers")
            if call.name in _CONTAINER_ENGINES:
                call.shell.cwd = ()
            words = [arg.text for arg in rest]
            after_dashes = rest[words.index("--") + 1 :] if "--" in words else []
            if after_dashes and after_dashes[0].text[:1] != "-":
                call.evaluate_argv(after_dashes)
            return unwrap(call, spec, rest) or _container_reason(call, rest)
    return ""


def _container_reason(call: CommandCall, args: list[ExpandedWord]) -> str:
    """Return why a container needs approval: it gets access to the machine. Its entry point is evaluated."""
    if call.name not in _CONTAINER_ENGINES:
        return ""
    spec = argument_spec(call.name, "runner-options")
    options = parse_options(args, spec.shorts_with_value, spec.longs_with_value, stop_at_operand=True)
    for entry in options.values("entrypoint"):
        call.evaluate_argv([entry, *options.operands[1:]])
    mounts = options.values("v", "volume", "mount")
    if options.has("privileged") or any(re.match(r"/:|.*(?:source|src)=/(?:,|$)", arg.text) for arg in mounts):
        return "gives a container access to the whole machine"
    if any(_HOST_FOLDER.match(arg.text) and not arg.text.endswith((":ro", ",readonly")) for arg in mounts):
        return "lets a container write to system files"
    if any(data_leaks.ENGINE_SOCKET.search(arg.text) for arg in mounts):
        return "gives a container control of the container engine"
    return ""


_HOST_FOLDER = re.compile(
    r"(?:.*\b(?:source|src)=)?(?:/(?:etc|root|boot|usr|s?bin|lib\w*|dev)(?:/[^:,]*)?|[^:,]*/\.(?:ssh|gnupg|aws))/?(?::|,|$)"
)


def _env(call: CommandCall) -> str:
    index = next((index for index, arg in enumerate(call.args) if _SPLIT_STRING_OPTION.match(arg.text)), -1)
    if index >= 0:  # the following words are passed on unchanged after the split text
        text = _SPLIT_STRING_OPTION.sub("", call.args[index].text)
        split_words = [ExpandedWord(text)] if text else call.args[index + 1 : index + 2]
        rest = call.args[index + 1 + (not text) :]
        call.evaluate_text(
            " ".join(["env", *(arg.text for arg in split_words), *(shell_quote(arg.text) for arg in rest)])
        )
        return ""
    options = parse_options(call.args, "uC", ("unset", "chdir"), stop_at_operand=True)
    call.shell = call.shell.fork()
    for folder in options.values("C", "chdir"):
        call.shell.change_folder(folder.text, exists=True)
    rest = options.operands[1:] if [arg.text for arg in options.operands[:1]] == ["-"] else options.operands
    rest = take_assignments(call, rest)
    call.evaluate_argv(rest)
    return ""


_SPLIT_STRING_OPTION = re.compile(r"-[iv0]*S|--split-string=?")


def _command(call: CommandCall) -> str:
    options = parse_options(call.args, stop_at_operand=True)
    if not options.has("v", "V"):
        call.evaluate_argv(options.operands)
    return ""


def _script(call: CommandCall) -> str:
    longs = ("command", "log-io", "log-out", "log-in", "log-timing")
    options = parse_options(call.args, "cIOBTEmo", longs)
    call.evaluate_texts(options.values("c", "command"))
    call.evaluate_argv(options.operands[1:])
    return call.any_overwrite_reason([*options.operands[:1], *options.values("O", "B", "T", "log-out", "log-io")])


def _flock(call: CommandCall) -> str:
    rest = parse_options(call.args, "wE", ("timeout", "wait", "conflict-exit-code"), stop_at_operand=True).operands[1:]
    if len(rest) > 1 and rest[0].text in {"-c", "--command"}:
        call.evaluate_text(rest[1].text)
    else:
        call.evaluate_argv(rest)
    return ""


def _entr(call: CommandCall) -> str:
    options = parse_options(call.args, stop_at_operand=True)
    if options.has("s"):
        call.evaluate_text(" ".join(arg.text for arg in options.operands))
    else:
        call.evaluate_argv([ExpandedWord(arg.text.replace("/_", UNKNOWN_TEXT)) for arg in options.operands])
    return ""


def _ssh(call: CommandCall) -> str:
    options = parse_options(call.args, _SSH_VALUED, stop_at_operand=True)
    for setting in options.values("o"):
        evaluate_ssh_setting(call, setting)
    if any(arg.piped for arg in options.values("F")):
        return "reads its configuration from a pipe"
    call.shell = call.shell.fork()
    call.shell.cwd = ()
    command = parse_options(options.operands[1:], _SSH_VALUED, stop_at_operand=True).operands
    if command:
        call.evaluate_text(" ".join(arg.text for arg in command))
        return ""
    return stdin_reason(call, lambda text: call.evaluate_text(text, NO_STDIN)) if options.operands else ""


_SSH_VALUED = "BbcDEeFIiJLlmOopQRSWw"


def _kubectl(call: CommandCall) -> str:
    texts = call.arg_texts()
    call.shell = call.shell.fork()
    call.shell.cwd = ()
    if "--" in texts:
        call.evaluate_argv(call.args[texts.index("--") + 1 :])
    elif texts[:1] == ["rsh"]:
        call.evaluate_argv(parse_options(call.args[1:], "cn", stop_at_operand=True).operands[1:])
    return ""


def _nix(call: CommandCall) -> str:
    texts = call.arg_texts()
    if "run" in texts[:2] and "--" in texts:
        package = parse_options(call.args[texts.index("run") + 1 :]).operands[:1]
        call.evaluate_argv(
            [*(ExpandedWord(arg.text.rpartition("#")[2]) for arg in package), *call.args[texts.index("--") + 1 :]]
        )
    index = next((index for index, text in enumerate(texts) if text in {"-c", "--command"}), len(texts))
    call.evaluate_argv(call.args[index + 1 :])
    return unknown_programs.nested_command_reason(call)


def _terminal_multiplexer(call: CommandCall) -> str:
    options = parse_options(call.args, "LSfc", stop_at_operand=True)
    call.evaluate_texts(options.values("c"))
    popup = bool(options.operands) and "popup" in options.operands[0].text
    rest = parse_options(options.operands[1:], "ncstxyFeT" + "hw" * popup, stop_at_operand=True).operands
    words = [arg.text for arg in rest if arg.text not in {"Enter", "C-m"}]
    if words and options.operands[0].text.startswith(_TERMINAL_VERBS):
        call.evaluate_text(" ".join(words))
        for word in words[1:]:
            call.evaluate_text(re.sub(r"^run(?:-shell)?\s+(?:-b\s+)?", "", word).strip("'\""))
    return ""


_TERMINAL_VERBS = ("new", "split", "run", "if", "pipe", "respawn", "send", "popup", "display-popup", "confirm")


def _ansible(call: CommandCall) -> str:
    options = parse_options(call.args, "amiuMfel", ("args", "module-name", "inventory"))
    module = options.value("m", "module-name")
    name = module.text.rpartition(".")[2] if module is not None else "command"
    runs_command = name in {"command", "shell", "raw", "script", "win_shell"}
    if name in group("ansible-changes"):
        return "changes other machines"
    for argument in options.values("a", "args"):
        if re.search(r"state=absent|\b(?:mode|owner|group)=", argument.text):
            return "deletes or changes something on other machines"
        if runs_command:
            call.evaluate_text(argument.text)
    return ""


def _bwrap(call: CommandCall) -> str:
    """Handle bwrap: some options take two values, some one, the others none."""
    rest = list(call.args)
    while rest and rest[0].text.startswith("--"):
        name = rest.pop(0).text
        if name == "--":
            break
        del rest[: 2 if _TWO_VALUES.fullmatch(name) else 1 if _ONE_VALUE.fullmatch(name) else 0]
    call.evaluate_argv(rest)
    return ""


_TWO_VALUES = re.compile(
    r"--(?:ro-|dev-)?bind(?:-try|-data|-fd)?|--(?:symlink|setenv|file|chmod|overlay|add-seccomp-fd)"
)
_ONE_VALUE = re.compile(
    r"--(?:proc|dev|tmpfs|dir|chdir|hostname|uid|gid|unsetenv|mqueue|seccomp|argv0|cap-\w+|\w+-fd|perms|size)"
)


def _capsh(call: CommandCall) -> str:
    texts = call.arg_texts()
    if any(text.startswith(("--uid=0", "--user=root")) for text in texts):
        return danger_tables.CHANGES_PRIVILEGES
    if "--" in texts:
        call.evaluate_argv([ExpandedWord("bash"), *call.args[texts.index("--") + 1 :]])
    return ""


def _setarch(call: CommandCall) -> str:
    operands = parse_options(call.args, stop_at_operand=True).operands
    call.evaluate_argv(operands)
    call.evaluate_argv(operands[1:])
    return ""


def _coreutils(call: CommandCall) -> str:
    for program in parse_options(call.args, "", ("coreutils-prog",), stop_at_operand=True).values("coreutils-prog"):
        call.evaluate_argv([program, *call.args[1:]])
    return ""


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(rows("runner"), run_runner),
    **dict.fromkeys(rows("wrapper"), run_wrapper),
    "env": _env,
    "command": _command,
    "script": _script,
    "flock": _flock,
    "entr": _entr,
    **dict.fromkeys(("ssh", "autossh", "mosh"), _ssh),
    **dict.fromkeys(("kubectl", "oc", "k3s"), _kubectl),
    **dict.fromkeys(("tmux", "byobu", "zellij"), _terminal_multiplexer),
    "nix": _nix,
    "ansible": _ansible,
    "bwrap": _bwrap,
    "capsh": _capsh,
    "setarch": _setarch,
    "coreutils": _coreutils,
}
