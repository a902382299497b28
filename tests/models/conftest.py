"""Fixtures for model tests: clients that do not sleep, and generated certificates."""

import shutil
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ostler.models.client_factory import NetworkConfig, make_client
from ostler.models.retry import RetryPolicy
from ostler.models.stall_detector import StallTimeouts

sys.path.insert(0, str(Path(__file__).parent))


class RecordedSleeps:
    """A `sleep` that returns immediately and records the seconds."""

    def __init__(self):
        self.seconds = []

    async def __call__(self, seconds):
        self.seconds.append(seconds)


@pytest.fixture
def sleeps():
    return RecordedSleeps()


@pytest.fixture
def client(sleeps):
    """Return a factory of clients with short timeouts that do not sleep between retries."""

    def make(server, kind="openai", *, attempts=3, timeouts=None, retries=None, clock=time.monotonic, **values):
        network = NetworkConfig(
            environ={},
            timeouts=timeouts or StallTimeouts(notice=0.05, first=2.0, silent=2.0, tick=0.02),
            retry_policy=retries or RetryPolicy(attempts=attempts, sleep=sleeps, jitter=lambda: 1.0),
            clock=clock,
        )
        values.setdefault("base_url", server.base_url if server else "")
        return make_client(api_kind=kind, network=network, **({"model": "m", "api_key": "sk-test-1234"} | values))

    return make


class Certificates:
    """A certificate authority, with a server certificate and a client certificate."""

    def __init__(self, folder):
        self.folder = folder
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                      "-subj", "/CN=Test authority", "-keyout", "ca.key", "-out", "ca.pem")  # fmt: skip
        self._issue("server", "subjectAltName=DNS:model.example,IP:127.0.0.1")
        self._issue("client", "subjectAltName=DNS:client.example")

    def _issue(self, name, extension):
        (self.folder / f"{name}.ext").write_text(extension)
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                      "-keyout", f"{name}.key", "-out", f"{name}.csr")  # fmt: skip
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                      "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")  # fmt: skip

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def path(self, name):
        return str(self.folder / name)

    def untrusted_client(self):
        """Return a self-signed client certificate, as profile settings."""
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-subj", "/CN=untrusted", "-days", "2",
                      "-keyout", "untrusted.key", "-out", "untrusted.pem")  # fmt: skip
        return {"client_cert": self.path("untrusted.pem"), "client_key": self.path("untrusted.key")}

    def server_context(self, *, require_client=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path("server.pem"), self.path("server.key"))
        if require_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.path("ca.pem"))
        return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl program to make certificates")
    return Certificates(tmp_path_factory.mktemp("certificates"))
