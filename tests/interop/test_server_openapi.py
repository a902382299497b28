"""schemathesis reads the OpenAPI document of a real server and sends it what it generates from it."""

import re
import subprocess
import sys

import pytest
from installer import installed_python_tool
from tests.serving import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.req("SV-2", "SV-5")]
# Endless streams, the token of the run itself, and messages, whose schema is too large to cover.
NOT_TRIED = ["--exclude-path-regex", "stream$", "--exclude-path", "/api/agent/token"]
CHECKS = [
    "--checks",
    "all",
    "--exclude-checks",
    "positive_data_acceptance",
]  # a body may name a model that is not offered


@pytest.mark.parametrize(
    "phases", [["--phases", "coverage", "--exclude-operation-id", "sendMessages"], ["--phases", "fuzzing"]]
)
def test_generated_requests_are_answered_as_documented(ostler, models, phases, tmp_path):
    folder = installed_python_tool("schemathesis", "schemathesis>=4.32")
    token = ostler("serve", "token", "issue", "ada").stdout.strip()
    with serving(ostler, models) as server:
        document = tmp_path / "openapi.json"
        document.write_bytes(server.client(token).open("GET", "/api/openapi.json").read())
        command = [sys.executable, "-m", "schemathesis.cli", "run", str(document), "--url", server.url]
        options = ["--max-examples", "30", "--request-timeout", "10", "--suppress-health-check", "all", "--no-color"]
        done = subprocess.run(
            [*command, "--header", f"Authorization: Bearer {token}", *phases, *NOT_TRIED, *CHECKS, *options],
            cwd=tmp_path,
            env={**ostler.environment(), "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
        assert done.returncode == 0, done.stdout[-5000:]
        assert re.search(r"\b[1-9]\d* passed", done.stdout)
