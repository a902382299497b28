"""What leaves the machine, or is undone elsewhere: secrets, uploads, and requests that delete."""

import re
from collections.abc import Sequence

from ostler.policy.danger_tables import SECRET_FILE, split_names
from ostler.policy.shell.command_call import CommandCall
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.syntax_tree import CommandNode

ENGINE_SOCKET = re.compile(r"(?:docker|containerd|podman|crio)\.sock\b")
_LOCAL_ADDRESS = re.compile(
    r"(?:\w+://)?(?:[^/@]*@)?(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1\]?|host\.docker\.internal|[\w.-]+\.(?:local|localhost|test))"
    r"(?::|/|\?|$)|:\d+(?:/|$)|:/"
)
_HTTP_DATABASE = re.compile(r"(?:\w+://)?[^/:]+:(?:9200|5984|8086|6333|2379|8500|8200)(?:/|$)")  # spoken to over HTTP
_READERS = frozenset(
    split_names(
        "cat tac head tail less more bat nl base64 base32 xxd od hexdump strings grep egrep rg awk sed cut cp tar gtar"
        " bsdtar zip 7z gzip gpg openssl curl wget scp rsync nc ncat tee dd install ln xclip pbcopy sort rev tr"
        " python python3 http xh aws gsutil gcloud rclone s3cmd mc mutt"
    )
)
_SENDERS = frozenset(split_names("scp rsync aws gsutil gcloud rclone s3cmd mc mutt"))
_DOTENV_FILE = re.compile(r"(?:^|/)\.env(?:\.(?!example|sample|template|dist)\w+)?$")
_KEY_OPTION = re.compile(r"-i|-E|--(?:key|cert|identity\S*|private-key|netrc-file|pass)")
_NAME_RESOLVERS = frozenset(split_names("dig host nslookup ping ping6 getent drill kdig resolvectl"))
_PRINTS_SECRETS = re.compile(
    r"(?:.*\| *)?(?:cat|base64|base32|xxd|od|hexdump|env|printenv|head|tail|gpg)\b.*", re.DOTALL
)
_ENCODES = re.compile(r"(?:.*\| *)?(?:base64|base32|xxd|od|hexdump|env|printenv)\b.*", re.DOTALL)
_SILENT_COMMANDS = frozenset({":", "true", "exec", "sleep"})
_SENDS_FILE = "sends a file's content to another machine"


def secret_read_reason(call: CommandCall) -> str:
    """Why a command must be asked for that reads a key or password, or puts one into the name of a machine."""
    if call.stdin.kind == "file" and call.name != "ssh-add" and SECRET_FILE.search(call.stdin.text):
        return f"reads {call.stdin.text}, which is secret"
    if call.name in _NAME_RESOLVERS and any(map(has_read_output, call.args)):
        return "sends what another command prints, in the name of a machine"
    if call.name not in _READERS:
        return ""
    before = ""
    for arg in call.args:
        found = is_secret_path(arg.text) if call.name in _SENDERS else SECRET_FILE.search(arg.text)
        if found and " " not in arg.text and not _KEY_OPTION.fullmatch(before):
            return f"reads {arg.text.lstrip('@')}, which is secret"
        before = arg.text
    return ""


def is_secret_path(path: str) -> bool:
    """Whether a file should not leave the machine."""
    return bool(SECRET_FILE.search(path) or _DOTENV_FILE.search(path))


def has_read_output(arg: ExpandedWord) -> bool:
    """Whether a word holds what a command has read out of a file or the environment."""
    return UNKNOWN_TEXT in arg.text and bool(_PRINTS_SECRETS.fullmatch(arg.origin))


def is_local_address(address: str) -> bool:
    """Whether an address is one of this very machine."""
    return bool(_LOCAL_ADDRESS.match(address))


def request_reason(urls: Sequence[ExpandedWord], method: str, *, uploads: bool) -> str:
    """Why a request must be asked for: it deletes, or sends a file away."""
    away = [arg for arg in urls if not is_local_address(arg.text)]
    if any("/_delete_by_query" in arg.text for arg in urls):
        return "deletes something on a server"
    if method == "DELETE" and (away or any(_HTTP_DATABASE.match(arg.text) for arg in urls)):
        return "deletes something on a server"
    if uploads and away:
        return _SENDS_FILE
    if any(UNKNOWN_TEXT in arg.text and _ENCODES.fullmatch(arg.origin) for arg in away):
        return "sends what another command prints, in an address"
    return ""


def upload_reason(call: CommandCall, hosts: Sequence[ExpandedWord]) -> str:
    """Why a connection must be asked for that is fed with a file, or with what is known only when it runs."""
    fed = call.stdin.kind == "pipe" or (call.stdin.kind == "file" and call.stdin.text != "/dev/null")
    return _SENDS_FILE if fed and any(not is_local_address(host.text) for host in hosts) else ""


def socket_redirect_reason(path: str, node: CommandNode) -> str:
    """Why a redirection must be asked for that sends what a command prints through the shell's own sockets."""
    found = re.match(r"/dev/(?:tcp|udp)/([^/]+)/", path)
    quiet = not node.words or node.words[0].raw in _SILENT_COMMANDS
    return _SENDS_FILE if found and not quiet and not is_local_address(found.group(1)) else ""
