"""Run the acceptance tests and print how many scenarios of each specification pass and how many are not built yet."""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "acceptance"
SPECIFICATIONS = {
    "test_eidolon": "000 eidolon",
    "test_jolli": "001 jolli",
    "test_agent_zero": "002 agent zero",
    "test_offline_agent": "003 offline agent",
    "test_acpcli": "004 acpcli",
}
States = dict[tuple[str, str], str]  # (module, scenario) → one of STATES
STATES = (
    "pass",
    "missing",
    "skip",
    "fail",
)  # best first; a scenario with several cases has the state of its worst case


def main(options: Sequence[str] = ()) -> int:
    """Run the acceptance tests with these pytest options. Return 1 if one failed or passed unexpectedly.

    Tests that fail are run once more, one by one, as `./run test` does.
    """
    states, status, output = run(FOLDER, options)
    if status:
        sys.stdout.write(f"{output}\n── running the failed tests again, one by one\n")
        again, status, output = run(FOLDER, ["-n", "0", "--last-failed", "--last-failed-no-failures=none"])
        states |= again
    sys.stdout.write(table(states) + "\n")
    if status:
        sys.stderr.write("\n" + output)
    return 1 if status else 0


def run(folder: Path, options: Sequence[str] = ()) -> tuple[States, int, str]:
    """Run the tests of a folder. Return the state of each (module, scenario), pytest's exit status and its output."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", str(folder), "-q", "-r", "fEX", f"--junitxml={report}", *options]
        completed = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        cases = list(read(report)) if report.exists() else []
    states: States = {}
    for module, scenario, state in cases:
        previous = states.get((module, scenario), "pass")
        states[module, scenario] = max(previous, state, key=STATES.index)
    return states, completed.returncode, completed.stdout


def read(report: Path) -> Iterator[tuple[str, str, str]]:
    """Yield module, scenario and state of every test case in a JUnit report."""
    for case in ElementTree.parse(report).iter("testcase"):
        module = case.get("classname", "").rpartition(".")[2]
        yield module, case.get("name", "").partition("[")[0], state_of(case)


def state_of(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "fail"
    skipped = case.find("skipped")
    if skipped is None:
        return "pass"
    return "missing" if skipped.get("type") == "pytest.xfail" else "skip"


def table(states: States) -> str:
    """Format one line per specification and one for the total; a specification without scenarios has zeros."""
    counts = {module: Counter[str]() for module in SPECIFICATIONS}
    for (module, _), state in states.items():
        counts.setdefault(module, Counter())[state] += 1
    rows = [(SPECIFICATIONS.get(module, module), count) for module, count in counts.items()]
    rows.append(("all", sum((count for _, count in rows), Counter[str]())))
    head = f"{'specification':<18}{'scenarios':>10}" + "".join(f"{state:>9}" for state in STATES)
    return "\n".join([head, *(line(name, count) for name, count in rows)])


def line(name: str, count: "Counter[str]") -> str:
    return f"{name:<18}{count.total():>10}" + "".join(f"{count[state]:>9}" for state in STATES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
