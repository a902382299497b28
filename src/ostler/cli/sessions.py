"""`ostler sessions`: lists, shows, searches, exports, imports, forks, renames, repairs, deletes and counts them."""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

import msgspec

from ostler.cli.arguments import Parser, add_workspace
from ostler.text.stderr import notify

if TYPE_CHECKING:
    from ostler.storage.session_admin import SessionAdmin

SESSION_HELP = "a session id, a part of it, or `last`"


def main(arguments: list[str]) -> int:
    """Parse the arguments and run a subcommand."""
    args = _make_parser().parse_args(arguments)
    if getattr(args, "server", None) is not None:
        return _list_server(args)

    from ostler.storage.session_admin import SessionAdmin

    with SessionAdmin(args.cwd, all_workspaces=getattr(args, "all", False), notify=notify) as admin:
        return int(args.run(admin, args))


def _make_parser() -> ArgumentParser:
    parser = Parser(
        "ostler sessions",
        description="List, show, search, export, import, fork, rename, repair or delete sessions, and show statistics.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)

    def command(name: str, help: str, *, takes_session: bool = True, several: bool = False) -> ArgumentParser:
        added: ArgumentParser = commands.add_parser(name, help=help, description=f"{help.capitalize()}.")
        if takes_session:
            added.add_argument("session", help=SESSION_HELP, nargs="+" if several else None)
        add_workspace(added)
        added.set_defaults(run=globals()[f"_{name}"])
        return added

    list_ = command("list", "list the sessions of this workspace, newest first", takes_session=False)
    _add_scope_options(list_)
    help = "list your sessions at a server that you are logged in to, by its URL or host (default: the only one)"
    list_.add_argument("--server", metavar="URL", nargs="?", const="", help=help)
    show = command("show", "print a session with numbered messages")
    show.add_argument("--full", action="store_true", help="print complete tool output")
    show.add_argument("--json", action="store_true", help="print JSON")
    search = command("search", "search the sessions for words", takes_session=False)
    search.add_argument("words", nargs="+", help="words, or a phrase in quotes: '\"a phrase\"'")
    _add_scope_options(search)
    export = command("export", "export a session with secrets masked; nothing is uploaded")
    export.add_argument(
        "-f", "--format", choices=("markdown", "html", "json"), help="output format (default: by the file extension)"
    )
    export.add_argument("-o", "--output", metavar="FILE", help="output file (default: standard output)")
    export.add_argument("--no-redact", action="store_true", help="do not mask secrets")
    import_ = command("import", "create a session from a JSON export", takes_session=False)
    import_.add_argument("file", help="the export file, or - for standard input")
    fork = command("fork", "copy a session, optionally only up to a message")
    fork.add_argument(
        "--at", metavar="N", type=int, default=0, help="the last message to copy, by its number in `show`"
    )
    command("rename", "set a session's title").add_argument("title", nargs="+", help="the new title")
    command("delete", "delete sessions permanently", several=True)
    command("repair", "finish interrupted turns of a crashed session and report damage")
    _add_scope_options(command("stats", "show tokens and cost by model and day", takes_session=False))
    return parser


def _add_scope_options(parser: ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="include all workspaces")
    parser.add_argument(
        "-n", "--limit", metavar="N", type=int, default=20, help="maximum number of entries (default: 20)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _list(admin: "SessionAdmin", args: Namespace) -> int:
    from ostler.cli.sessions_text import format_list

    sessions = admin.list(args.limit)
    if args.json:
        return _write_json([{**msgspec.to_builtins(session.meta), "bytes": session.size} for session in sessions])
    return _write_stdout(format_list(sessions, with_folder=args.all))


def _list_server(args: Namespace) -> int:
    import asyncio

    from ostler.app.server_sessions import list_sessions_of
    from ostler.cli.sessions_text import format_server_list

    found = asyncio.run(list_sessions_of(args.server.removeprefix("remote:")))[: args.limit]
    if args.json:
        return _write_json([{**msgspec.to_builtins(each.session), "backend": each.backend} for each in found])
    return _write_stdout(format_server_list(found))


def _show(admin: "SessionAdmin", args: Namespace) -> int:
    from ostler.cli.sessions_text import format_conversation

    meta, messages = admin.conversation(args.session)
    if args.json:
        return _write_json({"session": msgspec.to_builtins(meta), "messages": msgspec.to_builtins(list(messages))})
    return _write_stdout(format_conversation(meta, messages, full=args.full))


def _search(admin: "SessionAdmin", args: Namespace) -> int:
    from ostler.cli.sessions_text import format_hits, hit_fields

    hits = admin.search(" ".join(args.words), args.limit)
    if args.json:
        return _write_json([hit_fields(hit) for hit in hits])
    if not hits:
        notify(
            "no session matches"
            if args.all
            else "no session of this workspace matches; add --all to search all workspaces"
        )
    _write_stdout(format_hits(hits, sys.stdout))
    return 0 if hits else 1


def _export(admin: "SessionAdmin", args: Namespace) -> int:
    for chunk in admin.export(args.session, args.format, args.output, redact=not args.no_redact):
        sys.stdout.buffer.write(chunk)
    return 0


def _import(admin: "SessionAdmin", args: Namespace) -> int:
    from ostler import __version__

    return _write_stdout(admin.import_file(args.file, __version__))


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
    from ostler.cli.sessions_text import format_stats

    sessions, usage = admin.stats()
    if args.json:
        totals = {"sessions": len(sessions), "turns": sum(session.meta.turns for session in sessions)}
        size = sum(session.size for session in sessions)
        return _write_json({**totals, "bytes": size, "usage": msgspec.to_builtins(usage)})
    return _write_stdout(format_stats(sessions, usage, args.limit))


def _write_json(value: object) -> int:
    return _write_stdout(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def _write_stdout(text: str) -> int:
    sys.stdout.write(text)
    return 0
