"""Handlers for commands that delete, copy, move, link and truncate files."""

import re
from collections.abc import Callable
from itertools import islice

from ostler.policy.danger_tables import CHANGES_MODES
from ostler.policy.shell.command_call import CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import ExpandedWord
from ostler.policy.shell.filesystem_view import is_block_device
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.script_files import is_binary
from ostler.policy.shell.shell_state import join_path

_BACKUP_SUFFIX = re.compile(r"[.~_-][\w.~-]*")
_GROWING_SIZE = re.compile(r"[+>%]?\s*0*[1-9]\w*")
_ROOTS = frozenset({"/", "/*", "/.*", "/.", "/..", "/*/"})


def removes_root(call: CommandCall) -> bool:
    """Return whether a recursive `rm` names the root of the file system."""
    options = parse_options(call.args)
    if not (options.has("r", "R", "recursive") or options.has("no-preserve-root")):
        return False
    return any(_is_root(arg, call) for arg in options.operands)


def _is_root(arg: ExpandedWord, call: CommandCall) -> bool:
    if not arg.literal:
        return False
    return arg.text in _ROOTS or any(path in _ROOTS for path in call.shell.resolve_paths(arg.text))


def _rm(call: CommandCall) -> str:
    if removes_root(call):
        call.evaluator.deny("deletes the whole file system")
    if call.name == "shred" and any(is_block_device(arg.text) for arg in call.args):
        call.evaluator.deny("overwrites a disk")
    return ""


def _dd(call: CommandCall) -> str:
    for arg in call.args:
        if arg.text.startswith("of="):
            call.overwrite_reason(ExpandedWord(arg.text[3:], arg.is_glob))
    return ""


def _format(call: CommandCall) -> str:
    options = parse_options(call.args, "ot", ("offset", "types"))
    if call.name == "wipefs" and (not options.has("a", "all", "o", "offset", "f") or options.has("n", "no-act")):
        return ""
    if call.name == "sgdisk" and re.fullmatch(
        r"(?:-[pvFLE]|-i \S+|--(?:print|verify)|/\S+| )+", " ".join(call.arg_texts())
    ):
        return ""
    for arg in call.args:
        if is_block_device(arg.text):
            call.evaluator.deny(f"wipes the device {arg.text}")
    return ""


def _cp(call: CommandCall) -> str:
    options = parse_options(call.args, "tSgmo", ("target-directory", "suffix", "group", "mode", "owner"))
    if call.name != "cp" and options.has("d", "directory"):
        changes_existing = options.has("m", "o", "g", "mode", "owner", "group") and any(
            map(_exists(call), options.operands)
        )
        return CHANGES_MODES if changes_existing else ""
    if any(re.fullmatch(r"0?[2-7]\d{3}|.*\bs\b.*|.*[+=]\w*s.*", mode.text) for mode in options.values("m", "mode")):
        return CHANGES_MODES
    target = options.value("t", "target-directory")
    names, into_folder = options.operands, target is not None
    if target is None:
        if len(names) < 2:
            return "" if all(arg.exact for arg in names) else "copies to a path known only at run time"
        target, names = names[-1], names[:-1]
    _record_copies(call, names, target, into_folder=into_folder)
    if options.has("n", "no-clobber"):
        return ""
    if options.has("parents"):
        call.evaluator.changes.add("other")
        return call.any_overwrite_reason([ExpandedWord(f"{target.text}/{name.text}", name.is_glob) for name in names])
    no_target_directory = options.has("T", "no-target-directory")
    reason = (
        ""
        if _is_backup(names, target)
        else copy_overwrite_reason(call, target, names, no_target_directory=no_target_directory)
    )
    if options.has("s", "l", "symbolic-link", "link"):
        _record_links(call, names, target, symbolic=options.has("s", "symbolic-link"))
    return reason


def _is_backup(names: list[ExpandedWord], target: ExpandedWord) -> bool:
    """Return whether a file with an unknown name is copied to the same name with a suffix."""
    name = names[0]
    suffix = target.text.removeprefix(name.text)
    extends_name = len(names) == 1 and name.origin == target.origin and target.text.startswith(name.text)
    return extends_name and not (name.is_glob or name.literal) and bool(_BACKUP_SUFFIX.fullmatch(suffix))


def _exists(call: CommandCall) -> Callable[[ExpandedWord], bool]:
    return lambda arg: call.evaluator.filesystem.may_exist(arg, call.shell)


def copy_overwrite_reason(
    call: CommandCall, target: ExpandedWord, names: list[ExpandedWord], no_target_directory: bool = False
) -> str:
    """Return why copying files to a target (folder or file) needs approval, or an empty string."""
    if target.exact and not no_target_directory and call.evaluator.filesystem.may_be_folder(target, call.shell):
        return call.evaluator.filesystem.folder_overwrite_reason(target, names, call.shell)
    return call.overwrite_reason(target)


def _ln(call: CommandCall) -> str:
    options = parse_options(call.args, "tS", ("target-directory", "suffix"))
    names = options.operands
    target = options.value("t", "target-directory")
    if target is None and len(names) > 1:
        target, names = names[-1], names[:-1]
    target = target or ExpandedWord(".")
    reason = call.overwrite_reason(target, appends=True)
    if options.has("f", "force", "b", "backup"):
        reason = copy_overwrite_reason(
            call, target, names, no_target_directory=options.has("n", "no-dereference", "T", "no-target-directory")
        )
    _record_copies(call, names, target)
    _record_links(call, names, target, symbolic=options.has("s", "symbolic"))
    return reason


def _record_copies(
    call: CommandCall, sources: list[ExpandedWord], target: ExpandedWord, *, into_folder: bool = False
) -> None:
    """Record copies, so that a program or a script is recognised under its new name, with the text that it will have.

    A folder, or a file that cannot be read, is treated as a change of any file.
    """
    filesystem = call.evaluator.filesystem
    for source in sources:
        base = source.text.rstrip("/").rpartition("/")[2]
        filesystem.copies[target.text.rstrip("/").rpartition("/")[2]] = base
        paths = call.shell.resolve_paths(target.text) if source.exact and target.exact else ()
        if not paths:
            call.evaluator.changes.add("other")
        for path in paths:
            is_folder = into_folder or len(sources) > 1 or target.text[-1:] in {"/", "."} or _is_folder(call, path)
            _record_copy(call, source, join_path(path, base) if is_folder else path)


def _is_folder(call: CommandCall, path: str) -> bool:
    filesystem = call.evaluator.filesystem
    return path in filesystem.created_folders or filesystem.is_folder(path)


def _record_copy(call: CommandCall, source: ExpandedWord, path: str) -> None:
    written = call.evaluator.written_files
    try:
        written[path] = call.written_text(source)
        return
    except KeyError:
        pass
    for name in call.shell.resolve_paths(source.text):
        name = call.evaluator.filesystem.resolve_links(name)
        try:
            text = call.evaluator.read_script(name)
        except (OSError, ValueError):
            call.evaluator.changes.add("other")
            continue
        if text is not None or not is_binary(name):
            written[path] = text


def _record_links(call: CommandCall, sources: list[ExpandedWord], target: ExpandedWord, symbolic: bool) -> None:
    """Record links, so that later writes through a link are attributed to its target."""
    filesystem = call.evaluator.filesystem
    if len(filesystem.links) > 50:
        call.evaluator.confirm("creates too many links to analyse")
        return
    for source in sources[:50]:
        for path in call.shell.resolve_paths(target.text) if source.exact and target.exact else ():
            link = join_path(path, source.text.rstrip("/").rpartition("/")[2]) if filesystem.is_folder(path) else path
            folder = link.rpartition("/")[0] if symbolic else (call.shell.cwd or ("/",))[0]
            filesystem.links[link] = join_path(folder, source.text)


def _truncate(call: CommandCall) -> str:
    """Handle truncate: it needs approval even if the file does not exist yet, unless the file can only grow."""
    options = parse_options(call.args, "sr", ("size", "reference"))
    if reason := call.any_overwrite_reason(options.operands):
        return reason
    size = options.value("s", "size")
    if options.operands and size and not (size.exact and _GROWING_SIZE.fullmatch(size.text)):
        return "empties or shortens a file"
    return ""


def _tee(call: CommandCall) -> str:
    options = parse_options(call.args)
    appends = options.has("a", "append")
    text = call.stdin.text if call.stdin.kind == "text" else None
    for arg in options.operands:
        for path in call.shell.resolve_paths(arg.text) if arg.exact else ():
            call.evaluator.written_files[path] = text
    reasons = [call.overwrite_reason(arg, appends=appends) for arg in options.operands]
    return next(filter(None, reasons), "")


def _patch(call: CommandCall) -> str:
    options = parse_options(call.args, "poidBDFgrVYz", ("output", "input", "directory", "strip", "dry-run"))
    if any(arg.text.startswith("--dry") for arg in call.args) or options.has("C", "check", "help", "version", "v"):
        return ""
    output = options.value("o", "output")
    return "changes the files that a patch names" if output is None else call.overwrite_reason(output)


def _split(call: CommandCall) -> str:
    options = parse_options(
        call.args,
        "abClntf",
        ("filter", "suffix-length", "bytes", "lines", "number", "prefix", "digits", *_SUFFIX_OPTIONS),
    )
    call.evaluate_texts(options.values("filter"))
    if options.has("filter"):
        return ""
    suffixes = ["00"] if call.name == "csplit" else ["aa", "00", "a", "aaa"]
    prefix = (options.operands[1:2] or [ExpandedWord("x")])[0]
    if call.name == "csplit":
        prefix = options.value("f", "prefix") or ExpandedWord("xx")
    ending = options.value("additional-suffix")
    has_format = call.name == "csplit" and options.has("b", "suffix-format")
    rest = r".+" if has_format or options.has("a", "suffix-length", "n", "digits") else r"[a-z0-9]{1,5}"
    rest += re.escape(ending.text) if ending else ""
    parts = [ExpandedWord(prefix.text + suffix, prefix.is_glob) for suffix in suffixes]
    return call.any_overwrite_reason([*parts, *_existing_parts(call, prefix, rest)])


_SUFFIX_OPTIONS = ("additional-suffix", "suffix-format")
_MAX_PARTS = 10000


def _existing_parts(call: CommandCall, prefix: ExpandedWord, rest: str) -> list[ExpandedWord]:
    """Return an existing file that has the name of a part: the prefix, and a rest that matches the expression."""
    if not prefix.exact or not prefix.text.isprintable():
        return []
    from glob import escape, iglob

    found: list[ExpandedWord] = []
    for path in call.shell.resolve_paths(prefix.text):
        for name in islice(iglob(f"{escape(path)}*"), _MAX_PARTS):
            if re.fullmatch(rest, name[len(path) :], re.DOTALL):
                found.append(ExpandedWord(name))
    return found[:1]


def _history(call: CommandCall) -> str:
    options = parse_options(call.args)
    if options.has("c", "d"):
        return "deletes the shell's history"
    if options.has("w") and not options.operands:
        return "overwrites the shell's history"
    return call.any_overwrite_reason(options.operands[:1]) if options.has("a", "w") else ""


def _mkfifo(call: CommandCall) -> str:
    for arg in parse_options(call.args, "mZ", ("mode",)).operands:
        call.evaluator.written_files.update(dict.fromkeys(call.shell.resolve_paths(arg.text)))
    return ""


def _mkdir(call: CommandCall) -> str:
    for arg in parse_options(call.args, "mZ", ("mode",)).operands:
        for path in call.shell.resolve_paths(arg.text) if arg.exact else ():
            if not call.evaluator.filesystem.exists(path):
                call.evaluator.filesystem.created_folders.add(path)
    return ""


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(("rm", "shred", "unlink", "rmdir"), _rm),
    **dict.fromkeys(("dd", "dcfldd", "dc3dd"), _dd),
    **dict.fromkeys(("mkfs", "mke2fs", "mkswap", "wipefs", "blkdiscard", "sgdisk", "mkdosfs", "mkntfs"), _format),
    **dict.fromkeys(("cp", "install", "gcp", "ginstall"), _cp),
    **dict.fromkeys(("ln", "link"), _ln),
    "tee": _tee,
    "truncate": _truncate,
    "patch": _patch,
    **dict.fromkeys(("split", "csplit"), _split),
    "history": _history,
    "mkdir": _mkdir,
    **dict.fromkeys(("mkfifo", "mknod"), _mkfifo),
}
