"""Users and tokens in a real database: what is stored, what is accepted, and what two processes see."""

import re
import threading

import pytest
from tests.storage.store_cases import HOSTED_CASES

from ostler.core.accounts import UserLimits
from ostler.core.errors import UsageError
from ostler.storage.sqlite_accounts import MAX_ATTEMPTS

pytestmark = pytest.mark.req("SV-5")


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=HOSTED_CASES)
def connect(request, tmp_path, monkeypatch, clock):
    """`connect()` returns the accounts as another process would see them."""
    case = HOSTED_CASES[request.param](tmp_path, monkeypatch)
    yield lambda: case.accounts(clock)
    case.close()


@pytest.fixture
def accounts(connect):
    return connect()


def test_token_has_256_random_bits_and_names_its_user(accounts):
    issued = accounts.issue("ada", label="laptop")
    assert re.fullmatch(r"ostler_[0-9a-f]{16}_[0-9a-f]{64}", issued.text)
    found = accounts.authenticate(issued.text)
    assert (found.user, found.id, found.label, found.scopes) == ("ada", issued.token.id, "laptop", {"read", "write"})
    assert accounts.issue("ada").text != issued.text


def test_no_file_contains_a_secret(accounts, tmp_path):
    secret = accounts.issue("ada").text.rpartition("_")[2]
    code = accounts.open_pairing("ada", 60)
    exchanged = accounts.exchange(code).text.rpartition("_")[2]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for text in (secret, exchanged, code, code.replace("-", "")):
        assert not any(text.encode() in data or text[:12].encode() in data for data in files)
    assert not any(bytes.fromhex(secret) in data for data in files)


def changed(text, index):
    return text[:index] + ("0" if text[index] != "0" else "1") + text[index + 1 :]


def test_every_changed_character_makes_a_token_invalid(accounts):
    text = accounts.issue("ada").text
    assert not [index for index in range(len(text)) if accounts.authenticate(changed(text, index))]


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda text: text + " ",
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text.rpartition("_")[2],
        lambda text: "",
        lambda text: "' OR 1 --",
        lambda text: "\0",
        lambda text: "\udcff",
        lambda text: "x" * 1_000_000,
        lambda text: text.replace("0", "٠").replace("1", "١"),  # other digits
    ],
)
def test_other_texts_are_not_tokens(accounts, change):
    assert accounts.authenticate(change(accounts.issue("ada").text)) is None


def test_secret_of_one_token_does_not_work_with_the_id_of_another(accounts):
    first, second = accounts.issue("ada").text, accounts.issue("bob").text
    mixed = first.rpartition("_")[0] + "_" + second.rpartition("_")[2]
    assert accounts.authenticate(mixed) is None


def test_expired_token_is_refused(accounts, clock):
    issued = accounts.issue("ada", lifetime=100)
    clock.now += 99
    assert accounts.authenticate(issued.text)
    clock.now += 1
    assert accounts.authenticate(issued.text) is None
    assert accounts.valid([issued.token.id]) == frozenset()
    assert not accounts.has_valid_token()


def test_revocation_by_another_process_counts_at_once(accounts, connect):
    issued, other = accounts.issue("ada"), connect()
    assert other.revoke(issued.token.id)
    assert accounts.authenticate(issued.text) is None
    assert not accounts.revoke(issued.token.id)
    assert not accounts.revoke("nothing")


def test_revoking_a_user_ends_all_tokens_and_codes_of_this_user_only(accounts):
    mine, also, others = accounts.issue("ada"), accounts.issue("ada"), accounts.issue("bob")
    code = accounts.open_pairing("ada", 60)
    assert accounts.revoke_user("ada") == 2
    assert [accounts.authenticate(issued.text) for issued in (mine, also)] == [None, None]
    assert accounts.authenticate(others.text).user == "bob"
    assert accounts.exchange(code) is None


def test_tokens_are_listed_with_state_but_without_secrets(accounts, clock):
    first = accounts.issue("ada", {"read"})
    clock.now += 5
    second = accounts.issue("bob", lifetime=10)
    accounts.authenticate(second.text)
    accounts.revoke(first.token.id)
    listed = accounts.tokens()
    assert [(token.user, token.scopes, bool(token.revoked)) for token in listed] == [
        ("ada", {"read"}, True),
        ("bob", {"read", "write"}, False),
    ]
    assert listed[1].used == clock.now
    assert first.text not in repr(listed)
    assert second.text not in repr(listed)


@pytest.mark.parametrize("user", ["", "Ada", "a b", "../x", "a" * 65, "-a", "a\n", "ä", "a/b"])
def test_bad_user_names_are_refused(accounts, user):
    with pytest.raises(UsageError, match="is not a user name"):
        accounts.issue(user)
    with pytest.raises(UsageError, match="is not a user name"):
        accounts.open_pairing(user, 60)


@pytest.mark.parametrize(
    "options", [{"scopes": ()}, {"scopes": {"root"}}, {"lifetime": -1}, {"lifetime": float("nan")}]
)
def test_bad_scopes_and_lifetimes_are_refused(accounts, options):
    with pytest.raises(UsageError):
        accounts.issue("ada", **options)
    assert not accounts.has_valid_token()


# -- pairing codes -------------------------------------------------------------------------------------------------


def test_code_is_exchanged_once_for_a_token_of_its_user(accounts, clock):
    code = accounts.open_pairing("ada", 60, token_lifetime=500)
    issued = accounts.exchange(f" {code.lower()} ", "laptop")
    assert accounts.authenticate(issued.text).user == "ada"
    assert issued.token.expires == clock.now + 500
    assert issued.token.label == "laptop"
    assert accounts.exchange(code) is None


def test_code_expires(accounts, clock):
    code = accounts.open_pairing("ada", 60)
    clock.now += 60
    assert accounts.exchange(code) is None


def test_wrong_attempts_use_up_a_code(accounts):
    code, other = accounts.open_pairing("ada", 60), accounts.open_pairing("bob", 60)
    wrong = code[:-1] + ("A" if code[-1] != "A" else "B")
    assert [accounts.exchange(wrong) for _ in range(MAX_ATTEMPTS)] == [None] * MAX_ATTEMPTS
    assert accounts.exchange(code) is None
    assert accounts.exchange(other)


def test_fewer_wrong_attempts_leave_a_code_usable(accounts):
    code = accounts.open_pairing("ada", 60)
    wrong = code[:-1] + ("A" if code[-1] != "A" else "B")
    for _ in range(MAX_ATTEMPTS - 1):
        accounts.exchange(wrong)
    assert accounts.exchange(code)


def test_two_processes_cannot_both_use_a_code(connect):
    first, second = connect(), connect()
    for _ in range(10):
        code, results, start = first.open_pairing("ada", 60), [], threading.Barrier(2)

        def exchange(accounts, code=code, results=results, start=start):
            start.wait()
            results.append(accounts.exchange(code))

        threads = [threading.Thread(target=exchange, args=[accounts]) for accounts in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len([issued for issued in results if issued]) == 1


@pytest.mark.parametrize("code", ["", "A", "AAAA-AAAA-AAAA-AAAA", "\0" * 16, "ſ" * 16, "A" * 100_000])
def test_unknown_codes_are_refused(accounts, code):
    assert accounts.exchange(code) is None


def test_secrets_are_compared_in_constant_time_also_if_there_is_no_such_token(accounts, monkeypatch):
    compared = []

    def compare(left, right):
        compared.append((len(left), len(right)))
        return left == right

    monkeypatch.setattr("hmac.compare_digest", compare)
    text = accounts.issue("ada").text
    code = accounts.open_pairing("ada", 60)
    unknown = f"ostler_{'0' * 16}_{'0' * 64}"
    for given in (text, text[:-1] + ("0" if text[-1] != "0" else "1"), unknown, "x", ""):
        accounts.authenticate(given)
    for given in (code[:-1] + ("A" if code[-1] != "A" else "B"), "AAAA-AAAA-AAAA-AAAA", code):
        accounts.exchange(given)
    assert compared == [(32, 32)] * 8


def test_limits_of_a_user_are_stored_and_read_by_other_processes(connect):
    first, second = connect(), connect()
    assert first.limits("ada") == UserLimits()
    first.set_limits("ada", UserLimits(sessions=3, tool_calls_per_minute=20))
    assert second.limits("ada") == UserLimits(sessions=3, tool_calls_per_minute=20)
    assert second.limits("bob") == UserLimits()
    with pytest.raises(UsageError, match="negative"):
        first.set_limits("ada", UserLimits(sessions=-1))
