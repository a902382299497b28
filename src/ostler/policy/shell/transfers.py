"""Copies to and from other machines: what they overwrite here, and the commands hidden in their options."""

import re

from ostler.policy.danger import RIGHTS
from ostler.policy.shell import leaks
from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import Call, Handler
from ostler.policy.shell.files import into
from ostler.policy.shell.options import Options, parse

_ELSEWHERE = re.compile(rf"[\w.@{HOLE}-]+:|\w+://")  # a file on another machine


def _rsync(call: Call) -> str:
    options = parse(call.args, "efTBMC", _RSYNC_LONGS)
    for shell in options.values("e", "rsh", "rsync-path"):
        call.text(shell.text)
    if options.has("n", "dry-run") or len(options.operands) < 2:
        return ""
    if any(given.startswith(("--del", "--remove-s", "--force")) for given, _ in options.given):
        return "deletes files at the target or the source"
    if any(given in {"--chown", "--chmod"} for given, _ in options.given):
        return RIGHTS
    target = options.operands[-1]
    if options.has("ignore-existing") or _ELSEWHERE.match(target.text):
        return ""
    if not target.exact or call.walk.places.any_exists(target, call.scope):
        return call.overwrites(target) or f"may overwrite files in {target.text}"
    return ""


_RSYNC_LONGS = (
    "rsh", "rsync-path", "exclude", "include", "exclude-from", "include-from", "files-from", "filter", "chmod", "chown",
    "temp-dir", "backup-dir", "suffix", "bwlimit", "log-file", "password-file", "port", "out-format", "compare-dest",
    "copy-dest", "link-dest", "max-size", "min-size", "partial-dir", "timeout",
)  # fmt: skip


def _scp(call: Call) -> str:
    options = parse(call.args, "cFiJloPSDX")
    for program in options.values("S"):
        call.text(program.text)
    for setting in options.values("o"):
        ssh_setting(call, setting)
    if len(options.operands) < 2 or _ELSEWHERE.match(options.operands[-1].text):
        return ""
    names = [Arg(arg.text.rpartition(":")[2], arg.glob) for arg in options.operands[:-1]]
    return into(call, options.operands[-1], names)


def ssh_setting(call: Call, setting: Arg) -> None:
    """Judge the command in an ssh option such as ProxyCommand."""
    found = re.match(r"\s*(?:proxycommand|localcommand|knownhostscommand)\s*[= ]\s*(.*)", setting.text, re.I | re.S)
    if found and found.group(1).strip().lower() != "none":
        call.text(found.group(1))


def _curl(call: Call) -> str:
    options = parse(call.args, _CURL_VALUED, _CURL_LONGS)
    urls = [*options.operands, *options.values("url")]
    if why := leaks.request(urls, _last(options.values("X", "request")), uploads=_curl_uploads(options)):
        return why
    if any(leaks.ENGINE_SOCKET.search(arg.text) for arg in options.values("unix-socket")) and (
        _last(options.values("X", "request")) not in {"", "GET", "HEAD"} or options.has("d", "data", "json")
    ):
        return "makes the container engine do something, and it may do everything"
    if _CONFIGURES.search(call.feed.text) and any(arg.text == "-" for arg in options.values("K", "config")):
        return "reads options that write or send a file"
    if options.has("Q", "quote", "postquote", "prequote"):
        return "makes a server delete, move or change files"
    folder = options.value("output-dir")
    targets = options.values(*_CURL_OUTPUTS)
    if options.has("O", "remote-name", "remote-name-all"):
        names = [Arg(arg.text.partition("?")[0].rpartition("/")[2], arg.glob) for arg in options.operands]
        targets += [name for name in names if name.exact]  # a name that is not known is as the server has it
    if folder is not None:
        targets = [Arg(f"{folder.text}/{arg.text}", arg.glob) for arg in targets]
    return _downloads(call, targets)


_CONFIGURES = re.compile(r"^\s*-*(?:o|O|T|F|d|X|output|remote-name|upload-file|form|data\S*|request)\b", re.MULTILINE)


def _last(values: list[Arg]) -> str:
    return values[-1].text.upper() if values else ""


def _curl_uploads(options: Options) -> bool:
    """Whether the content of a file is sent."""
    data = options.values("d", "data", "data-ascii", "data-binary", "data-urlencode", "json")
    forms = options.values("F", "form")
    return (
        options.has("T", "upload-file")
        or any(arg.text.startswith("@") or leaks.is_read(arg) for arg in data)
        or any(re.match(r"[^=]*=[@<]", arg.text) for arg in forms)
    )


def _downloads(call: Call, targets: list[Arg]) -> str:
    why = call.overwrites_any(targets)
    for arg in targets:
        for path in call.scope.places(arg.text) if arg.exact else ():
            call.walk.written[path] = None
    return why


_CURL_VALUED = "AbcCdDeEFhHKmoPQrtTuUwxXyYz"
_CURL_LONGS = (
    "output", "output-dir", "data", "data-raw", "data-binary", "data-urlencode", "header", "user", "request", "cookie",
    "cookie-jar", "dump-header", "form", "max-time", "connect-timeout", "retry", "url", "user-agent", "write-out",
    "upload-file", "proxy", "cacert", "cert", "key", "trace", "trace-ascii", "stderr", "libcurl", "etag-save", "hsts",
    "alt-svc", "config", "referer", "range", "resolve", "json", "retry-delay", "retry-max-time", "limit-rate",
    "unix-socket", "quote", "data-ascii", "form-string", "oauth2-bearer", "connect-to", "interface", "proxy-user",
)  # fmt: skip
_CURL_OUTPUTS = (
    "o", "output", "D", "dump-header", "c", "cookie-jar", "trace", "trace-ascii", "stderr", "libcurl", "etag-save",
    "hsts", "alt-svc",
)  # fmt: skip


def _wget(call: Call) -> str:
    options = parse(call.args, "oaeiBtOTwQPADILUlX", _WGET_LONGS)
    uploads = options.has("post-file", "body-file") or any(map(leaks.is_read, options.values("post-data", "body-data")))
    if why := leaks.request(options.operands, _last(options.values("method")), uploads=uploads):
        return why
    if any("askpass" in arg.text for arg in call.args):
        return "runs a command to ask for a password"
    folder = "".join(f"{arg.text}/" for arg in options.values("P", "directory-prefix")[-1:])
    names = [url.text.partition("?")[0].rpartition("/")[2] or "index.html" for url in options.operands]
    if folder and (why := _downloads(call, [Arg(folder + name) for name in names])):
        return why
    for name in names:
        call.walk.written.update(dict.fromkeys(call.scope.places(folder + name)))
    return _downloads(call, options.values("O", "output-document", "o", "output-file"))


_WGET_LONGS = (
    "output-document", "output-file", "directory-prefix", "execute", "method", "post-file", "body-file", "post-data",
    "body-data", "header", "user-agent", "tries", "timeout", "wait",
)  # fmt: skip


def _httpie(call: Call) -> str:
    method, *items = parse(call.args, "oasA", ("output", "auth", "session", "auth-type", "verify")).operands or [
        Arg("")
    ]
    if not re.fullmatch(r"[A-Za-z]+", method.text):
        method, items = Arg(""), [method, *items]
    uploads = any(re.match(r"[^=:@/]*:?=?@", arg.text) for arg in items[1:]) or call.feed.kind == "file"
    return leaks.request(items[:1], method.text.upper(), uploads=uploads)


def _fetches(call: Call) -> str:
    for url in parse(call.args, "od").operands:
        call.walk.written.update(dict.fromkeys(call.scope.places(url.text.partition("?")[0].rpartition("/")[2])))
    return ""


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("aria2c", "axel"), _fetches),
    "rsync": _rsync,
    "scp": _scp,
    "curl": _curl,
    "wget": _wget,
    **dict.fromkeys(("http", "https", "xh", "xhs"), _httpie),
}
