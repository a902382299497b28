"""`ostler sessions`: find, look at, take along, copy, name, mend and delete what was kept."""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ostler.cli.arguments import Parser, add_workspace

if TYPE_CHECKING:
    from ostler.app.desk import Desk

WHICH = "a session's id, a part of it, or `last`"


def main(arguments: list[str]) -> int:
    """One of its own commands."""
    given = _parser().parse_args(arguments)

    from ostler.app.desk import Desk

    with Desk(given.cwd, everywhere=getattr(given, "all", False), say=_say) as desk:
        return int(given.run(desk, given))


def _parser() -> ArgumentParser:
    parser = Parser("ostler sessions", description="Find, show, export, copy, name, mend and delete sessions.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)

    def command(name: str, help: str, *, which: bool = True, several: bool = False) -> ArgumentParser:
        added: ArgumentParser = commands.add_parser(name, help=help, description=help)
        if which:
            added.add_argument("session", help=WHICH, nargs="+" if several else None)
        add_workspace(added)
        added.set_defaults(run=globals()[f"_{name}"])
        return added

    _scoped(command("list", "the sessions of this workspace, newest first", which=False))
    shown = command("show", "what was said, with the number of each message")
    shown.add_argument("--full", action="store_true", help="whole outputs of tools")
    shown.add_argument("--json", action="store_true", help="as JSON")
    searched = command("search", "the sessions that have these words", which=False)
    searched.add_argument("words", nargs="+", help='words, or "a phrase"')
    _scoped(searched)
    exported = command("export", "a copy to take along, without secrets; nothing is uploaded")
    exported.add_argument("-f", "--format", choices=("markdown", "html", "json"), help="default: by the file's ending")
    exported.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    exported.add_argument("--no-redact", action="store_true", help="leave secrets in it")
    imported = command("import", "a new session out of a JSON export", which=False)
    imported.add_argument("file", help="the export, or - for standard input")
    forked = command("fork", "a new session that goes on from here, or from a message")
    forked.add_argument("--at", metavar="N", type=int, default=0, help="the last message to keep; `show` numbers them")
    command("rename", "give it a title").add_argument("title", nargs="+")
    command("delete", "delete for good", several=True)
    command("repair", "finish what a crash left open, and say what is damaged")
    _scoped(command("stats", "tokens and cost by model and day", which=False))
    return parser


def _scoped(parser: ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="of all workspaces")
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=20, help="at most so many (default: 20)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _list(desk: "Desk", given: Namespace) -> int:
    return _write(desk.list(given.limit, as_json=given.json))


def _show(desk: "Desk", given: Namespace) -> int:
    return _write(desk.show(given.session, full=given.full, as_json=given.json))


def _search(desk: "Desk", given: Namespace) -> int:
    found = desk.search(" ".join(given.words), given.limit, as_json=given.json)
    if not found:
        _say("no session here has these words" if not given.all else "no session has these words")
    _write(found)
    return 0 if found else 1


def _export(desk: "Desk", given: Namespace) -> int:
    pieces = desk.export(given.session, given.format, given.output, redact=not given.no_redact)
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    return 0


def _import(desk: "Desk", given: Namespace) -> int:
    return _write(desk.bring_in(given.file))


def _fork(desk: "Desk", given: Namespace) -> int:
    return _write(f"{desk.fork(given.session, given.at)}\n")


def _rename(desk: "Desk", given: Namespace) -> int:
    desk.rename(given.session, " ".join(given.title))
    return 0


def _delete(desk: "Desk", given: Namespace) -> int:
    return _write("".join(f"deleted {session_id}\n" for session_id in desk.delete(given.session)))


def _repair(desk: "Desk", given: Namespace) -> int:
    return _write("".join(f"{line}\n" for line in desk.repair(given.session)))


def _stats(desk: "Desk", given: Namespace) -> int:
    return _write(desk.stats(given.limit, as_json=given.json))


def _write(text: str) -> int:
    sys.stdout.write(text)
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"ostler: {line}\n")
