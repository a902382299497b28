"""The official conformance suite against Ostler's MCP client and the handler of `ostler mcp serve` (slow tests).

Every failed check of the suite must be expected below, with the reason, and every expectation must fail.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from installer import installed_node, installed_package

pytestmark = [pytest.mark.slow, pytest.mark.req("MC-1", "MC-5", "MC-6"), pytest.mark.timeout(600)]

TIMESTAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]*Z$")
HERE = Path(__file__).parent
PACKAGE = "@modelcontextprotocol/conformance"
# The release of the suite and its options for each run.
RUNS = {
    "2025-11-25 (0.1.16)": ("0.1.16", ["--suite", "all"]),
    "2025-11-25": ("0.2.0-alpha.12", ["--requirements", "2025-11-25"]),
    "2026-07-28": ("0.2.0-alpha.12", ["--requirements", "2026-07-28"]),
}

NO_PERSON = "an extension for logins without a person, which Ostler does not support"
NO_DPOP = "an extension that binds tokens to a key (DPoP), which Ostler does not support"
NO_METADATA = (
    "without metadata it is unknown whether PKCE is supported; versions since 2025-11-25 forbid to continue then"
)
WRONG_ISSUER = "this release of the suite serves metadata with another issuer than the server, which must be rejected"
NO_RESOURCES = "Ostler's server has tools, no resources"
NO_PROMPTS = "Ostler's server has tools, no prompts"
NO_SAMPLING = "sampling and roots are deprecated and not supported"
NO_LOGGING = "logging is deprecated and not supported"
CONTENT = "Ostler's tools return text and images only"
NO_TASKS = "the tasks extension is not supported"
# A scenario, or a scenario and one of its checks; a final * matches the rest of the name.
EXPECTED = {
    "client": {
        "auth/client-credentials-*": NO_PERSON,
        "auth/enterprise-managed-authorization": NO_PERSON,
        "auth/cross-app-access-complete-flow": NO_PERSON,
        "auth/wif-jwt-bearer": NO_PERSON,
        "auth/dpop*": NO_DPOP,
        "auth/2025-03-26-oauth-endpoint-fallback": NO_METADATA,
        "auth/2025-03-26-oauth-metadata-backcompat": WRONG_ISSUER,
    },
    "server": {
        "resources-*": NO_RESOURCES,
        "sep-2164-resource-not-found": NO_RESOURCES,
        "caching:sep-2549-resources-list-caching-hints": NO_RESOURCES,
        "caching:sep-2549-resources-templates-list-caching-hints": NO_RESOURCES,
        "prompts-*": NO_PROMPTS,
        "caching:sep-2549-prompts-list-caching-hints": NO_PROMPTS,
        "input-required-result-non-tool-request": NO_PROMPTS,
        "completion-complete": "there is nothing to complete without prompts and resources",
        "logging-set-level": NO_LOGGING,
        "tools-call-with-logging": NO_LOGGING,
        "tools-call-sampling": NO_SAMPLING,
        "input-required-result-basic-sampling": NO_SAMPLING,
        "input-required-result-basic-list-roots": NO_SAMPLING,
        "input-required-result-multiple-input-requests": NO_SAMPLING,
        "input-required-result-capability-check": NO_SAMPLING,
        "server-stateless:sep-2575-server-rejects-undeclared-capability": "no tool needs a capability of the client",
        "server-stateless:sep-2575-missing-capability-http-400": "no tool needs a capability of the client",
        "tools-call-audio": CONTENT,
        "tools-call-embedded-resource": CONTENT,
        "tools-call-mixed-content": CONTENT,
        "tasks-*": NO_TASKS,
        "input-required-result-ignore-extra-params": "a reply to a question that was not asked approves nothing",
        "http-custom-header-server-validation": "Ostler serves stdio, where no headers exist",
    },
}


def failed_checks(folder):
    """Return the scenarios that ran, and the failed checks as `scenario:check` with the message."""
    scenarios, failed = set(), {}
    for file in folder.glob("**/checks.json"):
        name = TIMESTAMP.sub("", str(file.parent.relative_to(folder))).removeprefix("server-")
        scenarios.add(name)
        for check in json.loads(file.read_text()):
            if check["status"] in ("FAILURE", "WARNING"):
                failed[f"{name}:{check['id']}"] = check.get("errorMessage", "")
    return scenarios, failed


def matches(pattern, check):
    scenario = check.partition(":")[0]
    if pattern.endswith("*"):
        return scenario.startswith(pattern[:-1])
    return pattern in (scenario, check)


def run_suite(run, arguments, folder):
    release, options = RUNS[run]
    file = installed_package(f"conformance-{release}", f"{PACKAGE}@{release}", f"{PACKAGE}/dist/index.js")
    command = [str(installed_node()), str(file), *arguments, *options, "-o", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def check_results(side, folder, done):
    scenarios, failed = failed_checks(folder)
    assert scenarios, done.stdout + done.stderr
    expected = EXPECTED[side]
    unexpected = {check: text for check, text in failed.items() if not any(matches(name, check) for name in expected)}
    assert not unexpected
    for name in expected:
        ran = [scenario for scenario in scenarios if matches(name.partition(":")[0], scenario)]
        if ran:
            assert any(matches(name, check) for check in failed), f"{name} passed, although it is expected to fail"
    failing = {check.partition(":")[0] for check in failed}
    sys.stderr.write(f"{side}: {len(scenarios - failing)} scenarios passed, {len(failing)} failed as expected\n")


@pytest.mark.parametrize("run", RUNS)
def test_client_conforms(run, tmp_path):
    command = f"{sys.executable} {HERE / 'conformance_client.py'}"
    check_results("client", tmp_path, run_suite(run, ["client", "--command", command], tmp_path))


@pytest.mark.parametrize("run", RUNS)
def test_server_conforms(run, tmp_path):
    installed_node()
    with subprocess.Popen(
        [sys.executable, str(HERE / "conformance_server.py")], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            url = server.stdout.readline().strip()
            check_results("server", tmp_path, run_suite(run, ["server", "--url", url], tmp_path))
        finally:
            server.kill()
