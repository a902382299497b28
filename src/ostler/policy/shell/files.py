"""Commands that delete, copy, link and cut files; most ask only when something would be lost."""

import re
from collections.abc import Callable

from ostler.policy.danger import RIGHTS
from ostler.policy.shell.args import Arg
from ostler.policy.shell.call import Call, Handler
from ostler.policy.shell.options import parse
from ostler.policy.shell.places import is_block_device
from ostler.policy.shell.scope import join

_BACKUP = re.compile(r"[.~_-][\w.~-]*")
_GROWS = re.compile(r"[+>%]?\s*0*[1-9]\w*")
_ROOTS = frozenset({"/", "/*", "/.*", "/.", "/..", "/*/"})


def removes_root(call: Call) -> bool:
    """Whether a recursive `rm` names the root of the file system."""
    options = parse(call.args)
    if not (options.has("r", "R", "recursive") or options.has("no-preserve-root")):
        return False
    return any(_is_root(arg, call) for arg in options.operands)


def _is_root(arg: Arg, call: Call) -> bool:
    if not arg.literal:
        return False
    return arg.text in _ROOTS or any(path in _ROOTS for path in call.scope.places(arg.text))


def _rm(call: Call) -> str:
    if removes_root(call):
        call.walk.deny("deletes the whole file system")
    if call.name == "shred" and any(is_block_device(arg.text) for arg in call.args):
        call.walk.deny("overwrites a disk")
    return ""


def _dd(call: Call) -> str:
    for arg in call.args:
        if arg.text.startswith("of="):
            call.overwrites(Arg(arg.text[3:], arg.glob))
    return ""


def _format(call: Call) -> str:
    if call.name == "wipefs" and not parse(call.args, "ot", ("offset", "types")).has("a", "all", "o", "offset", "f"):
        return ""
    if call.name == "wipefs" and parse(call.args, "ot", ("offset", "types")).has("n", "no-act"):
        return ""
    if call.name == "sgdisk" and re.fullmatch(
        r"(?:-[pvFLE]|-i \S+|--(?:print|verify)|/\S+| )+", " ".join(call.texts())
    ):
        return ""
    for arg in call.args:
        if is_block_device(arg.text):
            call.walk.deny(f"wipes the device {arg.text}")
    return ""


def _cp(call: Call) -> str:
    options = parse(call.args, "tSgmo", ("target-directory", "suffix", "group", "mode", "owner"))
    if call.name != "cp" and options.has("d", "directory"):
        there = options.has("m", "o", "g", "mode", "owner", "group") and any(map(_exists(call), options.operands))
        return RIGHTS if there else ""
    if any(re.fullmatch(r"0?[2-7]\d{3}|.*\bs\b.*|.*[+=]\w*s.*", mode.text) for mode in options.values("m", "mode")):
        return RIGHTS
    if options.has("n", "no-clobber"):
        return ""
    target = options.value("t", "target-directory")
    names = options.operands
    if target is None:
        if len(names) < 2:
            return "" if all(arg.exact for arg in names) else "copies to a place known only when it runs"
        target, names = names[-1], names[:-1]
    if options.has("parents"):
        return call.overwrites_any([Arg(f"{target.text}/{name.text}", name.glob) for name in names])
    whole = options.has("T", "no-target-directory")
    why = "" if _is_backup(names, target) else into(call, target, names, whole=whole)
    _remember_copies(call, names, target)
    if options.has("s", "l", "symbolic-link", "link"):
        _remember_links(call, names, target, soft=options.has("s", "symbolic-link"))
    return why


def _is_backup(names: list[Arg], target: Arg) -> bool:
    """Whether a file, by a name known only when it runs, is copied to the same name with an ending."""
    name = names[0]
    ending = target.text.removeprefix(name.text)
    same = len(names) == 1 and name.origin == target.origin and target.text.startswith(name.text)
    return same and not (name.glob or name.literal) and bool(_BACKUP.fullmatch(ending))


def _exists(call: Call) -> Callable[[Arg], bool]:
    return lambda arg: call.walk.places.any_exists(arg, call.scope)


def into(call: Call, target: Arg, names: list[Arg], whole: bool = False) -> str:
    """Why files may not be put to a target, a folder or a name, without asking."""
    if target.exact and not whole and call.walk.places.any_folder(target, call.scope):
        return call.walk.places.inside(target, names, call.scope)
    return call.overwrites(target)


def _ln(call: Call) -> str:
    options = parse(call.args, "tS", ("target-directory", "suffix"))
    names = options.operands
    target = options.value("t", "target-directory")
    if target is None and len(names) > 1:
        target, names = names[-1], names[:-1]
    target = target or Arg(".")
    why = call.overwrites(target, appends=True)
    if options.has("f", "force", "b", "backup"):
        why = into(call, target, names, whole=options.has("n", "no-dereference", "T", "no-target-directory"))
    _remember_copies(call, names, target)
    _remember_links(call, names, target, soft=options.has("s", "symbolic"))
    return why


def _remember_copies(call: Call, sources: list[Arg], target: Arg) -> None:
    """So that a program does not go unseen under another name, nor a script this line has written."""
    for source in sources:
        copy = target.text.rstrip("/").rpartition("/")[2]
        call.walk.places.copies[copy] = source.text.rpartition("/")[2]
        try:
            text = call.wrote(source)
        except KeyError:
            continue
        for path in call.scope.places(target.text):
            call.walk.written[path] = text


def _remember_links(call: Call, sources: list[Arg], target: Arg, soft: bool) -> None:
    """So that a later write through a link is seen for what it is."""
    places = call.walk.places
    if len(places.links) > 50:
        call.walk.confirm("makes more links than can be followed")
        return
    for source in sources[:50]:
        for path in call.scope.places(target.text) if source.exact and target.exact else ():
            link = join(path, source.text.rstrip("/").rpartition("/")[2]) if places.is_folder(path) else path
            folder = link.rpartition("/")[0] if soft else (call.scope.cwd or ("/",))[0]
            places.links[link] = join(folder, source.text)


def _truncate(call: Call) -> str:
    """To empty or shorten a file is to mean one that is there, or will be when the command runs."""
    options = parse(call.args, "sr", ("size", "reference"))
    if reason := call.overwrites_any(options.operands):
        return reason
    size = options.value("s", "size")
    if options.operands and size and not (size.exact and _GROWS.fullmatch(size.text)):
        return "empties or shortens a file"
    return ""


def _tee(call: Call) -> str:
    options = parse(call.args)
    appends = options.has("a", "append")
    text = call.feed.text if call.feed.kind == "text" else None
    for arg in options.operands:
        for path in call.scope.places(arg.text) if arg.exact else ():
            call.walk.written[path] = text
    reasons = [call.overwrites(arg, appends=appends) for arg in options.operands]
    return next(filter(None, reasons), "")


def _patch(call: Call) -> str:
    options = parse(call.args, "poidBDFgrVYz", ("output", "input", "directory", "strip", "dry-run"))
    if any(arg.text.startswith("--dry") for arg in call.args) or options.has("C", "check", "help", "version", "v"):
        return ""
    output = options.value("o", "output")
    return "changes the files that a patch names" if output is None else call.overwrites(output)


def _split(call: Call) -> str:
    options = parse(call.args, "abClntf", ("filter", "suffix-length", "bytes", "lines", "number", "prefix", "digits"))
    for command in options.values("filter"):
        call.text(command.text)
    if options.has("filter"):
        return ""
    endings = ["00"] if call.name == "csplit" else ["aa", "00", "a", "aaa"]
    prefix = (options.operands[1:2] or [Arg("x")])[0]
    if call.name == "csplit":
        prefix = options.value("f", "prefix") or Arg("xx")
    return call.overwrites_any([Arg(prefix.text + ending, prefix.glob) for ending in endings])


def _history(call: Call) -> str:
    options = parse(call.args)
    if options.has("c", "d"):
        return "deletes the shell's history"
    if options.has("w") and not options.operands:
        return "overwrites the shell's history"
    return call.overwrites_any(options.operands[:1]) if options.has("a", "w") else ""


def _mkfifo(call: Call) -> str:
    for arg in parse(call.args, "mZ", ("mode",)).operands:
        call.walk.written.update(dict.fromkeys(call.scope.places(arg.text)))
    return ""


def _mkdir(call: Call) -> str:
    for arg in parse(call.args, "mZ", ("mode",)).operands:
        for path in call.scope.places(arg.text) if arg.exact else ():
            if not call.walk.places.exists(path):
                call.walk.places.made.add(path)
    return ""


HANDLERS: dict[str, Handler] = {
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
