"""`ostler sessions`: find, look at, take along, copy, name, mend and delete what was kept."""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ostler.cli.arguments import Parser, add_workspace

if TYPE_CHECKING:
    from ostler.app.session_admin import SessionAdmin

SESSION_HELP = "a session's id, a part of it, or `last`"


def main(arguments: list[str]) -> int:
    """One of its own commands."""
    given = _make_parser().parse_args(arguments)

    from ostler.app.session_admin import SessionAdmin

    with SessionAdmin(given.cwd, all_workspaces=getattr(given, "all", False), notify=_print_notice) as desk:
        return int(given.run(desk, given))


def _make_parser() -> ArgumentParser:
    parser = Parser("ostler sessions", description="Find, show, export, copy, name, mend and delete sessions.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)

    def command(name: str, help: str, *, which: bool = True, several: bool = False) -> ArgumentParser:
        added: ArgumentParser = commands.add_parser(name, help=help, description=help)
        if which:
            added.add_argument("session", help=SESSION_HELP, nargs="+" if several else None)
        add_workspace(added)
        added.set_defaults(run=globals()[f"_{name}"])
        return added

    _add_scope_options(command("list", "the sessions of this workspace, newest first", which=False))
    shown = command("show", "what was said, with the number of each message")
    shown.add_argument("--full", action="store_true", help="whole outputs of tools")
    shown.add_argument("--json", action="store_true", help="as JSON")
    searched = command("search", "the sessions that have these words", which=False)
    searched.add_argument("words", nargs="+", help='words, or "a phrase"')
    _add_scope_options(searched)
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
    _add_scope_options(command("stats", "tokens and cost by model and day", which=False))
    return parser


def _add_scope_options(parser: ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="of all workspaces")
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=20, help="at most so many (default: 20)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _list(admin: "SessionAdmin", args: Namespace) -> int:
    return _write_stdout(admin.list(args.limit, as_json=args.json))


def _show(admin: "SessionAdmin", args: Namespace) -> int:
    return _write_stdout(admin.show(args.session, full=args.full, as_json=args.json))


def _search(admin: "SessionAdmin", args: Namespace) -> int:
    found = admin.search(" ".join(args.words), args.limit, as_json=args.json)
    if not found:
        _print_notice("no session here has these words" if not args.all else "no session has these words")
    _write_stdout(found)
    return 0 if found else 1


def _export(admin: "SessionAdmin", args: Namespace) -> int:
    pieces = admin.export(args.session, args.format, args.output, redact=not args.no_redact)
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    return 0


def _import(admin: "SessionAdmin", args: Namespace) -> int:
    return _write_stdout(admin.import_file(args.file))


def _fork(admin: "SessionAdmin", args: Namespace) -> int:
    return _write_stdout(f"{admin.fork(args.session, args.at)}\n")


def _rename(admin: "SessionAdmin", args: Namespace) -> int:
    admin.rename(args.session, " ".join(args.title))
    return 0


def _delete(admin: "SessionAdmin", args: Namespace) -> int:
    return _write_stdout("".join(f"deleted {session_id}\n" for session_id in admin.delete(args.session)))


def _repair(admin: "SessionAdmin", args: Namespace) -> int:
    return _write_stdout("".join(f"{line}\n" for line in admin.repair(args.session)))


def _stats(admin: "SessionAdmin", args: Namespace) -> int:
    return _write_stdout(admin.stats(args.limit, as_json=args.json))


def _write_stdout(text: str) -> int:
    sys.stdout.write(text)
    return 0


def _print_notice(line: str) -> None:
    sys.stderr.write(f"ostler: {line}\n")
