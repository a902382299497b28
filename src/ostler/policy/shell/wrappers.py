"""Commands that only run other commands: their options are peeled off, and what is left is judged."""

import re
from collections.abc import Sequence

from ostler.policy import danger
from ostler.policy import danger_programs as programs
from ostler.policy.shell import leaks, strangers
from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import NO_FEED, Call, Handler
from ostler.policy.shell.options import parse
from ostler.policy.shell.running import quoted
from ostler.policy.shell.shells import run_stdin
from ostler.policy.shell.transfers import ssh_setting
from ostler.policy.shell.wraps import FETCHERS, RUNNERS, WRAPS, Wrap

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_%]*)=(.*)", re.DOTALL)
_GLOBAL_VALUED = {"docker": "cHl", "podman": "c", "npm": "C", "pnpm": "C"}


def unwrap(call: Call, wrap: Wrap, args: Sequence[Arg]) -> str:
    """Judge what a wrapper would run."""
    options = parse(args, wrap.valued, wrap.longs, early=not wrap.late)
    for code in options.values(*wrap.code):
        call.text(code.text)
    rest = options.operands[wrap.skip :]
    if rest and rest[0].text in {"--", "-"}:
        rest = rest[1:]
    if wrap.env:
        rest = take_assignments(call, rest)
    if rest and wrap.shell:
        call.text(" ".join(arg.text for arg in rest))
    elif rest:
        if " " in rest[0].text:
            call.text(rest[0].text)
        call.run(rest)
    return call.overwrites_any(options.values(*wrap.out))


def take_assignments(call: Call, args: list[Arg]) -> list[Arg]:
    """Look at the `NAME=value` words before a command, and give back the command."""
    for at, arg in enumerate(args):
        found = _ASSIGNMENT.fullmatch(arg.text)
        if not found:
            return args[at:]
        call.walk.assigned(found.group(1), found.group(2), call.scope)
        call.scope.assign(found.group(1), found.group(2))
    return []


def _wrap(call: Call) -> str:
    return unwrap(call, WRAPS[call.name], call.args)


def _runner(call: Call) -> str:
    subs, wrap = RUNNERS[call.name]
    operands = parse(call.args, _GLOBAL_VALUED.get(call.name, ""), ("context", "host", "file"), early=True).operands
    if [arg.text for arg in operands[:1]] == ["compose"]:
        longs = ("file", "project-name", "profile", "env-file", "project-directory")
        operands = [operands[0], *parse(operands[1:], "fp", longs, early=True).operands]
    if operands and operands[0].text in programs.BINARIES and call.name in programs.MANAGERS:
        call.run(operands)
    for sub in subs:
        words = sub.split()
        if [arg.text for arg in operands[: len(words)]] == words:
            rest = operands[len(words) :]
            if call.name == "uv" and rest and (rest[0].text == "-" or rest[0].text.endswith(".py")):
                rest = [Arg("python"), *rest]
            call.scope = call.scope.fork()
            call.scope.own = call.name not in FETCHERS
            if wrap is RUNNERS["docker"][1]:
                call.scope.cwd = ()
            words = [arg.text for arg in rest]
            behind = rest[words.index("--") + 1 :] if "--" in words else []
            if behind and behind[0].text[:1] != "-":
                call.run(behind)
            return unwrap(call, wrap, rest) or _container(call, rest)
    return ""


def _container(call: Call, args: list[Arg]) -> str:
    """A container that gets hold of the whole machine, or another program to start with."""
    if "docker" not in call.name and call.name not in {"podman", "nerdctl"}:
        return ""
    options = parse(args, RUNNERS["docker"][1].valued, RUNNERS["docker"][1].longs, early=True)
    for entry in options.values("entrypoint"):
        call.run([entry, *options.operands[1:]])
    mounts = options.values("v", "volume", "mount")
    if options.has("privileged") or any(re.match(r"/:|.*(?:source|src)=/(?:,|$)", arg.text) for arg in mounts):
        return "gives a container the whole machine"
    if any(_HOST_FOLDER.match(arg.text) and not arg.text.endswith((":ro", ",readonly")) for arg in mounts):
        return "lets a container write to the machine's own files"
    if any(leaks.ENGINE_SOCKET.search(arg.text) for arg in mounts):
        return "gives a container the engine, and with it the whole machine"
    return ""


_HOST_FOLDER = re.compile(
    r"(?:.*\b(?:source|src)=)?(?:/(?:etc|root|boot|usr|s?bin|lib\w*|dev)(?:/[^:,]*)?|[^:,]*/\.(?:ssh|gnupg|aws))/?(?::|,|$)"
)


def _env(call: Call) -> str:
    at = next((at for at, arg in enumerate(call.args) if _SPLITS.match(arg.text)), -1)
    if at >= 0:  # what follows is handed on as it is, after the text that is split
        text = _SPLITS.sub("", call.args[at].text)
        given = [Arg(text)] if text else call.args[at + 1 : at + 2]
        rest = call.args[at + 1 + (not text) :]
        call.text(" ".join(["env", *(arg.text for arg in given), *(quoted(arg.text) for arg in rest)]))
        return ""
    options = parse(call.args, "uC", ("unset", "chdir"), early=True)
    call.scope = call.scope.fork()
    for folder in options.values("C", "chdir"):
        call.scope.change_folder(folder.text, there=True)
    rest = options.operands[1:] if [arg.text for arg in options.operands[:1]] == ["-"] else options.operands
    rest = take_assignments(call, rest)
    call.run(rest)
    return ""


_SPLITS = re.compile(r"-[iv0]*S|--split-string=?")


def _command(call: Call) -> str:
    options = parse(call.args, early=True)
    if not options.has("v", "V"):
        call.run(options.operands)
    return ""


def _script(call: Call) -> str:
    longs = ("command", "log-io", "log-out", "log-in", "log-timing")
    options = parse(call.args, "cIOBTEmo", longs)
    for code in options.values("c", "command"):
        call.text(code.text)
    call.run(options.operands[1:])
    return call.overwrites_any([*options.operands[:1], *options.values("O", "B", "T", "log-out", "log-io")])


def _flock(call: Call) -> str:
    rest = parse(call.args, "wE", ("timeout", "wait", "conflict-exit-code"), early=True).operands[1:]
    if len(rest) > 1 and rest[0].text in {"-c", "--command"}:
        call.text(rest[1].text)
    else:
        call.run(rest)
    return ""


def _entr(call: Call) -> str:
    options = parse(call.args, early=True)
    if options.has("s"):
        call.text(" ".join(arg.text for arg in options.operands))
    else:
        call.run([Arg(arg.text.replace("/_", HOLE)) for arg in options.operands])
    return ""


def _ssh(call: Call) -> str:
    options = parse(call.args, _SSH_VALUED, early=True)
    for setting in options.values("o"):
        ssh_setting(call, setting)
    if any(arg.piped for arg in options.values("F")):
        return "is configured by what comes through a pipe"
    call.scope = call.scope.fork()
    call.scope.cwd = ()
    command = parse(options.operands[1:], _SSH_VALUED, early=True).operands
    if command:
        call.text(" ".join(arg.text for arg in command))
        return ""
    return run_stdin(call, lambda text: call.text(text, NO_FEED)) if options.operands else ""


_SSH_VALUED = "BbcDEeFIiJLlmOopQRSWw"


def _kubectl(call: Call) -> str:
    texts = call.texts()
    call.scope = call.scope.fork()
    call.scope.cwd = ()
    if "--" in texts:
        call.run(call.args[texts.index("--") + 1 :])
    elif texts[:1] == ["rsh"]:
        call.run(parse(call.args[1:], "cn", early=True).operands[1:])
    return ""


def _nix(call: Call) -> str:
    texts = call.texts()
    if "run" in texts[:2] and "--" in texts:
        package = parse(call.args[texts.index("run") + 1 :]).operands[:1]
        call.run([*(Arg(arg.text.rpartition("#")[2]) for arg in package), *call.args[texts.index("--") + 1 :]])
    at = next((at for at, text in enumerate(texts) if text in {"-c", "--command"}), len(texts))
    call.run(call.args[at + 1 :])
    return strangers.hands_on(call)


def _terminals(call: Call) -> str:
    options = parse(call.args, "LSfc", early=True)
    for code in options.values("c"):
        call.text(code.text)
    popup = bool(options.operands) and "popup" in options.operands[0].text
    rest = parse(options.operands[1:], "ncstxyFeT" + "hw" * popup, early=True).operands
    words = [arg.text for arg in rest if arg.text not in {"Enter", "C-m"}]
    if words and options.operands[0].text.startswith(_TERMINAL_VERBS):
        call.text(" ".join(words))
        for word in words[1:]:
            call.text(re.sub(r"^run(?:-shell)?\s+(?:-b\s+)?", "", word).strip("'\""))
    return ""


_TERMINAL_VERBS = ("new", "split", "run", "if", "pipe", "respawn", "send", "popup", "display-popup", "confirm")


def _ansible(call: Call) -> str:
    options = parse(call.args, "amiuMfel", ("args", "module-name", "inventory"))
    module = options.value("m", "module-name")
    runs = module is None or module.text.rpartition(".")[2] in {"command", "shell", "raw", "script", "win_shell"}
    if module is not None and module.text.rpartition(".")[2] in _ANSIBLE_CHANGES:
        return "changes other machines"
    for given in options.values("a", "args"):
        if re.search(r"state=absent|\b(?:mode|owner|group)=", given.text):
            return "deletes or changes something on other machines"
        if runs:
            call.text(given.text)
    return ""


_ANSIBLE_CHANGES = frozenset(
    danger.listed(
        "lineinfile replace blockinfile reboot shutdown win_reboot user group mount parted filesystem lvol iptables ufw"
        " cron authorized_key"
    )
)


def _bwrap(call: Call) -> str:
    """bwrap: some options take two values, some one, the rest none."""
    rest = list(call.args)
    while rest and rest[0].text.startswith("--"):
        name = rest.pop(0).text
        if name == "--":
            break
        del rest[: 2 if _TWO_VALUES.fullmatch(name) else 1 if _ONE_VALUE.fullmatch(name) else 0]
    call.run(rest)
    return ""


_TWO_VALUES = re.compile(
    r"--(?:ro-|dev-)?bind(?:-try|-data|-fd)?|--(?:symlink|setenv|file|chmod|overlay|add-seccomp-fd)"
)
_ONE_VALUE = re.compile(
    r"--(?:proc|dev|tmpfs|dir|chdir|hostname|uid|gid|unsetenv|mqueue|seccomp|argv0|cap-\w+|\w+-fd|perms|size)"
)


def _capsh(call: Call) -> str:
    texts = call.texts()
    if any(text.startswith(("--uid=0", "--user=root")) for text in texts):
        return danger.RAISES
    if "--" in texts:
        call.run([Arg("bash"), *call.args[texts.index("--") + 1 :]])
    return ""


def _setarch(call: Call) -> str:
    operands = parse(call.args, early=True).operands
    call.run(operands)
    call.run(operands[1:])
    return ""


def _coreutils(call: Call) -> str:
    for program in parse(call.args, "", ("coreutils-prog",), early=True).values("coreutils-prog"):
        call.run([program, *call.args[1:]])
    return ""


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(RUNNERS, _runner),
    **dict.fromkeys(WRAPS, _wrap),
    "env": _env,
    "command": _command,
    "script": _script,
    "flock": _flock,
    "entr": _entr,
    **dict.fromkeys(("ssh", "autossh", "mosh"), _ssh),
    **dict.fromkeys(("kubectl", "oc", "k3s"), _kubectl),
    **dict.fromkeys(("tmux", "byobu", "zellij"), _terminals),
    "nix": _nix,
    "ansible": _ansible,
    "bwrap": _bwrap,
    "capsh": _capsh,
    "setarch": _setarch,
    "coreutils": _coreutils,
}
