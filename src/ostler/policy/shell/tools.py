"""Single tools that write, run or destroy in ways of their own: databases, editors, pagers, network tools."""

import re
from itertools import pairwise

from ostler.policy.shell import leaks, snippets, strangers
from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import NO_FEED, Call, Handler
from ostler.policy.shell.options import parse
from ostler.policy.shell.shells import run_script
from ostler.policy.shell.toolspecs import COMPILERS, ONE_DASH, SPECS, Spec, is_product
from ostler.policy.shell.wrappers import take_assignments

_VIM_HARMLESS = re.compile(
    r"\d*|/.*|set? (?!.*(?:sh(?:ell\w*)?|\w*prg)\b)[^|!]*|qa?(?:ll)?!?|syntax \w+|echo .*|version|colorscheme \w+",
    re.DOTALL,
)


def _by_spec(call: Call) -> str:
    return strangers.deleting_option(call) or _judge_spec(call, SPECS[call.name], call.args)


def _by_one_dash(call: Call) -> str:
    args = [Arg("-" + arg.text, arg.glob) if re.match(r"-[A-Za-z]", arg.text) else arg for arg in call.args]
    return _judge_spec(call, ONE_DASH[call.name], args, whole=True)


def _without_format(arg: Arg) -> Arg:
    """The file in `png:picture`, as ImageMagick names them."""
    return Arg(re.sub(r"^[a-zA-Z][\w-]*:(?!//)", "", arg.text), arg.glob, origin=arg.origin)


def _judge_spec(call: Call, spec: Spec, args: list[Arg], *, whole: bool = False) -> str:
    options = parse(args, spec.valued, spec.longs, whole=whole)
    for command in options.values(*spec.runs):
        call.text(command.text, NO_FEED)
    operands = options.operands[spec.operand] if len(options.operands) >= spec.least else []
    if call.name in {"convert", "montage", "composite"}:
        operands = [_without_format(arg) for arg in operands]
    outputs = [*options.values(*spec.out), *operands]
    if call.name == "aria2c" and (folder := options.value("d", "dir")):
        outputs = [Arg(f"{folder.text}/{arg.text}", arg.glob) for arg in outputs]
    return call.overwrites_any([arg for arg in outputs if not (spec.builds and arg.exact and is_product(arg.text))])


def _compiler(call: Call) -> str:
    options = parse(call.args, "oxILDUl", ("output", "outfile", "outFile"))
    texts = call.texts()
    if "-wrapper" in texts:
        call.text(" ".join(texts[texts.index("-wrapper") + 1 :][:1]).replace(",", " "), NO_FEED)
    sources = [call.feed.text] if call.feed.kind == "text" and "-" in texts else []
    sources += [text for arg in options.operands if (text := _written(call, arg))]
    if why := next(filter(None, (snippets.judge("other", text, call) for text in sources)), ""):
        return why
    outputs = options.values("o", "output", "outfile", "outFile")
    outputs += [after for before, after in pairwise(call.args) if before.text == "-MF"]
    return call.overwrites_any([arg for arg in outputs if not (arg.exact and is_product(arg.text))])


def _written(call: Call, arg: Arg) -> str:
    try:
        return call.wrote(arg) or ""
    except KeyError:
        return ""


# editors, pagers, documents


def _vim(call: Call) -> str:
    options = parse(call.args, "cSsuTwW", ("cmd", "startuptime"))
    commands = [arg.text for arg in options.values("c", "cmd")]
    commands += [arg.text[1:] for arg in options.operands if arg.text.startswith("+")]
    if options.has("version", "help", "h"):
        return ""
    scripted = call.name in {"ex", "rview"} or options.has("e", "s", "S", "W", "w", "l")
    if scripted or any(not _VIM_HARMLESS.fullmatch(command.lstrip(":")) for command in commands):
        return "an editor changes files or runs commands by script"
    return ""


def _pager(call: Call) -> str:
    options = parse(call.args, "bDhjkoOpPtTxyz")
    if any(re.match(r"\++(?![/?]).*[!|sv]", arg.text) for arg in call.args):
        return "a pager runs a command"
    return call.overwrites_any(options.values("o", "O"))


def _fzf(call: Call) -> str:
    for binding in parse(call.args, "", ("bind",)).values("bind"):
        for found in _ACTION.finditer(binding.text):
            call.text(re.sub(r"\{[^ }]*\}", HOLE, found.group(1) or found.group(2)), NO_FEED)
    return ""


_ACTION = re.compile(r"(?:execute|become|reload|transform|preview)[\w-]*(?:\(([^)]*)\)|:(.*))")


def _ffmpeg(call: Call) -> str:
    texts = call.texts()
    overwrites = ("-y" in texts or call.feed.kind in {"pipe", "text"}) and call.args
    return call.overwrites_any(call.args[-1:]) if overwrites else ""


def _named_output(call: Call) -> str:
    """Tools that name the file to write by a word of their own: `output FILE`, `-sOutputFile=FILE`."""
    outputs = [arg for before, arg in pairwise(call.args) if before.text in {"output", "-o"}]
    outputs += [Arg(arg.text.partition("=")[2]) for arg in call.args if arg.text.startswith("-sOutputFile=")]
    return call.overwrites_any(outputs)


def _qemu_img(call: Call) -> str:
    verb, *files = parse(call.args, "fFobOS").operands or [Arg("")]
    return call.overwrites_any({"create": files[:1], "convert": files[-1:]}.get(verb.text, []))


def _mail(call: Call) -> str:
    attached = parse(call.args, "asbcr", ("attach",)).has("a", "A", "attach")
    hosts = [arg for arg in call.args if "@" in arg.text]
    return "sends a file's content to somebody" if attached and hosts else leaks.fed_to(call, hosts)


def _tls_client(call: Call) -> str:
    texts = call.texts()
    return (
        leaks.fed_to(call, [arg for before, arg in pairwise(call.args) if before.text == "-connect"])
        if texts[:1] == ["s_client"]
        else ""
    )


def _magick(call: Call) -> str:
    looks = call.texts()[:1] and call.texts()[0] in {"identify", "display", "-version"}
    operands = parse(call.args).operands
    return "" if looks or len(operands) < 2 else call.overwrites_any([_without_format(operands[-1])])


# machines and networks


def _netcat(call: Call) -> str:
    options = parse(call.args, "ecpswixXIOTo", ("exec", "sh-exec", "lua-exec", "output"))
    if options.has("e", "c", "exec", "sh-exec", "lua-exec"):
        return "runs a command for whoever connects"
    if _FLUSHES.search(call.feed.text):
        return "empties a store"
    if not options.has("z", "l", "listen") and (why := leaks.fed_to(call, options.operands[:1])):
        return why
    return call.overwrites_any(options.values("output"))


_FLUSHES = re.compile(r"(?i)^\s*(?:flush_?all|flushdb|shutdown)\b", re.MULTILINE)


def _socat(call: Call) -> str:
    risky = re.compile(r"(?:exec|system|open|create|gopen|file|shell):", re.I)
    hosts = [Arg(arg.text.split(":")[1]) for arg in call.args if re.match(r"(?:tcp|udp|openssl)\d?:", arg.text, re.I)]
    if why := leaks.fed_to(call, hosts):
        return why
    return "runs commands or writes files for a connection" if any(risky.match(arg.text) for arg in call.args) else ""


def _mount(call: Call) -> str:
    operands = parse(call.args, "tolLU", ("types", "options")).operands
    return "changes what is mounted where" if operands or parse(call.args).has("a", "all") else ""


def _fdisk(call: Call) -> str:
    options = parse(call.args, "bCHSot")
    return "" if options.has("l", "list", "s", "V", "v", "help", "d", "dump", "J") else "changes a disk's partitions"


# packages and builds


def _apt(call: Call) -> str:
    settings = parse(call.args, "oct", ("option",)).values("o", "option")
    return "makes apt run a command" if any("invoke" in arg.text.lower() for arg in settings) else ""


_CMAKE_CHANGES = re.compile(r"(?i)file\s*\(\s*(?:REMOVE|RENAME|WRITE|COPY|CHMOD|DOWNLOAD)|execute_process")


def _cmake(call: Call) -> str:
    texts = call.texts()
    if why := next(filter(None, (snippets.judge("other", arg.source, call) for arg in call.args if arg.source)), ""):
        return why
    if "-P" in texts and _CMAKE_CHANGES.search(call.feed.text):
        return "runs a script that changes files or starts programs"
    if "-E" not in texts:
        return ""
    verb, *rest = call.args[texts.index("-E") + 1 :] or [Arg("")]
    if verb.text in {"remove", "remove_directory", "rm", "rename"}:
        return "deletes or moves files"
    if verb.text in {"copy", "copy_if_different", "copy_directory", "create_symlink", "create_hardlink"}:
        call.run([Arg("cp"), *rest])
    elif verb.text in {"env", "time"}:
        call.run(take_assignments(call, rest))
    elif verb.text == "chdir":
        call.run(rest[1:])
    elif verb.text == "tar":
        call.run([Arg("tar"), *rest])
    return ""


def _pytest(call: Call) -> str:
    longs = ("basetemp", "rootdir", "junitxml", "junit-xml", "report-log", "log-file")
    options = parse(call.args, "kmpcnW", longs)
    if any(call.walk.places.any_exists(arg, call.scope) for arg in options.values("basetemp")):
        return "pytest empties the folder given as basetemp"
    return call.overwrites_any(options.values("junitxml", "junit-xml", "report-log", "log-file"))


def _compose(call: Call) -> str:
    texts = call.texts()
    if "down" in texts and {"-v", "--volumes", "--rmi"} & {text.partition("=")[0] for text in texts}:
        return "deletes volumes or images"
    if "cp" in texts[:2] and len(texts) > 2 and ":" not in texts[-1]:
        names = [Arg(arg.text.rpartition(":")[2]) for arg in call.args[texts.index("cp") + 1 : -1]]
        call.run([Arg("cp"), *names, call.args[-1]])
    return (
        call.overwrites_any(parse(call.args, "o", ("output",)).values("o", "output"))
        if {"save", "export"} & set(texts[:2])
        else ""
    )


def _rename(call: Call) -> str:
    return "" if parse(call.args, "e").has("n", "nono", "no-act", "V", "version", "dry-run") else "renames files"


def _ssh_keygen(call: Call) -> str:
    options = parse(call.args, "tbfCNPOmVIsnEaZwrYDR")
    if options.has("p", "R", "H", "c"):
        return "changes a key or the list of known hosts"
    if options.has("l", "L", "y", "e", "i", "B", "F", "Q", "s", "Y"):
        return ""
    if call.feed.kind in {"text", "pipe"}:
        return "answers what it would ask before it overwrites a key"
    return call.overwrites_any(options.values("f"))


def _bang(call: Call) -> str:
    """Clients in which a line that begins with ! is a command of the shell, and others delete files over there."""
    for line in call.feed.text.splitlines() if call.feed.kind == "text" else ():
        if line.lstrip().startswith(("!", "~!")):
            call.text(line.lstrip(" ~!"), NO_FEED)
        elif call.name not in {"mail", "mailx", "telnet"} and _DELETES_THERE.match(line):
            return "deletes or moves files on another machine"
        elif (words := line.split())[:1] == ["get"] and len(words) == 3 and (why := call.overwrites(Arg(words[2]))):
            return why
        elif re.match(r"\s*(?:m?put|send)\s", line) and any(map(leaks.is_secret, line.split()[1:])):
            return "sends a secret to another machine"
    local = parse(call.args, "BbcDFiJloPRSsX").operands[1:2] if call.name == "sftp" else []
    return call.overwrites_any(local) or strangers.hands_on(call)


_DELETES_THERE = re.compile(r"\s*-?(?:rm\w*|m?del\w*|rename|mv|chmod|chown|mrm)\s")


def _go_run(call: Call) -> str:
    reasons: list[str] = []
    for arg in call.args[1:] if call.texts()[:1] == ["run"] else ():
        if why := run_script(call, arg, lambda text: reasons.append(snippets.judge("other", text, call))):
            return why
    return next(filter(None, reasons), "")


def _fsharp(call: Call) -> str:
    if call.feed.kind == "text" and call.texts()[:1] == ["fsi"]:
        return snippets.judge("other", call.feed.text, call)
    return ""


def _m4(call: Call) -> str:
    return call.overwrites_any(parse(call.args, "oDIU", ("output",)).values("o", "output"))


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(SPECS, _by_spec),
    **dict.fromkeys(ONE_DASH, _by_one_dash),
    **dict.fromkeys(COMPILERS, _compiler),
    **dict.fromkeys(("vim", "vi", "nvim", "view", "ex", "gvim", "rvim", "vimdiff", "rview"), _vim),
    **dict.fromkeys(("less", "more", "most"), _pager),
    "ffmpeg": _ffmpeg,
    **dict.fromkeys(("nc", "ncat", "netcat", "nc.traditional", "nc.openbsd"), _netcat),
    "socat": _socat,
    "qemu-img": _qemu_img,
    **dict.fromkeys(("mutt", "sendmail", "msmtp"), _mail),
    **dict.fromkeys(("pdftk", "gs"), _named_output),
    **dict.fromkeys(("magick", "gm"), _magick),
    "mount": _mount,
    **dict.fromkeys(("fdisk", "sfdisk"), _fdisk),
    **dict.fromkeys(("apt", "apt-get", "aptitude"), _apt),
    "cmake": _cmake,
    **dict.fromkeys(("pytest", "py.test"), _pytest),
    "rename": _rename,
    "ssh-keygen": _ssh_keygen,
    **dict.fromkeys(("ftp", "lftp", "sftp", "telnet", "mail", "mailx", "tftp", "nsupdate"), _bang),
}
# a second look at commands that another table knows already
MORE: dict[str, Handler] = {
    **dict.fromkeys(("fzf", "sk"), _fzf),
    **dict.fromkeys(("mail", "mailx"), _mail),
    "openssl": _tls_client,
    "m4": _m4,
    **dict.fromkeys(("docker", "docker-compose", "podman", "podman-compose", "nerdctl"), _compose),
    "go": _go_run,
    "dotnet": _fsharp,
}
