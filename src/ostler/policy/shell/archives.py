"""Archives and packers: what they replace, unpack over, or run on the way."""

import re

from ostler.policy.danger_tables import split_names
from ostler.policy.shell.command_call import CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.option_parser import parse_options


def _compress(call: CommandCall) -> str:
    """gzip and its kin put the packed file in the place of the old one."""
    options = parse_options(call.args, "SbTpo", ("suffix", "bits", "threads", "output"))
    keeps = options.has("c", "stdout", "to-stdout", "k", "keep", "l", "list", "t", "test", "V", "version", "h", "help")
    if keeps and not options.has("f", "force"):
        return ""
    if not options.operands or options.has("c", "stdout", "to-stdout", "l", "t"):
        return ""
    return "puts packed files in the place of the old ones"


def _zstd(call: CommandCall) -> str:
    options = parse_options(call.args, "oTDM", ("output-dir-flat",))
    targets = options.operands[1:2] if call.name == "lz4" else []
    return call.any_overwrite_reason([*options.values("o"), *targets])


def _tar(call: CommandCall) -> str:
    options = parse_options(_add_dashes(call.args), _TAR_VALUED, _TAR_LONGS)
    if any(re.match(rf"-\w*[^-{_TAR_VALUED}]{UNKNOWN_TEXT}", arg.text) for arg in call.args):
        return "has an option that is known only when it runs"
    for program in options.values("I", "use-compress-program", "to-command", "F", "info-script", "rsh-command"):
        call.evaluate_text(program.text)
    actions = [value for given, value in options.pairs if given.startswith("--checkpoint-") and value is not None]
    if any(not _HARMLESS_ACTION.match(action.text) for action in actions):
        return "runs a command while it packs"
    if options.has("remove-files", "delete", "unlink-first", "recursive-unlink"):
        return "deletes files once they are packed"
    if options.has("c", "create", "r", "append", "u", "update", "A", "concatenate"):
        return call.any_overwrite_reason(options.values("f", "file"))
    if not options.has("x", "extract", "get") or options.has(*_TAR_KEEP_OPTIONS):
        return ""
    folder = options.value("C", "directory")
    members = [ExpandedWord(f"{folder.text}/{arg.text}") if folder else arg for arg in options.operands]
    if options.has("overwrite") or any(call.evaluator.filesystem.may_exist(arg, call.shell) for arg in members):
        return _UNPACKS_OVER_FILES
    return _unpack_reason(call, options.value("f", "file"), folder)


_UNPACKS_OVER_FILES = "unpacks files over those that are there"


def _add_dashes(args: list[ExpandedWord]) -> list[ExpandedWord]:
    """`tar xzf a` as `tar -x -z -f a`: in the old style the values follow the bundle in its order."""
    if not args or args[0].text[:1] == "-" or not args[0].text.isalpha():
        return args
    rest = args[1:]
    spelled: list[ExpandedWord] = []
    for letter in args[0].text:
        spelled.append(ExpandedWord("-" + letter))
        if letter in _TAR_VALUED and rest:
            spelled.append(rest.pop(0))
    return spelled + rest


_HARMLESS_ACTION = re.compile(r"dot|bell|totals|sleep|echo|ttyout|wait|\.")
_TAR_VALUED = "fCITXbKLNVgHF"
_TAR_KEEP_OPTIONS = ("O", "to-stdout", "k", "keep-old-files", "skip-old-files", "keep-newer-files")
_TAR_LONGS = (
    "file", "directory", "use-compress-program", "to-command", "info-script", "new-volume-script", "rsh-command",
    "checkpoint-action", "exclude", "exclude-from", "files-from", "transform", "strip-components", "owner", "group",
    "mode", "mtime", "one-top-level",
)  # fmt: skip


def _unpack_reason(call: CommandCall, archive: ExpandedWord | None, folder: ExpandedWord | None) -> str:
    """Why an archive may not be unpacked unasked: it may bring files that are there already."""
    places = call.evaluator.filesystem
    if folder is not None and folder.exact:
        paths = call.shell.resolve_paths(folder.text)
        if paths and all(path in places.created_folders or not places.exists(path) for path in paths):
            return ""
    alone = call.evaluator.command_count == 1 and call.name != "unzip"
    near = folder is None or not folder.text.startswith("/")
    if alone and near and archive is not None and archive.text != "-" and not places.may_exist(archive, call.shell):
        return ""
    return _UNPACKS_OVER_FILES


def _unzip(call: CommandCall) -> str:
    options = parse_options(call.args, "dxPO")
    answered = call.stdin.kind in {"pipe", "text"}
    if not (options.has("o") or answered) or options.has("l", "t", "p", "Z", "v", "n"):
        return ""
    return _unpack_reason(call, options.operands[0] if options.operands else None, options.value("d"))


def _zip(call: CommandCall) -> str:
    options = parse_options(call.args, "bntixPsO", ("unzip-command", "output-file", "temp-path"))
    if options.has("m", "move", "d", "delete"):
        return "deletes files, or takes them out of an archive"
    if any(arg.text.startswith("-TT") for arg in call.args) or options.has("unzip-command"):
        return "runs a command to test the archive"
    return call.any_overwrite_reason(_with_suffix(options.operands[:1], ".zip")) if len(options.operands) > 1 else ""


def _with_suffix(archives: list[ExpandedWord], suffix: str) -> list[ExpandedWord]:
    """Archives as they are named, and as they will be when the name has no ending."""
    return [*archives, *(ExpandedWord(arg.text + suffix) for arg in archives if "." not in arg.text)]


def _seven_zip(call: CommandCall) -> str:
    verb = call.args[0].text if call.args else ""
    if verb in {"d", "rn", "u", *("m", "mf", "k")[: 2 * ("rar" in call.name)]} or {"-sdel", "-df", "-dr", "-dw"} & set(
        call.arg_texts()
    ):
        return "changes an archive, or deletes what it packs"
    if verb in {"x", "e"}:
        return "" if any(arg.text in {"-so", "-aos"} for arg in call.args) else _UNPACKS_OVER_FILES
    operands = parse_options(call.args[1:]).operands
    return call.any_overwrite_reason(_with_suffix(operands[:1], ".7z")) if verb == "a" else ""


def _cpio(call: CommandCall) -> str:
    options = parse_options(call.args, "FIOEHCDR", ("file", "directory", "format", "rsh-command"))
    for command in options.values("rsh-command"):
        call.evaluate_text(command.text)
    if options.has("t", "list"):
        return ""
    if options.has("i", "extract", "p", "pass-through", "r"):
        return _UNPACKS_OVER_FILES if options.has("u", "p", "i", "r") else ""
    return call.any_overwrite_reason(options.values("O", "F", "file"))


def _ar(call: CommandCall) -> str:
    verb = call.args[0].text.lstrip("-")[:1] if call.args else ""
    if verb in {"d", "m", "x"}:
        return "changes an archive, or unpacks files over those that are there"
    libraries = [arg for arg in call.args[1:2] if not arg.text.endswith((".a", ".lib"))]
    return call.any_overwrite_reason(libraries) if verb in {"r", "q"} else ""


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(
        split_names(
            "gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma compress uncompress pigz unpigz pbzip2 lzip lzop lrzip"
        ),
        _compress,
    ),
    **dict.fromkeys(("zstd", "unzstd", "lz4", "brotli"), _zstd),
    **dict.fromkeys(("tar", "gtar", "bsdtar", "jar"), _tar),
    "unzip": _unzip,
    "zip": _zip,
    **dict.fromkeys(("7z", "7za", "7zr", "unrar", "rar"), _seven_zip),
    **dict.fromkeys(("cpio", "pax"), _cpio),
    "ar": _ar,
}
