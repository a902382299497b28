"""`ostler serve token`: issues, lists and revokes the tokens of a server's users."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.app.server_storage import open_accounts, open_audit_log, read_address
from ostler.cli.arguments import days, limit, minutes
from ostler.core.accounts import ALL_SCOPES, DAY, AccountToken
from ostler.core.errors import UsageError
from ostler.frontends.server.audit_log import AuditEntry

DEFAULT_DAYS = 90.0
_LIMITS = {
    "sessions": ("sessions", "sessions in use at once"),
    "connections": ("connections", "connections at once"),
    "messages": ("messages_per_minute", "messages per minute"),
    "tool-calls": ("tool_calls_per_minute", "tool calls of a session per minute"),
}


def add_token_parser(actions: Any) -> None:
    """Add `token` with its subcommands to the subcommands of `ostler serve`."""
    parser = actions.add_parser("token", help="issue, list or revoke the tokens of users")
    commands = parser.add_subparsers(dest="command", required=True, metavar="issue|list|pair|limit|revoke")
    issue = commands.add_parser("issue", help="make a token for a user and print it, once")
    issue.add_argument("user", metavar="USER", help="name of the user, who owns the sessions made with the token")
    scopes = sorted(ALL_SCOPES)
    issue.add_argument(
        "--scope", action="append", choices=scopes, help="what the token may do; repeatable (default: everything)"
    )
    issue.add_argument(
        "--days", type=days, default=DEFAULT_DAYS, help="days until it expires; 0 for never (default: 90)"
    )
    issue.add_argument("--label", default="", help="a note that `list` shows, such as the name of the machine")
    _add_common(issue)
    pair = commands.add_parser("pair", help="print a one-time line with which a client gets a token of a user")
    pair.add_argument("user", metavar="USER", help="name of the user")
    pair.add_argument("--url", default="", help="URL that the client uses (default: that of the server)")
    pair.add_argument(
        "--tls-cert", metavar="FILE", default="", help="private certificate at the URL (default: the server's)"
    )
    pair.add_argument("--minutes", type=minutes, default=10.0, help="how long the line is valid (default: 10)")
    _add_common(pair)
    _add_common(commands.add_parser("list", help="list the tokens without their secrets"))
    limits = commands.add_parser("limit", help="show the limits of a user, or set those that are given")
    limits.add_argument("user", metavar="USER", help="name of the user")
    for name, (_, text) in _LIMITS.items():
        limits.add_argument(f"--{name}", type=limit, metavar="N", help=f"{text}; 0 for the limit of the server")
    _add_common(limits)
    revoke = commands.add_parser("revoke", help="revoke tokens; open connections are closed within seconds")
    revoke.add_argument("id", metavar="ID", nargs="*", help="id of a token, from `list`")
    revoke.add_argument("--user", metavar="USER", help="revoke all tokens of this user")
    _add_common(revoke)


def run_token(args: argparse.Namespace) -> int:
    """Run the parsed command."""
    return {"issue": _issue, "list": _list, "pair": _pair, "limit": _limit, "revoke": _revoke}[args.command](args)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", metavar="FILE", default="", help="the server's database (default: in ~/.ostler)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _limit(args: argparse.Namespace) -> int:
    values = vars(args)
    given = {field: values[name.replace("-", "_")] for name, (field, _) in _LIMITS.items()}
    given = {field: number for field, number in given.items() if number is not None}
    with open_accounts(args.database) as accounts:
        limits = msgspec.structs.replace(accounts.limits(args.user), **given)
        if given:
            accounts.set_limits(args.user, limits)
    if given:
        _audit(args, "limits.changed", user=args.user)
    if args.json:
        _print_json(msgspec.structs.asdict(limits))
        return 0
    for field, text in _LIMITS.values():
        sys.stdout.write(f"{text}: {getattr(limits, field) or 'the limit of the server'}\n")
    return 0


def _issue(args: argparse.Namespace) -> int:
    with open_accounts(args.database) as accounts:
        issued = accounts.issue(args.user, args.scope or ALL_SCOPES, args.days * DAY, args.label)
    _audit(args, "token.issued", user=args.user, token=issued.token.id)
    if args.json:
        _print_json({**_fields(issued.token), "token": issued.text})
        return 0
    sys.stdout.write(f"{issued.text}\n")
    end = f"until {_date(issued.token.expires)}" if issued.token.expires else "until it is revoked"
    sys.stderr.write(f"Token {issued.token.id} of {args.user} is valid {end}. It is not shown again.\n")
    return 0


def _pair(args: argparse.Namespace) -> int:
    from ostler.frontends.server.listening import certificate_fingerprint
    from ostler.http.url import parse_server, server_url
    from ostler.settings.schema_services import ServerConfig
    from ostler.wire.pairing import PairingLine

    own = read_address(args.database)
    origin = parse_server(args.url or own.url or f"http://{ServerConfig().bind}")
    url = server_url(origin)
    is_own = origin.scheme == "https" and (url == own.url or origin.port == own.port)
    fingerprint = certificate_fingerprint(args.tls_cert) if args.tls_cert else own.fingerprint if is_own else ""
    with open_accounts(args.database) as accounts:
        code = accounts.open_pairing(args.user, args.minutes * 60, DEFAULT_DAYS * DAY)
    _audit(args, "pairing.opened", user=args.user)
    line = str(PairingLine(url, code, fingerprint))
    if args.json:
        _print_json({"user": args.user, "line": line, "minutes": args.minutes})
    else:
        sys.stdout.write(f"ostler connect '{line}'\n")
        sys.stderr.write(f"The line works once, within {args.minutes:g} minutes.\n")
    return 0


def _audit(args: argparse.Namespace, event: str, user: str = "", token: str = "") -> None:
    open_audit_log(args.database).write(AuditEntry(event=event, user=user, token=token, client="command line"))


def _list(args: argparse.Namespace) -> int:
    with open_accounts(args.database) as accounts:
        tokens = accounts.tokens()
    if args.json:
        _print_json([_fields(token) for token in tokens])
    else:
        sys.stdout.write("".join(_table(tokens)) or "no tokens; make one with `ostler serve token issue USER`\n")
    return 0


def _revoke(args: argparse.Namespace) -> int:
    if bool(args.id) == bool(args.user):
        raise UsageError("name either the ids of tokens or --user", hint="see `ostler serve token list`")
    with open_accounts(args.database) as accounts:
        if args.user:
            count, missing = accounts.revoke_user(args.user), []
        else:
            missing = [token_id for token_id in args.id if not accounts.revoke(token_id)]
            count = len(args.id) - len(missing)
    for token_id in [""] if args.user else [known for known in args.id if known not in missing]:
        _audit(args, "token.revoked", user=args.user or "", token=token_id)
    if args.json:
        _print_json({"revoked": count, "missing": missing})
    elif count:
        sys.stdout.write(f"{count} {'token' if count == 1 else 'tokens'} revoked\n")
    if missing or not count:
        what = ", ".join(missing) or f"user {args.user}"
        raise UsageError(f"there is no token to revoke for {what[:200]}", hint="see `ostler serve token list`")
    return 0


def _table(tokens: Sequence[AccountToken]) -> list[str]:
    from ostler.text.sanitise import sanitise

    rows = [("ID", "USER", "SCOPES", "STATE", "LAST USED", "LABEL")]
    for token in tokens:
        used = _date(token.used) if token.used else "never"
        rows.append((token.id, token.user, ",".join(sorted(token.scopes)), _state(token), used, sanitise(token.label)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    if len(rows) == 1:
        return []
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]).rstrip() + "\n"
            for row in rows]  # fmt: skip


def _state(token: AccountToken) -> str:
    if token.revoked:
        return "revoked"
    if not token.is_valid(time.time()):
        return "expired"
    return f"valid until {_date(token.expires)}" if token.expires else "valid"


def _fields(token: AccountToken) -> dict[str, Any]:
    return msgspec.structs.asdict(token) | {"scopes": sorted(token.scopes)}


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
