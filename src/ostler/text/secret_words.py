"""Word lists for the detection of secrets. Data only."""


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Values that mean "no value".
CONSTANTS = _word_set(
    """
    null none nil undefined true false yes no on off n/a na nan void changeme change_me change-me redacted todo
    tbd fixme placeholder example dummy sample unset empty hidden masked inherit auto ... eof utf-8 utf8
    ascii latin-1 base64 hex
    """
)

# Types and other words after a colon that are not secrets.
TYPES = _word_set(
    """
    str string int integer bool boolean bytes byte any object number char text varchar float double buffer uuid
    uint long dict list map array unknown never symbol incomplete alias pattern final callable bigint self type
    optional securestring secretstr passwort
    """
)

# Words about the state of a secret.
STATES = _word_set(
    """
    expired invalid valid missing failed ok required incorrect correct denied granted enabled disabled set found
    present absent default success error accepted rejected revoked pending active inactive wrong used unused
    failure
    """
)

# Authentication schemes; only the credentials after them are secret.
SCHEMES = _word_set(
    """
    basic bearer digest oauth oauth2 oidc ldap saml jwt anonymous public private md5 scram trust peer plain
    login ntlm kerberos negotiate sigv4 cram xoauth2 iam cert mtls user session local github google aad sso pam
    sha256 user_password api_key always never client_credentials aws4 hmac cookie ssh token
    password key secret apikey credentials
    """
)

# Words in the names of secrets; a value that has only such words is a name.
NAME_WORDS = _word_set(
    """
    db database user admin root api app client auth access refresh github gitlab aws secret token key password
    passwd pwd pass credential id credentials private public hash hashed encrypted new old raw current next
    value val data input name field config env var str string text file default openai anthropic google azure
    slack stripe npm session service postgres mysql redis smtp mail bot jwt signing webhook encryption pypi is
    has get set expected actual valid invalid plain confirm confirmation repeat csrf header bearer login http
    path provider option options type response result request res req body form arg args param params of from to
    for with tok manager handler store ref state info context ctx model schema object obj item entry list map
    index widget props kwargs parser lexer stream buffer bytes array self mgr this other temp tmp prod dev test
    staging ci deploy release docker
    """
)

# Words of variable names that may end with a number: `token2`.
VARIABLE_WORDS = _word_set(
    """
    password passwd pwd pass token secret key value val arg param str tok tmp temp auth data input text result
    new old api access
    """
)

# Words of a placeholder: `your-key-goes-here`.
PLACEHOLDER_WORDS = _word_set(
    """
    your yours placeholder changeme replace insert todo redacted goes fill
    """
)

# Placeholder words only in values without digits: `AKIA…7EXAMPLE` has the format of a real key.
MILD_PLACEHOLDER_WORDS = _word_set(
    """
    example sample dummy here enter change
    """
)

# Words that occur in messages about passwords, but not in passwords.
MESSAGE_WORDS = _word_set(
    """
    your must should enter please required invalid characters field password token secret key wrong missing
    cannot can't doesn't isn't don't failed passwords valid incorrect expired provided forgot reset confirm
    found e.g.
    """
)

# Words that occur in sentences.
SENTENCE_WORDS = MESSAGE_WORDS | _word_set(
    """
    the a an is are was be of to for in on with this that not and or if when from by it can has have will as at
    no use used you my we i which via web flow per only than least does
    """
)

# Capitalised words in type names: `AuthToken`.
TYPE_WORDS = _word_set(
    """
    token auth authorization credential credentials key type manager mgr provider config field service str
    string gateway grant client handler input request
    """
)

# Objects that code reads a secret from: `config.token`.
CODE_ROOTS = _word_set(
    """
    self this config process os env settings args req request ctx opts options params props state data user
    session cfg conf app event context body form var vars local module secrets inputs github steps needs each
    values response res result input import credentials auth account client
    """
)

# Words that may follow the key in a name: `TOKEN_PROD`, `password_value`.
QUALIFIERS = _word_set(
    """
    prod production dev staging test live value primary secondary backup main plaintext raw old new default
    sandbox local override
    """
)

# Tokens of parsers, tokenizers and pagers.
HARMLESS_TOKENS = _word_set(
    """
    pad eos bos unk sep mask cls next page progress cancellation cancel special stop start end image per first
    last current prev previous lookahead sync continuation pagination cursor peek expected unexpected word input
    output offending eof pseudo matched public
    """
)

# Keys that are not secret.
HARMLESS_KEYS = _word_set(
    """
    cache 3 primary public sort foreign partition idempotency object s3 lookup hash group index dedupe
    translation row map dict unique message order routing query i18n range composite config json metadata label
    field hot registry dedup shard candidate surrogate natural locale state event item
    """
)

# Words before `pass` that give it another meaning.
HARMLESS_PASSES = _word_set(
    """
    first second third low high band render by one two multi single all test tests check num n total must should
    did compiler optimization full
    """
)

# Last words of names whose random-looking values are secret.
SOFT_NAMES = _word_set(
    """
    credential credentials cred creds salt jwt sessionid jsessionid phpsessid tokens keys
    """
)

# Words that describe an option and are not its value.
DESCRIPTION_WORDS = _word_set(
    """
    flag option options argument to and or is for if from in with as on can will must when instead not parameter
    value string switch text file auth based may should was does the a an are has by of stdin
    """
)
