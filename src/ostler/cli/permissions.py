"""`ostler permissions`: explains decisions on commands and tool calls, classifies commands, lists and revokes rules."""

import asyncio
import json
import sys
from argparse import ArgumentTypeError, Namespace
from typing import get_args

from ostler.cli.arguments import Parser, add_agent, add_mode, add_workspace, run_options
from ostler.core.errors import UsageError
from ostler.core.sessions import Profile


def main(arguments: list[str]) -> int:
    """Parse the arguments and run a subcommand."""
    parser = Parser(
        "ostler permissions", description="Explain what is allowed, needs approval or is denied; list or revoke rules."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="explain|classify|list|revoke")
    explain = actions.add_parser(
        "explain", help="explain the decision on a shell command or a tool call, without running it"
    )
    explain.add_argument("call", nargs="+", help="a shell command, or a tool name and its arguments as JSON")
    explain.add_argument(
        "--unattended", action="store_true", help="decide as in `ostler run`, which is non-interactive"
    )
    explain.add_argument("--write", action="store_true", help="decide as with --write")
    explain.add_argument("--yolo", action="store_true", help="decide as with --yolo")
    add_mode(explain)
    add_agent(explain)
    explain.add_argument("--profile", choices=get_args(Profile), default="", help="security profile")
    explain.add_argument(
        "--allow", metavar="RULE", action="append", default=[], help="decide as with --allow RULE; repeatable"
    )
    explain.add_argument(
        "--trust-project", dest="trust", action="store_true", help="decide as if the project were trusted"
    )
    classify = actions.add_parser("classify", help='classify commands: read {"cmd": …} lines, print a verdict for each')
    listing = actions.add_parser("list", help="list the rules you set for all sessions of this project")
    revoke = actions.add_parser("revoke", help="revoke one of these rules")
    revoke.add_argument("number", type=_rule_number, help="the rule's number in the list")
    for action in (explain, classify, listing, revoke):
        add_workspace(action)
    args = parser.parse_args(arguments)
    return {"explain": _explain, "classify": _classify, "list": _list, "revoke": _revoke}[args.action](args)


def _explain(args: Namespace) -> int:
    from ostler.app.manual_calls import explain_call
    from ostler.core.tools import ToolCall

    tool, call_arguments = _parse_call(args.call)
    call = ToolCall("explain", tool, call_arguments)
    explanation = asyncio.run(explain_call(run_options(args), call, interactive=not args.unattended))
    sys.stdout.write("\n".join(explanation.lines) + "\n")
    return {"allow": 0, "ask": 0, "deny": 4}[explanation.action]


def _parse_call(words: list[str]) -> tuple[str, dict[str, object]]:
    """Return the tool and its arguments. Anything but a tool name followed by JSON is a shell command."""
    if len(words) == 2 and words[1].lstrip().startswith("{"):
        try:
            arguments = json.loads(words[1])
        except ValueError as error:
            raise UsageError(f"invalid JSON in the arguments of {words[0]}: {error}") from None
        return words[0], arguments
    return "bash", {"command": " ".join(words)}


def _classify(args: Namespace) -> int:
    from pathlib import Path

    from ostler.knowledge.trusted_settings import load_settings
    from ostler.policy.shell import analyse

    cwd = Path(args.cwd).resolve()
    security = load_settings(cwd).config.security
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        try:
            command = json.loads(line)["cmd"]
        except (ValueError, KeyError, TypeError):
            raise UsageError(f'line {number} of standard input is not a {{"cmd": "…"}} object') from None
        analysis = analyse(
            str(command),
            cwd=str(cwd),
            danger_patterns=security.danger_patterns,
            blacklist_patterns=security.blacklist_patterns,
        )
        record = {"cmd": command, "verdict": analysis.verdict, "why": analysis.reason}
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    return 0


def _list(args: Namespace) -> int:
    from ostler.settings.project_paths import project_grants, workspace_path

    grants = project_grants(workspace_path(args.cwd)).granted()
    for number, grant in enumerate(grants, 1):
        rule = grant.rule
        sys.stdout.write(f"{number:>3}  {rule.action} {rule.key}: {rule.pattern}  (set {grant.when})\n")
    if not grants:
        sys.stdout.write("no rules are set for this project\n")
    return 0


def _rule_number(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a rule number; list the numbers with `ostler permissions list`")
    return int(text)


def _revoke(args: Namespace) -> int:
    from ostler.settings.project_paths import project_grants, workspace_path

    store = project_grants(workspace_path(args.cwd))
    grants = store.granted()
    if not 1 <= args.number <= len(grants):
        raise UsageError(f"unknown rule {args.number}", hint="list the numbers with `ostler permissions list`")
    rule = grants[args.number - 1].rule
    store.revoke(rule)
    sys.stdout.write(f"revoked: {rule.action} {rule.key}: {rule.pattern}\n")
    return 0
