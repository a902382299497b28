"""Handlers for single tools with their own ways to write, run or destroy."""

import re
from itertools import pairwise

from ostler.policy.shell import data_leaks, one_liners, unknown_programs
from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.program_table import ArgumentSpec, argument_spec, group, is_compiler_output, rows
from ostler.policy.shell.shell_builtins import script_reason
from ostler.policy.shell.wrappers import take_assignments

_VIM_HARMLESS = re.compile(
    r"\d*|/.*|set? (?!.*(?:sh(?:ell\w*)?|\w*prg)\b)[^|!]*|qa?(?:ll)?!?|syntax \w+|echo .*|version|colorscheme \w+",
    re.DOTALL,
)


def check_tool(call: CommandCall) -> str:
    """Check a tool by its row."""
    return unknown_programs.deleting_option_reason(call) or _spec_reason(
        call, argument_spec(call.name, "tool"), call.args
    )


def check_one_dash_tool(call: CommandCall) -> str:
    """Check a tool whose long options start with one dash by its row."""
    args = [ExpandedWord("-" + arg.text, arg.is_glob) if re.match(r"-[A-Za-z]", arg.text) else arg for arg in call.args]
    return _spec_reason(call, argument_spec(call.name, "one-dash-tool"), args, exact_names=True)


def _strip_format_prefix(arg: ExpandedWord) -> ExpandedWord:
    """Return the file name without ImageMagick's format prefix (`png:picture`)."""
    return ExpandedWord(re.sub(r"^[a-zA-Z][\w-]*:(?!//)", "", arg.text), arg.is_glob, origin=arg.origin)


def _spec_reason(call: CommandCall, spec: ArgumentSpec, args: list[ExpandedWord], *, exact_names: bool = False) -> str:
    options = parse_options(args, spec.shorts_with_value, spec.longs_with_value, exact_names=exact_names)
    call.evaluate_texts(options.values(*spec.command_options), NO_STDIN)
    operands = options.operands[spec.output_operands] if len(options.operands) >= spec.min_operands else []
    if call.name in {"convert", "montage", "composite"}:
        operands = [_strip_format_prefix(arg) for arg in operands]
    outputs = [*options.values(*spec.output_options), *operands]
    if call.name == "aria2c" and (folder := options.value("d", "dir")):
        outputs = [ExpandedWord(f"{folder.text}/{arg.text}", arg.is_glob) for arg in outputs]
    return call.any_overwrite_reason(
        [arg for arg in outputs if not (spec.is_build_tool and arg.exact and is_compiler_output(arg.text))]
    )


def _compiler(call: CommandCall) -> str:
    options = parse_options(call.args, "oxILDUl", ("output", "outfile", "outFile"))
    texts = call.arg_texts()
    if "-wrapper" in texts:
        call.evaluate_text(" ".join(texts[texts.index("-wrapper") + 1 :][:1]).replace(",", " "), NO_STDIN)
    sources = [call.stdin.text] if call.stdin.kind == "text" and "-" in texts else []
    sources += [text for arg in options.operands if (text := _written_text(call, arg))]
    if reason := next(filter(None, (one_liners.danger_reason("other", text, call) for text in sources)), ""):
        return reason
    outputs = options.values("o", "output", "outfile", "outFile")
    outputs += [value for option, value in pairwise(call.args) if option.text == "-MF"]
    return call.any_overwrite_reason([arg for arg in outputs if not (arg.exact and is_compiler_output(arg.text))])


def _written_text(call: CommandCall, arg: ExpandedWord) -> str:
    try:
        return call.written_text(arg) or ""
    except KeyError:
        return ""


# editors, pagers and documents


def _vim(call: CommandCall) -> str:
    options = parse_options(call.args, "cSsuTwW", ("cmd", "startuptime"))
    commands = [arg.text for arg in options.values("c", "cmd")]
    commands += [arg.text[1:] for arg in options.operands if arg.text.startswith("+")]
    if options.has("version", "help", "h"):
        return ""
    scripted = call.name in {"ex", "rview"} or options.has("e", "s", "S", "W", "w", "l")
    if scripted or any(not _VIM_HARMLESS.fullmatch(command.lstrip(":")) for command in commands):
        return "an editor changes files or runs commands by script"
    return ""


def _pager(call: CommandCall) -> str:
    options = parse_options(call.args, "bDhjkoOpPtTxyz")
    if any(re.match(r"\++(?![/?]).*[!|sv]", arg.text) for arg in call.args):
        return "a pager runs a command"
    return call.any_overwrite_reason(options.values("o", "O"))


def _fzf(call: CommandCall) -> str:
    for binding in parse_options(call.args, "", ("bind",)).values("bind"):
        for match in _FZF_ACTION.finditer(binding.text):
            call.evaluate_text(re.sub(r"\{[^ }]*\}", UNKNOWN_TEXT, match.group(1) or match.group(2)), NO_STDIN)
    return ""


_FZF_ACTION = re.compile(r"(?:execute|become|reload|transform|preview)[\w-]*(?:\(([^)]*)\)|:(.*))")


def _ffmpeg(call: CommandCall) -> str:
    texts = call.arg_texts()
    overwrites = ("-y" in texts or call.stdin.kind in {"pipe", "text"}) and call.args
    return call.any_overwrite_reason(call.args[-1:]) if overwrites else ""


def _named_output(call: CommandCall) -> str:
    """Handle tools with unusual output options: `output FILE`, `-sOutputFile=FILE`."""
    outputs = [arg for option, arg in pairwise(call.args) if option.text in {"output", "-o"}]
    outputs += [ExpandedWord(arg.text.partition("=")[2]) for arg in call.args if arg.text.startswith("-sOutputFile=")]
    return call.any_overwrite_reason(outputs)


def _qemu_img(call: CommandCall) -> str:
    verb, *files = parse_options(call.args, "fFobOS").operands or [ExpandedWord("")]
    return call.any_overwrite_reason({"create": files[:1], "convert": files[-1:]}.get(verb.text, []))


def _mail(call: CommandCall) -> str:
    attached = parse_options(call.args, "asbcr", ("attach",)).has("a", "A", "attach")
    hosts = [arg for arg in call.args if "@" in arg.text]
    return "sends a file by e-mail" if attached and hosts else data_leaks.upload_reason(call, hosts)


def _tls_client(call: CommandCall) -> str:
    texts = call.arg_texts()
    return (
        data_leaks.upload_reason(call, [arg for option, arg in pairwise(call.args) if option.text == "-connect"])
        if texts[:1] == ["s_client"]
        else ""
    )


def _magick(call: CommandCall) -> str:
    is_read_only = call.arg_texts()[:1] and call.arg_texts()[0] in {"identify", "display", "-version"}
    operands = parse_options(call.args).operands
    return "" if is_read_only or len(operands) < 2 else call.any_overwrite_reason([_strip_format_prefix(operands[-1])])


# machines and networks


def _netcat(call: CommandCall) -> str:
    options = parse_options(call.args, "ecpswixXIOTo", ("exec", "sh-exec", "lua-exec", "output"))
    if options.has("e", "c", "exec", "sh-exec", "lua-exec"):
        return "runs a command for every connection"
    if _FLUSH_COMMAND.search(call.stdin.text):
        return "empties a database"
    if not options.has("z", "l", "listen") and (reason := data_leaks.upload_reason(call, options.operands[:1])):
        return reason
    return call.any_overwrite_reason(options.values("output"))


_FLUSH_COMMAND = re.compile(r"(?i)^\s*(?:flush_?all|flushdb|shutdown)\b", re.MULTILINE)


def _socat(call: CommandCall) -> str:
    risky = re.compile(r"(?:exec|system|open|create|gopen|file|shell):", re.I)
    hosts = [
        ExpandedWord(arg.text.split(":")[1])
        for arg in call.args
        if re.match(r"(?:tcp|udp|openssl)\d?:", arg.text, re.I)
    ]
    if reason := data_leaks.upload_reason(call, hosts):
        return reason
    return "runs commands or writes files for a connection" if any(risky.match(arg.text) for arg in call.args) else ""


def _mount(call: CommandCall) -> str:
    operands = parse_options(call.args, "tolLU", ("types", "options")).operands
    return "changes what is mounted where" if operands or parse_options(call.args).has("a", "all") else ""


def _fdisk(call: CommandCall) -> str:
    options = parse_options(call.args, "bCHSot")
    return "" if options.has("l", "list", "s", "V", "v", "help", "d", "dump", "J") else "changes a disk's partitions"


# packages and builds


def _apt(call: CommandCall) -> str:
    settings = parse_options(call.args, "oct", ("option",)).values("o", "option")
    return "makes apt run a command" if any("invoke" in arg.text.lower() for arg in settings) else ""


_CMAKE_CHANGES = re.compile(r"(?i)file\s*\(\s*(?:REMOVE|RENAME|WRITE|COPY|CHMOD|DOWNLOAD)|execute_process")


def _cmake(call: CommandCall) -> str:
    texts = call.arg_texts()
    if reason := next(
        filter(
            None, (one_liners.danger_reason("other", arg.source_text, call) for arg in call.args if arg.source_text)
        ),
        "",
    ):
        return reason
    if "-P" in texts and _CMAKE_CHANGES.search(call.stdin.text):
        return "runs a script that changes files or starts programs"
    if "-E" not in texts:
        return ""
    verb, *rest = call.args[texts.index("-E") + 1 :] or [ExpandedWord("")]
    if verb.text in {"remove", "remove_directory", "rm", "rename"}:
        return "deletes or moves files"
    if verb.text in {"copy", "copy_if_different", "copy_directory", "create_symlink", "create_hardlink"}:
        call.evaluate_argv([ExpandedWord("cp"), *rest])
    elif verb.text in {"env", "time"}:
        call.evaluate_argv(take_assignments(call, rest))
    elif verb.text == "chdir":
        call.evaluate_argv(rest[1:])
    elif verb.text == "tar":
        call.evaluate_argv([ExpandedWord("tar"), *rest])
    return ""


def _pytest(call: CommandCall) -> str:
    longs = ("basetemp", "rootdir", "junitxml", "junit-xml", "report-log", "log-file")
    options = parse_options(call.args, "kmpcnW", longs)
    if any(call.evaluator.filesystem.may_exist(arg, call.shell) for arg in options.values("basetemp")):
        return "pytest empties the folder given as basetemp"
    return call.any_overwrite_reason(options.values("junitxml", "junit-xml", "report-log", "log-file"))


def _compose(call: CommandCall) -> str:
    texts = call.arg_texts()
    if "down" in texts and {"-v", "--volumes", "--rmi"} & {text.partition("=")[0] for text in texts}:
        return "deletes volumes or images"
    if "cp" in texts[:2] and len(texts) > 2 and ":" not in texts[-1]:
        names = [ExpandedWord(arg.text.rpartition(":")[2]) for arg in call.args[texts.index("cp") + 1 : -1]]
        call.evaluate_argv([ExpandedWord("cp"), *names, call.args[-1]])
    return (
        call.any_overwrite_reason(parse_options(call.args, "o", ("output",)).values("o", "output"))
        if {"save", "export"} & set(texts[:2])
        else ""
    )


def _rename(call: CommandCall) -> str:
    return (
        "" if parse_options(call.args, "e").has("n", "nono", "no-act", "V", "version", "dry-run") else "renames files"
    )


def _ssh_keygen(call: CommandCall) -> str:
    options = parse_options(call.args, "tbfCNPOmVIsnEaZwrYDR")
    if options.has("p", "R", "H", "c"):
        return "changes a key or the list of known hosts"
    if options.has("l", "L", "y", "e", "i", "B", "F", "Q", "s", "Y"):
        return ""
    if call.stdin.kind in {"text", "pipe"}:
        return "confirms overwriting a key automatically"
    return call.any_overwrite_reason(options.values("f"))


def _bang_client(call: CommandCall) -> str:
    """Handle clients whose input can run local commands (`!…`), and delete, fetch or send files."""
    for line in call.stdin.text.splitlines() if call.stdin.kind == "text" else ():
        if line.lstrip().startswith(("!", "~!")):
            call.evaluate_text(line.lstrip(" ~!"), NO_STDIN)
        elif call.name not in {"mail", "mailx", "telnet"} and _REMOTE_DELETION.match(line):
            return "deletes or moves files on another machine"
        elif (
            (words := line.split())[:1] == ["get"]
            and len(words) == 3
            and (reason := call.overwrite_reason(ExpandedWord(words[2])))
        ):
            return reason
        elif re.match(r"\s*(?:m?put|send)\s", line) and any(map(data_leaks.is_secret_path, line.split()[1:])):
            return "sends a secret to another machine"
    local_files = parse_options(call.args, "BbcDFiJloPRSsX").operands[1:2] if call.name == "sftp" else []
    return call.any_overwrite_reason(local_files) or unknown_programs.nested_command_reason(call)


_REMOTE_DELETION = re.compile(r"\s*-?(?:rm\w*|m?del\w*|rename|mv|chmod|chown|mrm)\s")


def _go_run(call: CommandCall) -> str:
    reasons: list[str] = []
    for arg in call.args[1:] if call.arg_texts()[:1] == ["run"] else ():
        if reason := script_reason(
            call, arg, lambda text: reasons.append(one_liners.danger_reason("other", text, call))
        ):
            return reason
    return next(filter(None, reasons), "")


def _fsharp(call: CommandCall) -> str:
    if call.stdin.kind == "text" and call.arg_texts()[:1] == ["fsi"]:
        return one_liners.danger_reason("other", call.stdin.text, call)
    return ""


def _m4(call: CommandCall) -> str:
    return call.any_overwrite_reason(parse_options(call.args, "oDIU", ("output",)).values("o", "output"))


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(rows("tool"), check_tool),
    **dict.fromkeys(rows("one-dash-tool"), check_one_dash_tool),
    **dict.fromkeys(group("compilers"), _compiler),
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
    **dict.fromkeys(("ftp", "lftp", "sftp", "telnet", "mail", "mailx", "tftp", "nsupdate"), _bang_client),
}
# additional handlers for commands that have a handler in another table
EXTRA_HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(("fzf", "sk"), _fzf),
    **dict.fromkeys(("mail", "mailx"), _mail),
    "openssl": _tls_client,
    "m4": _m4,
    **dict.fromkeys(("docker", "docker-compose", "podman", "podman-compose", "nerdctl"), _compose),
    "go": _go_run,
    "dotnet": _fsharp,
}
