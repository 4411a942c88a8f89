"""Masking: what looks like a secret goes, what only looks long stays, and no text takes long."""

import re
import time

import pytest

from playhead.formats.redaction import Redactor

HEX_40 = "3fbb0f1c9a7a0c1d7e1d2f4b5c6a7b8c9d0e1f2a"
UUID = "0b7c2f8e-5d1a-4c1e-9a43-1f2e3d4c5b6a"
# Made up, and put together here so that no scanner of repositories takes them for real ones.
RANDOM = "q8Zr2LmP9xWv4TyB7nKd1Gh5JsA3cF6e"
KEY_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"

SECRETS: dict[str, tuple[str, str]] = {
    "a private key": ("private key", f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}-----END RSA PRIVATE KEY-----"),
    "a private key with headers": (
        "private key",
        f"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{KEY_BODY}-----END EC PRIVATE KEY-----",
    ),
    "a private key that was cut": ("private key", f"-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY_BODY}"),
    "an OpenAI key": ("provider token", f"sk-proj-{RANDOM}"),
    "an Anthropic key": ("provider token", f"sk-ant-api03-{RANDOM}_{RANDOM}-AA"),
    "a GitHub token": ("provider token", f"ghp_{RANDOM}abcd"),
    "a fine-grained GitHub token": ("provider token", f"github_pat_{RANDOM}_{RANDOM}"),
    "a GitLab token": ("provider token", f"glpat-{RANDOM[:20]}"),
    "a Slack token": ("provider token", f"xoxb-123456789012-{RANDOM}"),
    "an AWS key id": ("provider token", "AKIA" + "IOSFODNN7EXAMPLE"),
    "a Google key": ("provider token", "AIza" + RANDOM + "abc"),
    "a Stripe key": ("provider token", "sk_live_" + RANDOM),
    "an npm token": ("provider token", "npm_" + RANDOM + "abcd"),
    "a PyPI token": ("provider token", "pypi-" + RANDOM + RANDOM),
    "a Hugging Face token": ("provider token", "hf_" + RANDOM + "ab"),
    "a SendGrid key": ("provider token", f"SG.{RANDOM[:22]}.{RANDOM}"),
    "a Slack webhook": ("webhook address", f"https://hooks.slack.com/services/T000/B000/{RANDOM}"),
    "a signed token": ("signed token", f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{RANDOM}"),
    "a bearer header": ("authorization header", f"Authorization: Bearer {RANDOM}"),
    "a bearer header in JSON": ("authorization header", f'{{"authorization": "Bearer {RANDOM}"}}'),
    "a basic header": ("authorization header", "curl -H 'Authorization: Basic YWRhOmh1bnRlcjIyMjI='"),
    "a cookie": ("session cookie", f"Cookie: sid={RANDOM}; theme=dark"),
    "a password in the environment": ("password", "export DB_PASSWORD=hunter22"),
    "a password with spaces": ("password", 'password = "correct horse battery"'),
    "a password in YAML": ("password", "  password: tr0ub4dor&3"),
    "a password in JSON": ("password", '{"passwd": "tr0ub4dor"}'),
    "a connection address": ("password in an address", "postgres://ada:tr0ub4dor@db.example.org/work"),
    "a Redis address": ("password in an address", "redis://:tr0ub4dor@cache:6379/0"),
    "an API key": ("key or token", f"api_key={RANDOM}"),
    "a header with a key": ("key or token", f"X-Api-Key: {RANDOM}"),
    "a token in an address": ("key or token", f"https://example.org/?a=1&access_token={RANDOM}&b=2"),
    "a client secret": ("password", f"client_secret: {RANDOM}"),
    "a connection string": ("password", "Server=db;Uid=sa;Pwd=tr0ub4dor;"),
    "a password of mysql": ("password", "mysql -u root -ptr0ub4dor shop"),
    "a quoted password of mysqldump": ("password", "mysqldump -h db -p'correct horse battery' shop > all.sql"),
    "a user and a password of curl": ("password", "curl -sS -u bob:tr0ub4dor https://example.org"),
    "a quoted user and a password of curl": ("password", "curl --user 'bob:tr0ub4dor' https://example.org"),
    "a password of sshpass": ("password", "sshpass -p tr0ub4dor ssh ada@example.org"),
    "a password of docker": ("password", "docker login -u ada -p tr0ub4dor ghcr.io"),
    "a password of redis-cli": ("password", "redis-cli -h cache -a tr0ub4dor ping"),
    "a password of a zip": ("password", "unzip -P tr0ub4dor all.zip"),
    "a password of openssl": ("password", "openssl rsa -passin pass:tr0ub4dor -in key.pem"),
    "an option for a password": ("password", "tool --db-password tr0ub4dor --verbose"),
    "a key that something unseen parts": ("provider token", f"sk-proj-{RANDOM[:9]}\u200b{RANDOM[9:]}"),
    "a password that a colour parts": ("password", "DB_PASSWORD=hunter\x1b[01;31m22\x1b[0mx"),
    "a random variable": ("value of a variable", f"DEPLOY_PASS={RANDOM}"),
}

HARMLESS = [
    f"commit {HEX_40}",
    f"GIT_SHA={HEX_40}",
    f"REQUEST_ID={UUID}",
    f"session {UUID} of 2026-08-01T12:00:00Z",
    f"sha256-{HEX_40}{HEX_40[:24]}",
    "id 06frqch2gh4rd8h2igeg",
    "/usr/lib/python3.11/site-packages/playhead/stores/sqlite/connect.py",
    "PYTHONPATH=/usr/lib/python3.11/site-packages:/opt/tools/lib/python3",
    "DATABASE_URL=sqlite:///var/lib/app/production.db",
    "https://example.org/issues/91?page=2#comment-1234567890",
    "max_tokens=4096, input_tokens: 812, total_tokens = 900",
    "token = tokens[index]",
    "token: str | None = None",
    "password = get_password()",
    "password: str = Field(min_length=8)",
    'password = os.environ["DB_PASSWORD"]',
    "PASSWORD=$DB_PASSWORD",
    "PASSWORD=${DB_PASSWORD}",
    "api_key=YOUR_API_KEY_GOES_HERE",
    "if password == other_password:",
    "password: required",
    "secret: true",
    "PWD=/workspaces/upload-tests",
    "flags.PWD = arguments.directory",
    "the secret of this is simple",
    "a task-force and a sk-ip, a risk-adjusted-measure-of-the-whole",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "http://localhost:8765/api/sessions",
    "git@github.com:ada/upload.git",
    "mysql -u root -p shop",
    "mysql --port 3306 -u root -p",
    "mkdir -p src/upload && ssh -p 2222 example.org",
    "docker run -p 8080:80 nginx",
    "docker login -u ada -p $TOKEN",
    "curl -u $USER:$PASSWORD https://example.org",
    "curl -u ada https://example.org:8080/x",
    "the option --password reads it, --token count and --secret --all",
    "a family \U0001f468\u200d\U0001f469, co\u00adoperate, zero\u200bwidth",
    "user@example.org wrote to admin@example.org",
    "def bearer_of(news: str) -> None: ...",
    "LOG_FORMAT=%(asctime)s-%(levelname)s",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAADklEQVR4nGNgGAWDEwAAAMgAAQ==",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO2q8Zr2LmP9xWv4TyB7nKd1Gh5JsA3cF6e9 ada",
]


@pytest.mark.parametrize("name", SECRETS)
def test_what_looks_like_a_secret_is_masked(name: str) -> None:
    kind, text = SECRETS[name]
    redactor = Redactor()
    masked = redactor.text(f"before {text} after")

    assert f"[masked: {kind}]" in masked
    assert redactor.counts[kind] == 1
    assert not any(part in masked for part in (RANDOM, "hunter22", "tr0ub4dor", "correct horse", KEY_BODY[:20], "YWRh"))
    assert masked.startswith("before ")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    redactor = Redactor()

    assert redactor.text(text) == text
    assert redactor.counts == {}


@pytest.mark.parametrize("text", [text for _, text in SECRETS.values()])
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = Redactor().text(text)

    assert Redactor().text(once) == once


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("cd /home/ada/upload", "cd ~/upload"),
        ("/home/ada", "~"),
        ("in /home/adam/x and /Users/bob/x", "in ~/x and ~/x"),
        ("C:\\Users\\Ada\\upload", "~\\upload"),
        ('"C:\\\\Users\\\\Ada\\\\upload"', '"~\\\\upload"'),
        ("/srv/homes/ada-l/x", "~/x"),
        ("-home-ada-upload", "-home-[user]-upload"),
        ("ada@build: Ada's files", "[user]@build: [user]'s files"),
        ("adapter, Canada, radar", "adapter, Canada, radar"),
        ("/Users/Shared/x /homepage/x example.org/home/x", "/Users/Shared/x /homepage/x example.org/home/x"),
    ],
)
def test_home_directories_and_the_users_name_are_masked(text: str, masked: str) -> None:
    assert Redactor(homes=["/home/ada", "/srv/homes/ada-l"], names=["ada"]).text(text) == masked


def test_common_user_names_say_nothing_and_stay() -> None:
    redactor = Redactor(homes=["/root", "/"], names=["root", "user", "tool", "message", "al", ""])

    assert (
        redactor.text("the root user calls a tool with a message, al")
        == "the root user calls a tool with a message, al"
    )
    assert redactor.text("/root/x") == "~/x"


def test_own_patterns_mask_their_first_group_or_all_of_the_match() -> None:
    redactor = Redactor(patterns=[re.compile(r"customer-(\d+)"), re.compile("ACME")])

    assert redactor.text("ACME: customer-4711") == "[masked: own pattern]: customer-[masked: own pattern]"
    assert redactor.counts == {"own pattern": 2}


@pytest.mark.parametrize(
    ("pattern", "masked"),
    [
        (r"login (\w+) from (\w+)", "login [masked: own pattern] from berlin as"),
        (r"(login) (\w+)", "[masked: own pattern] hunter2xx from berlin as"),
        (r"nobody (\w+)|login (\w+) from", "login [masked: own pattern] from berlin as"),
        (r"login ((hunter)\w+)", "login [masked: own pattern] from berlin as"),
        (r"login (?:(nobody)|\w+)", "[masked: own pattern] from berlin as"),
    ],
)
def test_of_several_groups_the_first_that_took_part_is_masked(pattern: str, masked: str) -> None:
    assert Redactor(patterns=[re.compile(pattern)]).text("login hunter2xx from berlin as") == masked


def test_a_secret_is_masked_whole_where_a_part_of_it_was_masked_before() -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{'QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo' * 3}\n-----END PRIVATE KEY-----"
    redactor = Redactor(patterns=[re.compile("SktMTU5")])
    texts = [key, "Cookie: a=SktMTU5; session=4711aa22bb", 'password: "tr0ub4dor SktMTU5 horse"']
    found = [redactor.text(text) for text in texts]

    assert found == ["[masked: private key]", "Cookie: [masked: session cookie]", 'password: "[masked: password]"']
    assert [redactor.text(text) for text in found] == found


def test_a_body_is_masked_in_every_text_and_key_but_in_what_holds_the_log_together() -> None:
    body = {
        "role": "user",
        "to": "/home/ada",
        "cwd": "/home/ada/x",
        "state": {"session": {"/home/ada": [{"password": "tr0ub4dor", "tokens": 7, "path": "/home/ada"}]}},
        "parts": [
            {"type": "text", "content": "/home/ada", "id": "/home/ada"},
            {"type": "blob", "content": "aGVsbG8=", "mime_type": "image/png"},
            {"type": "tool_call", "id": "c", "arguments": {"api_key": "short", "n": 1.0, "ok": None}},
        ],
    }
    redactor = Redactor(homes=["/home/ada"])

    assert redactor.body(body) == {
        "role": "user",
        "to": "/home/ada",
        "cwd": "~/x",
        "state": {"session": {"~": [{"password": "[masked: password]", "tokens": 7, "path": "~"}]}},
        "parts": [
            {"type": "text", "content": "~", "id": "/home/ada"},
            {"type": "blob", "content": "", "mime_type": "image/png"},
            {"type": "tool_call", "id": "c", "arguments": {"api_key": "[masked: password]", "n": 1.0, "ok": None}},
        ],
    }
    assert redactor.counts == {"home directory": 4, "password": 2, "file": 1}


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a",
            "A",
            "A1b2",
            "A_",
            "eyJ",
            "sk-",
            "://a:",
            "token=",
            "password ",
            "Cookie: ",
            "/home/",
            "Bearer ",
            "=",
            '"',
        ),
        *("-----BEGIN PRIVATE KEY-----", "xoxb-", "SG.", "0123456789:AA", "https://hooks.slack.com/services/", "\\"),
    ],
)
def test_no_text_of_half_a_megabyte_takes_long(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    started = time.process_time()
    Redactor(homes=["/home/ada"], names=["ada"]).text(text)

    # A tenth of it is usual; the square of the length would be minutes.
    assert time.process_time() - started < 10
