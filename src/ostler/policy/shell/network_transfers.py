"""Handlers for rsync, scp, curl and wget: local overwrites and commands in options."""

import re

from ostler.policy.danger_tables import CHANGES_MODES
from ostler.policy.shell import data_leaks
from ostler.policy.shell.command_call import CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.file_commands import copy_overwrite_reason
from ostler.policy.shell.option_parser import ParsedOptions, parse_options
from ostler.policy.shell.program_table import argument_spec

_REMOTE_PATH = re.compile(rf"[\w.@{UNKNOWN_TEXT}-]+:|\w+://")  # a file on another machine


def _parse_arguments(call: CommandCall) -> tuple[ParsedOptions, list[ExpandedWord]]:
    """Parse the arguments by the row of the program. Return also the files that its options name as output."""
    spec = argument_spec(call.name, "arguments")
    options = parse_options(call.args, spec.shorts_with_value, spec.longs_with_value)
    return options, options.values(*spec.output_options)


def _rsync(call: CommandCall) -> str:
    options, _ = _parse_arguments(call)
    call.evaluate_texts(options.values("e", "rsh", "rsync-path"))
    if options.has("n", "dry-run") or len(options.operands) < 2:
        return ""
    if any(option.startswith(("--del", "--remove-s", "--force")) for option, _ in options.pairs):
        return "deletes files at the target or the source"
    if any(option in {"--chown", "--chmod"} for option, _ in options.pairs):
        return CHANGES_MODES
    target = options.operands[-1]
    if options.has("ignore-existing") or _REMOTE_PATH.match(target.text):
        return ""
    if not target.exact or call.evaluator.filesystem.may_exist(target, call.shell):
        return call.overwrite_reason(target) or f"may overwrite files in {target.text}"
    return ""


def _scp(call: CommandCall) -> str:
    options = parse_options(call.args, "cFiJloPSDX")
    call.evaluate_texts(options.values("S"))
    for setting in options.values("o"):
        evaluate_ssh_setting(call, setting)
    if len(options.operands) < 2 or _REMOTE_PATH.match(options.operands[-1].text):
        return ""
    names = [ExpandedWord(arg.text.rpartition(":")[2], arg.is_glob) for arg in options.operands[:-1]]
    return copy_overwrite_reason(call, options.operands[-1], names)


def evaluate_ssh_setting(call: CommandCall, setting: ExpandedWord) -> None:
    """Evaluate the command in an ssh option such as ProxyCommand."""
    match = re.match(r"\s*(?:proxycommand|localcommand|knownhostscommand)\s*[= ]\s*(.*)", setting.text, re.I | re.S)
    if match and match.group(1).strip().lower() != "none":
        call.evaluate_text(match.group(1))


def _curl(call: CommandCall) -> str:
    options, targets = _parse_arguments(call)
    urls = [*options.operands, *options.values("url")]
    if reason := data_leaks.request_reason(
        urls, _last_upper(options.values("X", "request")), uploads=_curl_uploads(options)
    ):
        return reason
    if any(data_leaks.ENGINE_SOCKET.search(arg.text) for arg in options.values("unix-socket")) and (
        _last_upper(options.values("X", "request")) not in {"", "GET", "HEAD"} or options.has("d", "data", "json")
    ):
        return "controls the container engine, which has full access to the machine"
    if _CURL_CONFIG_OPTION.search(call.stdin.text) and any(arg.text == "-" for arg in options.values("K", "config")):
        return "reads options that write or send a file"
    if options.has("Q", "quote", "postquote", "prequote"):
        return "makes a server delete, move or change files"
    folder = options.value("output-dir")
    if options.has("O", "remote-name", "remote-name-all"):
        names = [ExpandedWord(arg.text.partition("?")[0].rpartition("/")[2], arg.is_glob) for arg in options.operands]
        targets += [name for name in names if name.exact]  # an unknown name depends on the server
    if folder is not None:
        targets = [ExpandedWord(f"{folder.text}/{arg.text}", arg.is_glob) for arg in targets]
    return _download_reason(call, targets)


_CURL_CONFIG_OPTION = re.compile(
    r"^\s*-*(?:o|O|T|F|d|X|output|remote-name|upload-file|form|data\S*|request)\b", re.MULTILINE
)


def _last_upper(values: list[ExpandedWord]) -> str:
    return values[-1].text.upper() if values else ""


def _curl_uploads(options: ParsedOptions) -> bool:
    """Return whether the content of a file is sent."""
    data = options.values("d", "data", "data-ascii", "data-binary", "data-urlencode", "json")
    forms = options.values("F", "form")
    return (
        options.has("T", "upload-file")
        or any(arg.text.startswith("@") or data_leaks.has_read_output(arg) for arg in data)
        or any(re.match(r"[^=]*=[@<]", arg.text) for arg in forms)
    )


def _download_reason(call: CommandCall, targets: list[ExpandedWord]) -> str:
    reason = call.any_overwrite_reason(targets)
    for arg in targets:
        for path in call.shell.resolve_paths(arg.text) if arg.exact else ():
            call.evaluator.written_files[path] = None
    return reason


def _wget(call: CommandCall) -> str:
    options, targets = _parse_arguments(call)
    uploads = options.has("post-file", "body-file") or any(
        map(data_leaks.has_read_output, options.values("post-data", "body-data"))
    )
    if reason := data_leaks.request_reason(options.operands, _last_upper(options.values("method")), uploads=uploads):
        return reason
    if any("askpass" in arg.text for arg in call.args):
        return "runs a command to ask for a password"
    folder = "".join(f"{arg.text}/" for arg in options.values("P", "directory-prefix")[-1:])
    names = [url.text.partition("?")[0].rpartition("/")[2] or "index.html" for url in options.operands]
    if folder and (reason := _download_reason(call, [ExpandedWord(folder + name) for name in names])):
        return reason
    for name in names:
        call.evaluator.written_files.update(dict.fromkeys(call.shell.resolve_paths(folder + name)))
    return _download_reason(call, targets)


def _httpie(call: CommandCall) -> str:
    method, *items = parse_options(
        call.args, "oasA", ("output", "auth", "session", "auth-type", "verify")
    ).operands or [ExpandedWord("")]
    if not re.fullmatch(r"[A-Za-z]+", method.text):
        method, items = ExpandedWord(""), [method, *items]
    uploads = any(re.match(r"[^=:@/]*:?=?@", arg.text) for arg in items[1:]) or call.stdin.kind == "file"
    return data_leaks.request_reason(items[:1], method.text.upper(), uploads=uploads)


def _downloader(call: CommandCall) -> str:
    for url in parse_options(call.args, "od").operands:
        call.evaluator.written_files.update(
            dict.fromkeys(call.shell.resolve_paths(url.text.partition("?")[0].rpartition("/")[2]))
        )
    return ""


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(("aria2c", "axel"), _downloader),
    "rsync": _rsync,
    "scp": _scp,
    "curl": _curl,
    "wget": _wget,
    **dict.fromkeys(("http", "https", "xh", "xhs"), _httpie),
}
