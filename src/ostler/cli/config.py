"""`ostler config`: shows the effective settings and their origin, checks config files, prints their JSON Schema."""

import json
import os
import sys
from argparse import Namespace
from pathlib import Path

from ostler.cli.arguments import Parser, add_workspace
from ostler.text.stderr import notify


def main(arguments: list[str]) -> int:
    """Parse the arguments and run a subcommand."""
    parser = Parser(
        "ostler config",
        description="Show or check the settings: JSONC files in ~/.ostler and in the project's .ostler folder.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|check|schema")
    show = actions.add_parser("show", help="print the effective settings as JSONC")
    show.add_argument("--origin", action="store_true", help="add the origin of each value")
    show.add_argument("--trust-project", action="store_true", help="show them as if the project were trusted")
    check = actions.add_parser(
        "check", help="report all errors in the config files; exit with status 2 if there are any"
    )
    check.add_argument("files", nargs="*", metavar="FILE", help="files to check (default: the files in use)")
    for action in (show, check):
        add_workspace(action)
    actions.add_parser("schema", help="print the JSON Schema, for editors")
    args = parser.parse_args(arguments)
    return {"show": _show, "check": _check, "schema": _schema}[args.action](args)


def _show(args: Namespace) -> int:
    from ostler.knowledge.trusted_settings import load_settings
    from ostler.settings.config_report import format_settings

    settings = load_settings(Path(args.cwd).resolve(), trust=args.trust_project)
    for line in (*settings.notes, *map(str, settings.problems)):
        notify(line)
    sys.stdout.write(format_settings(settings, with_origin=args.origin))
    return 0


def _check(args: Namespace) -> int:
    from ostler.settings.config_report import check_files
    from ostler.settings.load import find_config_files

    files = [Path(name) for name in args.files] or find_config_files(Path(args.cwd).resolve(), os.environ)
    problems = check_files(files)
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    if not problems:
        sys.stdout.write("".join(f"{file}: no errors\n" for file in files) or "no config files\n")
    return 2 if problems else 0


def _schema(args: Namespace) -> int:
    from ostler.settings.json_schema import json_schema

    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
    return 0
