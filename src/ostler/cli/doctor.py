"""`ostler doctor`: what this machine has and lacks, and what to do about it."""

import asyncio
import os
import sys

from ostler.cli.arguments import Parser, add_model, add_workspace, model_flags


def main(arguments: list[str]) -> int:
    """Look at everything; 1 when something needed is missing."""
    parser = Parser("ostler doctor", description="Look at this machine and say what is missing.")
    parser.add_argument(
        "what",
        nargs="?",
        choices=("all", "model", "sandbox"),
        default="all",
        help="ask the model, or prove the sandbox",
    )
    add_workspace(parser)
    add_model(parser)
    given = parser.parse_args(arguments)

    from ostler.app.doctor import check_sandbox, run_checks
    from ostler.rendering.style import Styler, is_colour_enabled

    paint = Styler(is_colour_enabled(sys.stdout, os.environ))
    if given.what == "sandbox":
        findings = asyncio.run(check_sandbox())
    elif given.what == "model":
        from ostler.app.doctor_model import check_model

        findings = asyncio.run(check_model(given.cwd, model_flags(given)))
    else:
        findings = asyncio.run(run_checks(given.cwd, model_flags(given)))
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = {"good": paint("✓", "green"), "poor": paint("–", "yellow"), "bad": paint("✗", "red")}[finding.state]
        sys.stdout.write(f"{mark} {finding.name:<{width}} {finding.message}\n")
        if finding.remedy:
            sys.stdout.write(f"  {'':<{width}} {paint('→ ' + finding.remedy, 'dim')}\n")
    return 1 if any(finding.state == "bad" for finding in findings) else 0
