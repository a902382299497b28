"""`ostler permissions`: what the policy says to a command or a call, step by step, and to a whole corpus."""

import asyncio
import json
import sys
from argparse import Namespace

from ostler.app.run_options import RunOptions
from ostler.cli.arguments import Parser, add_workspace
from ostler.core.errors import UsageError


def main(arguments: list[str]) -> int:
    """Dispatch to one of the two."""
    parser = Parser("ostler permissions", description="What would be allowed, asked or denied, and why.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="explain|classify|list|revoke")
    explain = actions.add_parser("explain", help="the way to the verdict for a command line or a tool call")
    explain.add_argument("call", nargs="+", help="a shell command, or a tool's name and its arguments as JSON")
    explain.add_argument("--unattended", action="store_true", help="as in `ostler run`, where nobody can be asked")
    explain.add_argument("--write", action="store_true", help="as with --write")
    explain.add_argument("--yolo", action="store_true", help="as with --yolo")
    explain.add_argument("--profile", choices=("paranoid", "balanced", "god_mode"), default="")
    explain.add_argument("--allow", metavar="RULE", action="append", default=[])
    explain.add_argument("--trust-project", action="store_true", help="as if the project were trusted")
    classify = actions.add_parser("classify", help='read {"cmd": …} lines, print the danger of each')
    listing = actions.add_parser("list", help="the standing rules you gave for this project")
    revoke = actions.add_parser("revoke", help="take one of them back")
    revoke.add_argument("number", type=int, help="its number in the list")
    for action in (explain, classify, listing, revoke):
        add_workspace(action)
    given = parser.parse_args(arguments)
    return {"explain": _explain, "classify": _classify, "list": _list, "revoke": _revoke}[given.action](given)


def _explain(args: Namespace) -> int:
    from ostler.app.explain_permission import explain

    options = RunOptions(
        args.cwd,
        write=args.write or args.yolo,
        yolo=args.yolo,
        allow=tuple(args.allow),
        profile=args.profile,
        trust=args.trust_project,
    )
    tool, call_arguments = _parse_call(args.call)
    told = asyncio.run(explain(options, tool, call_arguments, interactive=not args.unattended))
    sys.stdout.write("\n".join(told.lines) + "\n")
    return {"allow": 0, "ask": 0, "deny": 4}[told.action]


def _parse_call(words: list[str]) -> tuple[str, dict[str, object]]:
    """A tool's name with JSON behind it, else a shell command."""
    if len(words) == 2 and words[1].lstrip().startswith("{"):
        try:
            arguments = json.loads(words[1])
        except ValueError as error:
            raise UsageError(f"the arguments of {words[0]} are not JSON: {error}") from None
        return words[0], arguments
    return "bash", {"command": " ".join(words)}


def _classify(args: Namespace) -> int:
    from pathlib import Path

    from ostler.app.trusted_settings import load_settings
    from ostler.policy.shell import analyse

    cwd = Path(args.cwd).resolve()
    security = load_settings(cwd).config.security
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        try:
            command = json.loads(line)["cmd"]
        except (ValueError, KeyError, TypeError):
            raise UsageError(f'line {number} of standard input is no {{"cmd": "…"}} object') from None
        found = analyse(
            str(command),
            cwd=str(cwd),
            danger_patterns=security.danger_patterns,
            blacklist_patterns=security.blacklist_patterns,
        )
        told = {"cmd": command, "verdict": found.verdict, "why": found.reason}
        sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
    return 0


def _list(args: Namespace) -> int:
    from ostler.app.session_manager import project_grants, workspace_path

    standing = project_grants(workspace_path(args.cwd)).granted()
    for number, one in enumerate(standing, 1):
        sys.stdout.write(f"{number:>3}  {one.rule.action} {one.rule.key}: {one.rule.pattern}  (given {one.when})\n")
    if not standing:
        sys.stdout.write("no standing rules\n")
    return 0


def _revoke(args: Namespace) -> int:
    from ostler.app.session_manager import project_grants, workspace_path

    book = project_grants(workspace_path(args.cwd))
    standing = book.granted()
    if not 1 <= args.number <= len(standing):
        raise UsageError(f"there is no rule {args.number}", hint="`ostler permissions list` numbers them")
    rule = standing[args.number - 1].rule
    book.revoke(rule)
    sys.stdout.write(f"revoked: {rule.action} {rule.key}: {rule.pattern}\n")
    return 0
