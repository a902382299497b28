"""Detects secrets that are read, files that are uploaded, and remote deletions."""

import re
from collections.abc import Sequence

from ostler.policy.danger_tables import SECRET_FILE
from ostler.policy.shell.command_call import CommandCall
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.path_patterns import matches_secret, real_path
from ostler.policy.shell.program_table import group
from ostler.policy.shell.shell_state import ShellState
from ostler.policy.shell.syntax_tree import CommandNode

ENGINE_SOCKET = re.compile(r"(?:docker|containerd|podman|crio)\.sock\b")
_LOCAL_ADDRESS = re.compile(
    r"(?:\w+://)?(?:[^/@]*@)?(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1\]?|host\.docker\.internal|[\w.-]+\.(?:local|localhost|test))"
    r"(?::|/|\?|$)|:\d+(?:/|$)|:/"
)
_HTTP_DATABASE = re.compile(
    r"(?:\w+://)?[^/:]+:(?:9200|5984|8086|6333|2379|8500|8200)(?:/|$)"
)  # by the default ports of their HTTP APIs
_DOTENV_FILE = re.compile(r"(?:^|/)\.env(?:\.(?!example|sample|template|dist)\w+)?$")
_KEY_OPTION = re.compile(r"-i|-E|--(?:key|cert|identity\S*|private-key|netrc-file|pass)")
_PRINTS_SECRETS = re.compile(
    r"(?:.*\| *)?(?:cat|base64|base32|xxd|od|hexdump|env|printenv|head|tail|gpg)\b.*", re.DOTALL
)
_ENCODES = re.compile(r"(?:.*\| *)?(?:base64|base32|xxd|od|hexdump|env|printenv)\b.*", re.DOTALL)
_EXTENDED_PATTERN = re.compile(r"[@!+?*]\([^()]*\)")
_MAX_PATH = 4096
_SILENT_COMMANDS = frozenset({":", "true", "exec", "sleep"})
_SENDS_FILE = "sends a file's content to another machine"


def secret_read_reason(call: CommandCall) -> str:
    """Return why a command needs approval: it reads a secret file, or sends command output in a host name."""
    if call.name in group("name-resolvers") and any(map(has_read_output, call.args)):
        return "sends another command's output in a host name"
    if _shows_no_content(call):
        return ""
    previous = ""
    for arg in call.args:
        texts = _named_texts(arg, call.shell)
        is_secret = any(map(is_secret_path if call.name in group("senders") else SECRET_FILE.search, texts))
        if is_secret and " " not in arg.text and not _KEY_OPTION.fullmatch(previous):
            return f"reads {arg.text.lstrip('@')}, which is secret"
        pattern = _EXTENDED_PATTERN.sub("*", arg.text)
        if (arg.is_glob or pattern != arg.text) and arg.literal and matches_secret(pattern, call.shell):
            return f"may read a secret file, because {arg.text} can match one"
        previous = arg.text
    return ""


def _shows_no_content(call: CommandCall) -> bool:
    if call.name in {"find", "fd", "fdfind"}:
        return not any(text.startswith(("-exec", "-x", "-X", "--exec")) for text in call.arg_texts())
    if call.name == "file":
        return "-f" not in call.arg_texts()
    if call.name == "git":
        return "--no-index" not in call.arg_texts()
    return call.name in group("shows-no-content")


def _named_texts(arg: ExpandedWord, shell: ShellState) -> tuple[str, ...]:
    """Return a word, and the paths that it names in the working folder and behind a link."""
    if not arg.exact or arg.text.startswith("-") or " " in arg.text:
        return (arg.text,)
    paths = shell.resolve_paths(arg.text) if len(arg.text) < _MAX_PATH else ()
    return (arg.text, *paths, *map(real_path, paths))


def secret_input_reason(paths: Sequence[str]) -> str:
    """Return why reading from a file needs approval: it is secret."""
    secret = next((path for path in paths if SECRET_FILE.search(path) or SECRET_FILE.search(real_path(path))), "")
    return f"reads {secret}, which is secret" if secret else ""


def is_secret_path(path: str) -> bool:
    """Return whether a file contains secrets, judged by its path."""
    return bool(SECRET_FILE.search(path) or _DOTENV_FILE.search(path))


def has_read_output(arg: ExpandedWord) -> bool:
    """Return whether a word contains the output of a command that prints a file or the environment."""
    return UNKNOWN_TEXT in arg.text and bool(_PRINTS_SECRETS.fullmatch(arg.origin))


def is_local_address(address: str) -> bool:
    """Return whether an address is on this machine."""
    return bool(_LOCAL_ADDRESS.match(address))


def request_reason(urls: Sequence[ExpandedWord], method: str, *, uploads: bool) -> str:
    """Return why an HTTP request needs approval: it deletes something, or sends data to another machine."""
    remote = [arg for arg in urls if not is_local_address(arg.text)]
    if any("/_delete_by_query" in arg.text for arg in urls):
        return "deletes something on a server"
    if method == "DELETE" and (remote or any(_HTTP_DATABASE.match(arg.text) for arg in urls)):
        return "deletes something on a server"
    if uploads and remote:
        return _SENDS_FILE
    if any(UNKNOWN_TEXT in arg.text and _ENCODES.fullmatch(arg.origin) for arg in remote):
        return "sends another command's output in a URL"
    return ""


def upload_reason(call: CommandCall, hosts: Sequence[ExpandedWord]) -> str:
    """Return why a connection to `hosts` needs approval: it sends a file, or unknown data from a pipe."""
    sends_data = call.stdin.kind == "pipe" or (call.stdin.kind == "file" and call.stdin.text != "/dev/null")
    return _SENDS_FILE if sends_data and any(not is_local_address(host.text) for host in hosts) else ""


def socket_redirect_reason(path: str, node: CommandNode) -> str:
    """Return why a redirection to `/dev/tcp` or `/dev/udp` needs approval: it sends a command's output away."""
    match = re.match(r"/dev/(?:tcp|udp)/([^/]+)/", path)
    is_silent = not node.words or node.words[0].raw in _SILENT_COMMANDS
    return _SENDS_FILE if match and not is_silent and not is_local_address(match.group(1)) else ""
