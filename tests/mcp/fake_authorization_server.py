"""An authorization server for tests: metadata, registration, sign-in without a page, tokens that rotate, revocation."""

import base64
import hashlib
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit


class FakeAuthorizationServer:
    """Serves from `with` on. `metadata` can be changed; `requests` has path and parameters of each request.

    A refresh token is valid once. `tokens` has the valid access tokens with the resource that they are for.
    """

    def __init__(self, path=""):
        self.requests = []
        self.tokens = {}
        self.refresh_tokens = set()
        self.codes = {}
        self.clients = {}
        self.answer = {}  # replaces parameters of the redirect
        self.refuses_refresh = False
        self.failure = 0  # the HTTP status of a proxy before the token endpoint
        self.hold = None  # an event until which the answer to a refresh is held back
        self.holding = threading.Event()
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: _Handler(self, *args))
        self._server.daemon_threads = True
        self._server.handle_error = lambda *args: None
        self.root = f"http://127.0.0.1:{self._server.server_port}"
        self.issuer = f"{self.root}{path}"
        self.metadata_path = f"/.well-known/oauth-authorization-server{path}"
        self.metadata = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.root}/authorize",
            "token_endpoint": f"{self.root}/token",
            "registration_endpoint": f"{self.root}/register",
            "revocation_endpoint": f"{self.root}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def sent(self, path):
        """Return the parameters of all requests to a path."""
        return [parameters for where, parameters in self.requests if where == path]

    def accepts(self, authorization, resource):
        return self.tokens.get(authorization.removeprefix("Bearer ")) == resource

    def issue(self, resource):
        access, refresh = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self.tokens[access] = resource
        self.refresh_tokens.add(refresh)
        return {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 60}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, fake, *args):
        self.fake = fake
        super().__init__(*args)

    def log_message(self, *args):
        pass

    def do_GET(self):
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        self.fake.requests.append((parts.path, query))
        if parts.path == self.fake.metadata_path:
            return self.reply(200, self.fake.metadata)
        if parts.path != "/authorize":
            return self.reply(404, {})
        code = secrets.token_hex(8)
        self.fake.codes[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.fake.issuer, **self.fake.answer}
        address = f"{query['redirect_uri']}?{urlencode({key: text for key, text in answer.items() if text})}"
        return self.reply(302, {}, {"location": address})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        is_json = self.headers["content-type"] == "application/json"
        fields = json.loads(body) if is_json else {key: values[0] for key, values in parse_qs(body).items()}
        if basic := self.headers.get("authorization", ""):
            pair = base64.b64decode(basic.removeprefix("Basic ")).decode()
            fields["client_id"], fields["basic_secret"] = map(unquote, pair.split(":"))
        with self.fake.lock:
            self.fake.requests.append((self.path, fields))
            match self.path:
                case "/register":
                    client = {"client_id": f"client-{len(self.fake.clients)}", **self.fake.clients.get("extra", {})}
                    self.fake.clients[client["client_id"]] = fields["redirect_uris"]
                    return self.reply(201, {**fields, **client})
                case "/token":
                    return self.reply(*self.token(fields))
                case "/revoke":
                    self.fake.refresh_tokens.discard(fields["token"])
                    return self.reply(200, {})
        return self.reply(404, {})

    def token(self, fields):
        if self.fake.failure:
            return self.fake.failure, {}
        if fields["grant_type"] == "refresh_token":
            if self.fake.refuses_refresh or fields["refresh_token"] not in self.fake.refresh_tokens:
                return 400, {"error": "invalid_grant", "error_description": "the token was used"}
            self.fake.refresh_tokens.remove(fields["refresh_token"])
            issued = self.fake.issue(fields["resource"])
            if hold := self.fake.hold:
                self.fake.holding.set()
                self.fake.lock.release()
                hold.wait(10)
                self.fake.lock.acquire()
            return 200, issued
        asked = self.fake.codes.pop(fields["code"], None)
        digest = base64.urlsafe_b64encode(hashlib.sha256(fields["code_verifier"].encode()).digest()).rstrip(b"=")
        same = asked and all(asked[key] == fields[key] for key in ("client_id", "redirect_uri", "resource"))
        if not same or digest.decode() != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        return 200, self.fake.issue(fields["resource"])

    def reply(self, status, value, headers=None):
        data = json.dumps(value).encode()
        self.send_response(status)
        fixed = {"content-type": "application/json", "content-length": str(len(data))}
        for name, text in {**fixed, **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)
