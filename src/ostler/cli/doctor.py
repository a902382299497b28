"""`ostler doctor`: checks this machine and says how to fix what is missing."""

import asyncio
import os
import sys

from ostler.cli.arguments import Parser, add_model, add_workspace, model_flags


def main(arguments: list[str]) -> int:
    """Run the checks and print the findings. Return 1 if there is an error."""
    parser = Parser("ostler doctor", description="Check this machine and report what is missing.")
    parser.add_argument(
        "what",
        nargs="?",
        choices=("all", "model", "sandbox"),
        default="all",
        help="what to check (default: all); model sends it a request, sandbox tries to break out of it",
    )
    add_workspace(parser)
    add_model(parser)
    args = parser.parse_args(arguments)

    from ostler.doctor.checks import check_sandbox, run_checks
    from ostler.rendering.style import Styler, is_colour_enabled

    paint = Styler(is_colour_enabled(sys.stdout, os.environ))
    if args.what == "sandbox":
        findings = asyncio.run(check_sandbox(args.cwd))
    elif args.what == "model":
        from ostler.doctor.model_check import check_model

        findings = asyncio.run(check_model(args.cwd, model_flags(args)))
    else:
        findings = asyncio.run(run_checks(args.cwd, model_flags(args)))
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = {"ok": paint("✓", "green"), "warning": paint("–", "yellow"), "error": paint("✗", "red")}[finding.state]
        sys.stdout.write(f"{mark} {finding.name:<{width}} {finding.message}\n")
        if finding.remedy:
            sys.stdout.write(f"  {'':<{width}} {paint('→ ' + finding.remedy, 'dim')}\n")
    return 1 if any(finding.state == "error" for finding in findings) else 0
