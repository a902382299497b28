"""What the suite found, for a person or for a program."""

import contextlib
import os
import shlex
import sys
import tempfile

import msgspec

from ostler.app.conformance.agent_driver import AgentUnderTest
from ostler.app.conformance.check import CheckFinding
from ostler.app.conformance.suite import ConformanceSuite
from ostler.rendering.style import Styler, is_colour_enabled
from ostler.text.sanitise import sanitise

DEFAULT_PROMPT = "Answer with the single word ready."
MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("–", "dim")}


class ConformanceRun(msgspec.Struct, frozen=True):
    """One run of the suite, from the command to the exit status."""

    argv: tuple[str, ...]
    only: tuple[str, ...] = ()
    prompt: str = DEFAULT_PROMPT
    timeout: float = 60.0
    cwd: str = ""
    json: bool = False
    strict: bool = False
    agent: str = ""

    async def run(self) -> int:
        """0 when it keeps to the protocol, 1 when it does not."""
        with tempfile.TemporaryDirectory(prefix="ostler-comply-") as scratch:
            cwd = os.path.abspath(self.cwd) if self.cwd else os.path.realpath(scratch)
            argv, env = self._resolve_command()
            suite = ConformanceSuite(AgentUnderTest(argv, cwd, env, self.prompt, self.timeout), self.only)
            findings: list[CheckFinding] = []
            paint = Styler(is_colour_enabled(sys.stdout, os.environ))
            async with contextlib.aclosing(suite.run()) as found:  # whoever reads this may leave at any line
                async for finding in found:
                    if not self.json:
                        _print_finding(finding, new_area=not findings or findings[-1].area != finding.area, paint=paint)
                    findings.append(finding)
        failed = any(one.state == "failed" and (self.strict or one.level == "must") for one in findings)
        if self.json:
            told = {"command": argv, "agent": suite.agent_info, "passed": not failed, "findings": findings}
            sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
        else:
            sys.stdout.write(f"\n{self._summary(findings)}\n")
        return 1 if failed else 0

    def _resolve_command(self) -> tuple[tuple[str, ...], dict[str, str]]:
        """The command and the environment: as they were given, or as the settings have them."""
        if not self.agent:
            return _absolute_program(self.argv), dict(os.environ)
        from ostler.app.acp_agent_config import find_agent
        from ostler.app.project_paths import workspace_path
        from ostler.app.trusted_settings import load_settings

        here = workspace_path(".")
        found = find_agent(self.agent, "", here, load_settings(here))
        return (found.entry.command, *found.entry.args), found.environment(os.environ)

    def _summary(self, findings: list[CheckFinding]) -> str:
        counts = {state: sum(one.state == state for one in findings) for state in MARKS}
        only_should = sum(one.state == "failed" and one.level == "should" for one in findings)
        aside = f" ({only_should} of them only advice)" if only_should else ""
        told = f"{counts['passed']} passed, {counts['failed']} failed{aside}, {counts['skipped']} not offered"
        return f"{sanitise(self.agent or shlex.join(self.argv))}: {told}"


def _absolute_program(argv: tuple[str, ...]) -> tuple[str, ...]:
    """A path to a program is meant from here, not from where it will work."""
    return (os.path.abspath(argv[0]), *argv[1:]) if "/" in argv[0] else argv


def _print_finding(finding: CheckFinding, *, new_area: bool, paint: Styler) -> None:
    mark, colour = MARKS[finding.state]
    if new_area:
        sys.stdout.write(f"{paint(finding.area, 'bold')}\n")
    advice = " (advice)" if finding.level == "should" and finding.state == "failed" else ""
    sys.stdout.write(f"  {paint(mark, colour)} {finding.id:<8} {finding.title}{advice}\n")
    if finding.detail:
        sys.stdout.write(f"    {' ' * 8} {paint(sanitise(finding.detail), colour)}\n")
    sys.stdout.flush()
