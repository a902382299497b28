"""Runs the suite and prints the findings as text or JSON."""

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping

import msgspec

from ostler.conformance.agent_driver import AgentUnderTest
from ostler.conformance.check import CheckFinding
from ostler.conformance.suite import ConformanceSuite
from ostler.rendering.style import Styler, is_colour_enabled
from ostler.text.sanitise import sanitise

DEFAULT_PROMPT = "Answer with the single word ready."
MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("–", "dim")}


class ConformanceRun(msgspec.Struct, frozen=True):
    """One run of the suite. `argv` and `env` start the agent; `agent` is its name in the settings, if it has one."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    only: tuple[str, ...] = ()
    prompt: str = DEFAULT_PROMPT
    timeout: float = 60.0
    cwd: str = ""
    json: bool = False
    strict: bool = False
    agent: str = ""

    async def run(self) -> int:
        """Run the suite and print the findings. Return 0 if the agent conforms, else 1."""
        with tempfile.TemporaryDirectory(prefix="ostler-comply-") as scratch:
            cwd = os.path.abspath(self.cwd) if self.cwd else os.path.realpath(scratch)
            suite = ConformanceSuite(AgentUnderTest(self.argv, cwd, self.env, self.prompt, self.timeout), self.only)
            findings: list[CheckFinding] = []
            paint = Styler(is_colour_enabled(sys.stdout, os.environ))
            async with contextlib.aclosing(suite.run()) as results:  # stops the agent if printing fails
                async for finding in results:
                    if not self.json:
                        _print_finding(finding, new_area=not findings or findings[-1].area != finding.area, paint=paint)
                    findings.append(finding)
        failed = any(finding.state == "failed" and (self.strict or finding.level == "must") for finding in findings)
        if self.json:
            report = {"command": self.argv, "agent": suite.agent_info, "passed": not failed, "findings": findings}
            sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        else:
            sys.stdout.write(f"\n{self._summary(findings)}\n")
        return 1 if failed else 0

    def _summary(self, findings: list[CheckFinding]) -> str:
        counts = {state: sum(finding.state == state for finding in findings) for state in MARKS}
        only_should = sum(finding.state == "failed" and finding.level == "should" for finding in findings)
        remark = f" ({only_should} of them recommendations)" if only_should else ""
        text = f"{counts['passed']} passed, {counts['failed']} failed{remark}, {counts['skipped']} skipped"
        return f"{sanitise(self.agent or shlex.join(self.argv))}: {text}"


def _print_finding(finding: CheckFinding, *, new_area: bool, paint: Styler) -> None:
    mark, colour = MARKS[finding.state]
    if new_area:
        sys.stdout.write(f"{paint(finding.area, 'bold')}\n")
    remark = " (recommendation)" if finding.level == "should" and finding.state == "failed" else ""
    sys.stdout.write(f"  {paint(mark, colour)} {finding.id:<8} {finding.title}{remark}\n")
    if finding.detail:
        sys.stdout.write(f"    {' ' * 8} {paint(sanitise(finding.detail), colour)}\n")
    sys.stdout.flush()
