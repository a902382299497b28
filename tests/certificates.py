"""Generated TLS certificates."""

import hashlib
import ssl
import subprocess


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

    def fingerprint(self, name="server.pem"):
        """Return the SHA-256 of a certificate as hexadecimal digits."""
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert((self.folder / name).read_text())).hexdigest()

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
