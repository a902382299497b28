"""Finds secrets by their format: tokens with a known prefix, private keys, passwords in URLs."""

import re
from collections.abc import Iterator
from functools import cache

from ostler.text.lazy_regex import regex
from ostler.text.plain_view import Span
from ostler.text.secret_values import is_mixed, is_placeholder, looks_random

# The literal prefixes of tokens, and the pattern of the rest; with `_END` the length is exact.
_END = r"(?![A-Za-z0-9])"
_TOKENS: tuple[tuple[str, str], ...] = (
    ("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}" + _END),
    ("LTAI", r"[A-Za-z0-9]{16,24}" + _END),
    ("AKID cio", r"[A-Za-z0-9]{32}" + _END),
    ("AIza", r"[\w\-]{30,60}"),
    ("ya29.", r"[\w\-.]{20,}"),
    ("GOCSPX- pypi-Ag hvs. hvb. hvr. sb_secret_", r"[\w\-]{20,}"),
    ("1//0 HRKU- tgp_v1_ CFPAT- tfp_", r"[\w\-]{30,}"),
    ("ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,}"),
    ("github_pat_", r"\w{20,}"),
    ("gl", r"(?:pat|ptt|dt|rt|cbt|ft|imt|agent|soat|oas|ffct)-[\w\-.]{16,}"),
    ("GR1348941", r"[\w\-]{16,}"),
    ("ATATT3", r"[\w\-=]{20,}"),
    ("ATBB hf_", r"[A-Za-z0-9]{24,}"),
    ("xox", r"[abeoprs](?:\.xox[bp])?-[A-Za-z0-9\-]{10,}"),
    ("xapp-", r"[0-9]-[A-Za-z0-9\-]{10,}"),
    ("sk_live_ sk_test_ rk_live_ rk_test_ rzp_live_ rzp_test_ EAACEdEose0cBA", r"[A-Za-z0-9]{10,}"),
    ("whsec_", r"[A-Za-z0-9+/=]{16,}"),
    ("sk-", r"(?:ant|proj|svcacct|admin|or-v1|lf)-[\w\-]{16,}"),
    ("sk-", r"[A-Za-z0-9]{32,}"),
    ("sk-", r"(?=[A-Za-z]{0,32}[0-9])[A-Za-z0-9]{20,}"),
    ("npm_ api_org_ lin_api_ gsk_ r8_ pplx- nfp_", r"[A-Za-z0-9]{30,}"),
    ("SG.", r"[\w\-]{16,64}\.[\w\-]{16,64}"),
    ("AC SK key-", r"[0-9a-f]{32}" + _END),
    ("dop_v1_ doo_v1_ dor_v1_ rubygems_", r"[0-9a-f]{40,}"),
    ("bot", r"[0-9]{6,10}:(?:AA[\w\-]{30,40}|[\w\-]{35})(?![\w\-])"),
    ("shpat_ shpca_ shppa_ shpss_", r"[A-Fa-f0-9]{32}"),
    ("sq0", r"(?:atp|csp|idp)-[\w\-]{20,}"),
    ("EAA AKCp", r"[A-Za-z0-9]{60,}"),
    ("secret_", r"[A-Za-z0-9]{40,50}" + _END),
    ("ntn_ xai-", r"[A-Za-z0-9]{40,}"),
    ("fig", r"[dou]_[\w\-]{30,}"),
    ("dapi", r"[0-9a-f]{32}"),
    ("dp.", r"(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9.]{30,}"),
    ("PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("NRAK-", r"[A-Z0-9]{20,}"),
    ("glsa_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}"),
    ("glc_", r"[A-Za-z0-9+/=]{32,}"),
    ("pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("sl.", r"[\w\-]{100,}"),
    ("dckr_", r"[op]at_[\w\-]{20,}"),
    ("pscale_", r"(?:tkn|pw|oauth)_[\w\-.]{20,}"),
    ("sbp_", r"[0-9a-f]{40}"),
    ("nvapi- fo1_", r"[\w\-]{40,}"),
    ("CCIP", r"(?:AT|RJ)_\w{30,}"),
    ("sntry", r"[su]_[\w=+/\-]{30,}"),
    ("tskey-", r"[a-z]{2,8}-[\w\-]{16,}"),
    ("rnd_", r"[A-Za-z0-9]{28,}"),
    ("fm1_ fm2_", r"[A-Za-z0-9+/=_\-]{60,}"),
    ("ops_eyJ", r"[\w\-=]{60,}"),
    # The first line of a private key in Base64.
    ("LS0tLS1CRUdJTi", r"(?:BQUklWQVRF|BSU0EgUFJJVkFURS|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBVEU|BFTkNS)[\w+/=]{20,}"),
    ("AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}"),
    ("FLWSECK", r"(?:_TEST)?-[\w\-]{12,}"),
    ("access-", r"(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f\-]{27}"),
    ("EZAK EZTK", r"[A-Za-z0-9]{54}"),
    ("sk.eyJ", r"[\w\-]{20,}\.[\w\-]{16,}"),
)

# A literal that the text must contain (for speed), and a pattern whose first group is the secret.
_PATTERNS: tuple[tuple[str, str], ...] = (
    # JSON Web Tokens, signed or encrypted.
    ("eyJ", r"(eyJ(?:(?<![\w\-]eyJ)|(?<=\\[nrt]eyJ))[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*){1,3})"),
    (":", r"(?<![\w\-])([0-9]{6,10}:(?:AA[\w\-]{30,40}|[\w\-]{35}))(?![\w\-])"),
    ("-us", r"(?<![0-9A-Za-z])([0-9a-f]{32}-us[0-9]{1,2})(?![0-9A-Za-z])"),
    ("Q~", r"(?<![\w~.])([\w~.]{3}[0-9]Q~[\w~.\-]{31,34})"),
    (".atlasv1.", r"([A-Za-z0-9]{14}\.atlasv1\.[\w\-]{40,})"),
    (".", r"([MNO][A-Za-z0-9]{23,27}(?<![A-Za-z0-9]{28})\.[\w\-]{6}\.[\w\-]{27,45})"),
    # Webhook URLs give access to a channel.
    ("hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/]{20,200})"),
    ("/webhooks/", r"/api/webhooks/([0-9]{10,25}/[\w\-]{20,200})"),
    ("webhookb2", r"webhook\.office\.com/webhookb2/([\w\-@/]{30,400})"),
    # Passwords before the host of a database URL.
    ("jdbc:oracle:", r"jdbc:oracle:thin:[^\s/@]{1,64}/([^\s/@]{1,128})@"),
    ("@tcp(", r"(?<![\w.\-])[A-Za-z_][\w.\-]{0,64}:([^\s:@/\"']{1,128})@tcp\("),
    ("@unix(", r"(?<![\w.\-])[A-Za-z_][\w.\-]{0,64}:([^\s:@/\"']{1,128})@unix\("),
)
_URL_CREDENTIALS = r"://(?P<user>[^\s:/?#@\"'<>`\\]{0,256})(?P<password>:[^\s/\"'<>`]{1,512})?@(?!sha256:)"
_SIGNED_QUERY = r"[?&](?:sig|signature|key|X-Amz-Signature)=([^\s&\"'<>]{16,512})"
_SCHEMES = ("earer", "asic", "oken", "pikey", "piKey")
_CREDENTIALS = r"[ \t]{1,4}([A-Za-z0-9._~+/\-]{8,4096}={0,2})"

# Password hashes of crypt(3) and of programs with the same notation. `§` is a dollar sign, which may be escaped or
# doubled, and `~` a character of a hash.
_HASH_START = r"\$(?:[1-7PHy]|2[abxy]|gy|apr1|sha1|md5|argon2|scrypt|pbkdf2|bcrypt)[\w\-]{0,16}[\\$,]"
_HASHES = tuple(
    source.replace("§", r"(?:\\{0,3}\${1,2})").replace("~", r"(?:[./A-Za-z0-9]|\\/)")
    for source in (
        r"\$(?:1|apr1)§~{0,8}§~{22}",
        r"\$2[abxy]?§[0-9]{2}§~{53}",
        r"\$3§{1,2}[0-9a-f]{32}",
        r"\$5§(?:rounds=[0-9]{1,9}§)?[^\s:$\\]{0,16}§~{43}",
        r"\$6§(?:rounds=[0-9]{1,9}§)?[^\s:$\\]{0,16}§~{86}",
        r"\$g?y§~{1,16}§~{0,86}§~{43}",
        r"\$7§~{11,97}§~{43}",
        r"\$sha1§[0-9]{1,9}§~{0,64}§~{28}",
        r"\$md5(?:,rounds=[0-9]{1,9})?§~{0,8}§{1,2}~{22}",
        r"\$argon2(?:id|i|d)§(?:[\w=,]{1,64}§){1,2}[\w+/.\-]{8,128}§[\w+/.\-]{16,256}",
        r"\$(?:scrypt|pbkdf2[\w\-]{0,12}|bcrypt-sha256)§[\w=,]{1,64}§[\w+/.=\-]{4,128}§[\w+/.=\-]{16,256}",
        r"\$[PH]§~{31}(?!~)",
    )
)
# The same by a name before the first dollar sign (Django, Werkzeug).
_NAMED_HASH = r"\b(?:pbkdf2|scrypt|bcrypt|argon2)[\w:]{0,40}\$[\w$+/.=,:\-]{40,400}"
_GRUB_HASH = r"grub\.pbkdf2\.sha512\.[0-9]{1,9}\.[0-9A-F]{32,512}\.[0-9A-F]{32,512}"
# The traditional hash, which only its place in a line of /etc/shadow or /etc/passwd shows, and those of LDAP.
_SHADOW = r"(?m)(?:^|(?<=[:\s]))[a-z_][\w.\-]{0,31}:!?([./0-9A-Za-z]{13}|_[./0-9A-Za-z]{19}):[0-9]{0,6}:[0-9]{0,6}:"
_LDAP_HASH = r"\{(?:S?MD5|S?SHA(?:256|384|512)?|CRYPT|PBKDF2[\w\-]{0,10}|ARGON2)\}([\w+/=$.,\-]{13,512})"

_PEM_BEGIN = r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_PEM_BODY = r"(?:[A-Za-z0-9+/=\s\\\"'`,:;.@()<>|*#]|-(?!----)){0,40000}"
_PEM_END = r"-{5,7}END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_PEM_LINES = r"(?:(?>(?:\s|\\[nr])*)[A-Za-z0-9+/=]{16,}+)+"
_PUTTY = r"Private-Lines: [0-9]{1,4}\s+((?:[A-Za-z0-9+/=]{4,}\s*+)+)"


@cache
def _token_pattern(start: str, rest: str) -> re.Pattern[str]:
    # The literal comes first, for speed; then a check that it is not inside a word (except after an escaped `\n`).
    literal = re.escape(start)
    return re.compile(rf"{literal}(?:(?<![A-Za-z0-9]{literal})|(?<=\\[nrt]{literal})){rest}")


def find_by_format(text: str) -> Iterator[Span]:
    """Yield the spans of all secrets with a known format."""
    for starts, rest in _TOKENS:
        for start in starts.split():
            if start in text:
                yield from _pattern_spans(text, _token_pattern(start, rest), 0)
    for needle, source in _PATTERNS:
        if needle in text:
            yield from _pattern_spans(text, regex(source), 1)
    if "://" in text:
        yield from _url_credentials(text)
    yield from _scheme_credentials(text)
    yield from _password_hashes(text)
    if "PRIVATE KEY" in text or "Private-Lines" in text:
        yield from _private_key_spans(text)


def _pattern_spans(text: str, pattern: re.Pattern[str], group: int) -> Iterator[Span]:
    for match in pattern.finditer(text):
        if not is_placeholder(match.group(group)):
            yield match.span(group)


def _url_credentials(text: str) -> Iterator[Span]:
    for match in regex(_URL_CREDENTIALS).finditer(text):
        password = match.group("password")
        if password:
            if not is_placeholder(password[1:]):
                yield match.start("password") + 1, match.end("password")
        elif looks_random(match.group("user")):
            yield match.span("user")
    for match in regex(_SIGNED_QUERY).finditer(text):
        if looks_random(match.group(1)):
            yield match.span(1)


def _scheme_credentials(text: str) -> Iterator[Span]:
    """Yield the credentials after `Bearer`, `Basic`, `Token` and `ApiKey`."""
    for scheme in _SCHEMES:
        if scheme not in text:
            continue
        for match in regex(scheme + _CREDENTIALS).finditer(text):
            value = match.group(1)
            if _is_credential(scheme, value) and not is_placeholder(value):
                yield match.span(1)


def _is_credential(scheme: str, value: str) -> bool:
    if scheme == "asic":
        return _is_basic(value)
    return len(value) >= 16 and (looks_random(value) or (scheme == "earer" and is_mixed(value)))


def _is_basic(value: str) -> bool:
    """Return whether a value decodes to `user:password`."""
    import binascii

    try:
        decoded = binascii.a2b_base64(value + "=" * (-len(value) % 4))
    except ValueError:
        return False
    return b":" in decoded and decoded.isascii() and decoded.decode().isprintable()


def _password_hashes(text: str) -> Iterator[Span]:
    """Yield the hashes of passwords, whole with their salt."""
    if "$" in text:
        for start in regex(_HASH_START).finditer(text):
            hashes = (regex(source).match(text, start.start()) for source in _HASHES)
            yield from (match.span() for match in hashes if match is not None)
        yield from (match.span() for match in regex(_NAMED_HASH).finditer(text))
    if "grub.pbkdf2" in text:
        yield from (match.span() for match in regex(_GRUB_HASH).finditer(text))
    if "}" in text:
        yield from (match.span(1) for match in regex(_LDAP_HASH).finditer(text))
    if text.count(":") >= 4:
        yield from (match.span(1) for match in regex(_SHADOW).finditer(text))


def _private_key_spans(text: str) -> Iterator[Span]:
    for begin in regex(_PEM_BEGIN).finditer(text):
        body = regex(_PEM_BODY).match(text, begin.end())
        end = regex(_PEM_END).match(text, body.end()) if body else None
        if end is not None and body is not None:
            if sum(char.isalnum() for char in body.group()) >= 16 and not is_placeholder(body.group().strip()):
                yield begin.start(), end.end()
            continue
        lines = regex(_PEM_LINES).match(text, begin.end())
        if lines is not None:
            yield lines.span()
    for match in regex(_PUTTY).finditer(text):
        yield match.span(1)
