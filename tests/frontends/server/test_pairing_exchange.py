"""A one-time code becomes a token over a real socket, once, and not for web pages or guessers."""

import pytest
from tests.frontends.server.guarded_server import ORIGIN, GuardedServer

from ostler.core.errors import JournalError
from ostler.frontends.server.failure_limit import FailureLimit
from ostler.wire.pairing import PAIR_PATH

pytestmark = pytest.mark.req("SV-5")
JSON = [("Content-Type", "application/json")]


def exchange(server, code, headers=JSON, **options):
    return server.request("POST", PAIR_PATH, headers=headers, body={"code": code, "label": "laptop"}, **options)


@pytest.fixture
def code(server):
    return server.accounts.open_pairing("ada", 60)


def test_code_becomes_a_token_of_its_user_once(server, code):
    status, body, headers = exchange(server, code)
    assert (status, body["user"], headers["Cache-Control"]) == (200, "ada", "no-store")
    assert server.request("GET", "/api/x", body["token"])[1] == {"user": "ada"}
    assert server.accounts.tokens()[0].label == "laptop"
    assert exchange(server, code)[:2] == (
        401,
        {"error": "the pairing code is wrong, used or expired", "code": "unauthenticated"},
    )


def test_code_may_be_typed_in_lower_case_without_hyphens(server, code):
    assert exchange(server, code.lower().replace("-", ""))[0] == 200


def test_wrong_used_and_expired_codes_get_the_same_answer(server, code):
    expired = server.accounts.open_pairing("bob", 1e-6)
    exchange(server, code)
    answers = [exchange(server, text)[:2] for text in (code, expired, "AAAA-AAAA-AAAA-AAAA", "", "x" * 1000)]
    assert len({str(answer) for answer in answers}) == 1
    assert answers[0][0] == 401


@pytest.mark.parametrize("origin", ["https://evil.example", "null", ""])
def test_web_page_cannot_use_a_code(server, code, origin):
    assert exchange(server, code, [*JSON, ("Origin", origin)])[0] == 403
    assert exchange(server, code)[0] == 200


def test_listed_origin_can_use_a_code(server, code):
    assert exchange(server, code, [*JSON, ("Origin", ORIGIN)])[0] == 200


def test_rebound_host_cannot_use_a_code(server, code):
    assert exchange(server, code, host=f"evil.example:{server.port}")[0] == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_form_of_a_web_page_is_refused(server, code, kind):
    assert exchange(server, code, [("Content-Type", kind)] if kind else [])[0] == 415
    assert exchange(server, code)[0] == 200


@pytest.mark.parametrize("body", [None, [], {}, {"code": 1}, {"code": "x" * 5000}, "text", {"label": "x"}])
def test_other_bodies_are_refused(server, body):
    status, answer, _ = server.request("POST", PAIR_PATH, headers=JSON, body=body)
    assert status in (400, 413)
    assert answer["code"] == "bad_message"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(server, code, method):
    assert server.request(method, PAIR_PATH, headers=JSON)[0] == 405
    assert exchange(server, code)[0] == 200


def test_code_in_the_address_is_not_used(server, code):
    assert server.request("POST", f"{PAIR_PATH}?code={code}", headers=JSON, body={})[0] == 400


@pytest.mark.parametrize("path", [f"{PAIR_PATH}/", f"/{PAIR_PATH}", f"{PAIR_PATH}/x", PAIR_PATH.upper()])
def test_paths_beside_it_need_a_token(server, code, path):
    assert server.request("POST", path, headers=JSON, body={"code": code})[0] == 401


def test_guessing_is_stopped_also_for_a_correct_code(tmp_path):
    server = GuardedServer(tmp_path, pairing_failures=FailureLimit(3))
    try:
        code = server.accounts.open_pairing("ada", 60)
        answers = [exchange(server, "AAAA-AAAA-AAAA-AAAA")[0] for _ in range(5)]
        assert answers == [401] * 4 + [429]
        status, _, headers = exchange(server, code)
        assert status == 429
        assert int(headers["Retry-After"]) > 0
    finally:
        server.close()


def test_pairing_is_in_the_audit_log_without_code_and_token(server, code):
    body = exchange(server, code)[1]
    exchange(server, code)
    paired, refused = server.entries()
    assert (paired["event"], paired["user"], paired["client"]) == ("paired", "ada", "127.0.0.1")
    assert (refused["event"], refused["reason"]) == ("refused", "wrong pairing code")
    text = server.audit_file.read_text()
    assert code not in text
    assert body["token"] not in text


def test_broken_database_pairs_nobody(server, code, monkeypatch):
    def fail(*arguments):
        raise JournalError("disk error at /secret/path")

    monkeypatch.setattr(server.accounts, "exchange", fail)
    assert exchange(server, code)[:2] == (
        503,
        {"error": "codes cannot be checked at the moment", "code": "internal"},
    )
