"""Handlers for archive tools: overwriting, unpacking and running commands."""

import re

from ostler.policy.danger_tables import split_names
from ostler.policy.shell.command_call import CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.program_table import argument_spec, group


def _compress(call: CommandCall) -> str:
    """gzip and similar tools replace the original file."""
    options = parse_options(call.args, "SbTpo", ("suffix", "bits", "threads", "output"))
    keeps_original = options.has(
        "c", "stdout", "to-stdout", "k", "keep", "l", "list", "t", "test", "V", "version", "h", "help"
    )
    if keeps_original and not options.has("f", "force"):
        return ""
    if not options.operands or options.has("c", "stdout", "to-stdout", "l", "t"):
        return ""
    return "replaces the original files"


def _zstd(call: CommandCall) -> str:
    options = parse_options(call.args, "oTDM", ("output-dir-flat",))
    targets = options.operands[1:2] if call.name == "lz4" else []
    if options.has("f", "force") and not options.has("c", "stdout"):
        names = [arg.text for arg in options.operands]
        endings = [".zst", ".lz4", ".br"]
        targets += [ExpandedWord(name + ending) for name in names for ending in endings]
        targets += [ExpandedWord(name.removesuffix(end)) for name in names for end in endings if name.endswith(end)]
    return call.any_overwrite_reason([*options.values("o"), *targets])


def _tar(call: CommandCall) -> str:
    options = parse_options(_add_dashes(call.args), _TAR.shorts_with_value, _TAR.longs_with_value)
    if any(re.match(rf"-\w*[^-{_TAR.shorts_with_value}]{UNKNOWN_TEXT}", arg.text) for arg in call.args):
        return "has an option that is known only at run time"
    call.evaluate_texts(options.values("I", "use-compress-program", "to-command", "F", "info-script", "rsh-command"))
    actions = [value for option, value in options.pairs if option.startswith("--checkpoint-") and value is not None]
    if any(not _HARMLESS_ACTION.match(action.text) for action in actions):
        return "runs a command while archiving"
    if options.has("remove-files", "delete", "unlink-first", "recursive-unlink"):
        return "deletes files after archiving them"
    if options.has("c", "create", "r", "append", "u", "update", "A", "concatenate"):
        return call.any_overwrite_reason(options.values("f", "file"))
    if not options.has("x", "extract", "get") or options.has(*_TAR_KEEP_OPTIONS):
        return ""
    folder = options.value("C", "directory")
    members = [ExpandedWord(f"{folder.text}/{arg.text}") if folder else arg for arg in options.operands]
    if options.has("overwrite") or any(call.evaluator.filesystem.may_exist(arg, call.shell) for arg in members):
        return _UNPACKS_OVER_FILES
    return _unpack_reason(call, options.value("f", "file"), folder)


_UNPACKS_OVER_FILES = "may overwrite existing files when unpacking"


def _add_dashes(args: list[ExpandedWord]) -> list[ExpandedWord]:
    """Convert `tar xzf a` to `tar -x -z -f a`: in the old style, values follow the letters in order."""
    if not args or args[0].text[:1] == "-" or not args[0].text.isalpha():
        return args
    rest = args[1:]
    dashed: list[ExpandedWord] = []
    for letter in args[0].text:
        dashed.append(ExpandedWord("-" + letter))
        if letter in _TAR.shorts_with_value and rest:
            dashed.append(rest.pop(0))
    return dashed + rest


_HARMLESS_ACTION = re.compile(r"dot|bell|totals|sleep|echo|ttyout|wait|\.")
_TAR = argument_spec("tar", "arguments")
_TAR_KEEP_OPTIONS = ("O", "to-stdout", "k", "keep-old-files", "skip-old-files", "keep-newer-files")


def _unpack_reason(call: CommandCall, archive: ExpandedWord | None, folder: ExpandedWord | None) -> str:
    """Return why unpacking needs approval (existing files may be overwritten), or an empty string."""
    filesystem = call.evaluator.filesystem
    if folder is not None and folder.exact:
        paths = call.shell.resolve_paths(folder.text)
        if paths and all(path in filesystem.created_folders or not filesystem.exists(path) for path in paths):
            return ""
    is_only_command = call.evaluator.command_count == 1 and call.name != "unzip"
    is_relative = folder is None or not folder.text.startswith("/")
    if (
        is_only_command
        and is_relative
        and archive is not None
        and archive.text != "-"
        and not filesystem.may_exist(archive, call.shell)
    ):
        return ""
    return _UNPACKS_OVER_FILES


def _unzip(call: CommandCall) -> str:
    options = parse_options(call.args, "dxPO")
    prompts_answered = call.stdin.kind in {"pipe", "text"}
    if not (options.has("o") or prompts_answered) or options.has("l", "t", "p", "Z", "v", "n"):
        return ""
    return _unpack_reason(call, options.operands[0] if options.operands else None, options.value("d"))


def _zip(call: CommandCall) -> str:
    options = parse_options(call.args, "bntixPsO", ("unzip-command", "output-file", "temp-path"))
    if options.has("m", "move", "d", "delete"):
        return "deletes files, or removes them from an archive"
    if any(arg.text.startswith("-TT") for arg in call.args) or options.has("unzip-command"):
        return "runs a command to test the archive"
    return call.any_overwrite_reason(_with_suffix(options.operands[:1], ".zip")) if len(options.operands) > 1 else ""


def _with_suffix(archives: list[ExpandedWord], suffix: str) -> list[ExpandedWord]:
    """Return the archives, and for names without a suffix also the name with the default suffix."""
    return [*archives, *(ExpandedWord(arg.text + suffix) for arg in archives if "." not in arg.text)]


def _seven_zip(call: CommandCall) -> str:
    verb = call.args[0].text if call.args else ""
    if verb in {"d", "rn", "u", *("m", "mf", "k")[: 2 * ("rar" in call.name)]} or {"-sdel", "-df", "-dr", "-dw"} & set(
        call.arg_texts()
    ):
        return "changes an archive, or deletes the archived files"
    if verb in {"x", "e"}:
        return "" if any(arg.text in {"-so", "-aos"} for arg in call.args) else _UNPACKS_OVER_FILES
    operands = parse_options(call.args[1:]).operands
    return call.any_overwrite_reason(_with_suffix(operands[:1], ".7z")) if verb == "a" else ""


def _cpio(call: CommandCall) -> str:
    options = parse_options(call.args, "FIOEHCDR", ("file", "directory", "format", "rsh-command"))
    call.evaluate_texts(options.values("rsh-command"))
    if options.has("t", "list"):
        return ""
    if options.has("i", "extract", "p", "pass-through", "r"):
        return _UNPACKS_OVER_FILES if options.has("u", "p", "i", "r") else ""
    return call.any_overwrite_reason(options.values("O", "F", "file"))


def _other_unpacker(call: CommandCall) -> str:
    texts = call.arg_texts()
    unpacks = call.name not in _UNPACKS_BY_WORD or not _UNPACKS_BY_WORD[call.name].isdisjoint(texts)
    return _UNPACKS_OVER_FILES if unpacks and not _LISTS.intersection(texts) else ""


_LISTS = frozenset({"-l", "-ll", "-lc", "--list", "-t", "--test", "--help", "-h", "--version", "-s", "-stat"})
_UNPACKS_BY_WORD = {  # programs that also do other things
    "atool": frozenset({"-x", "--extract", "-X", "--extract-to"}),
    "patool": frozenset({"extract"}),
    "ouch": frozenset({"d", "decompress"}),
    "ditto": frozenset({"-x"}),
    "lha": frozenset(split_names("x e m d -x -e -m -d xf xfq")),
    "arj": frozenset(split_names("x e m d")),
}


def _ar(call: CommandCall) -> str:
    verb = call.args[0].text.lstrip("-")[:1] if call.args else ""
    if verb in {"d", "m", "x"}:
        return "changes an archive, or may overwrite existing files when unpacking"
    libraries = [arg for arg in call.args[1:2] if not arg.text.endswith((".a", ".lib"))]
    return call.any_overwrite_reason(libraries) if verb in {"r", "q"} else ""


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(group("compressors"), _compress),
    **dict.fromkeys(("zstd", "unzstd", "lz4", "brotli"), _zstd),
    **dict.fromkeys(("tar", "gtar", "bsdtar", "star", "jar", "fastjar"), _tar),
    **dict.fromkeys(("unzip", "bsdunzip"), _unzip),
    "zip": _zip,
    **dict.fromkeys(("7z", "7za", "7zr", "7zz", "7zzs", "unrar", "rar"), _seven_zip),
    **dict.fromkeys(("cpio", "pax", "bsdcpio"), _cpio),
    "ar": _ar,
    **dict.fromkeys(split_names("unar dtrx aunpack cabextract unsquashfs unace unalz"), _other_unpacker),
    **dict.fromkeys(_UNPACKS_BY_WORD, _other_unpacker),
}
