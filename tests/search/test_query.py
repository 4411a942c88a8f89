"""What a person types, and what it finds in a real FTS5 table (K15)."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings, strategies as st

from playhead.search.query import (
    QUERY_CHARS_MAX,
    QUERY_TERMS_MAX,
    Filters,
    Query,
    Term,
    fts5_excluded,
    fts5_match,
    highlight,
    parse,
    read_moment,
)
from tests.search.conftest import NOW, Index, asked

CHINESE = "我们今天需要修复连接重置的错误，然后重新部署服务。"
JAPANESE = "昨日の深夜に東京タワーへ行った。エラーの原因はタイムアウトです。"
KOREAN = "한국어를 공부하고 서버에서 오류 처리를 고쳤다."
MIXED = "使用Python语言和FastAPI框架部署"
THAI = "เกิดข้อผิดพลาดในการเชื่อมต่อ"
RUST = "error[E0277]: the trait bound `Foo: Bar` is not satisfied"
BROWSER = "net::ERR_CONNECTION_RESET at https://example.com/api/v1/users?id=42#top"
WINDOWS = "HRESULT 0x80070005 when opening C:\\Users\\me\\report.docx"
CODE = "def getUserName(self): return self.user_name or fallbackValue"
PATH = "Edited src/app/main.py and tests/test_upload_retry.py"
GIT = "commit a3f9c1d2e4b5f60718293a4b5c6d7e8f90a1b2c3 fixes the race"
UUID = "session 550e8400-e29b-41d4-a716-446655440000 was resumed"
LANGUAGES = "Ported from C++17 and C# on .NET to Node.js"
UNITS = "p99 latency 250ms, 1.5GB of memory, v2.10.3, python3.11"
FRENCH = "Le café de Zoë était fermé; naïve façade"
GERMAN = "Die Straße ist größer als Ölpreise"
RUSSIAN = "Ёлка стоит в углу"
EMOJI = "Deployed 🚀 and it works 👍🏽, thanks 👩‍💻 from 🇩🇪 ❤️"
WIDE = "Ｐｙｔｈｏｎ と ﾃｽﾄ"
CLI = "Run with --dry-run and exit code -1"
PROSE = "The connection was reset by the peer while the deployment was running"
SHARP = "Use the deploy key, not the staging token"
HINDI = "यह हिन्दी में लिखा है"
ARABIC = "خطأ في الاتِّصال"


@pytest.mark.parametrize(
    ("document", "typed", "is_found"),
    [
        # Chinese
        (CHINESE, "错误", True),
        (CHINESE, "连接重置", True),
        (CHINESE, "部署", True),
        (CHINESE, "务", True),
        (CHINESE, "我", True),
        (CHINESE, '"重新部署"', True),
        (CHINESE, '"部署重新"', False),
        (CHINESE, '"错误然后"', False),
        (CHINESE, "删除", False),
        (CHINESE, "如何修复错误", True),
        (CHINESE, "部署 -错误", False),
        (MIXED, "python", True),
        (MIXED, "语言", True),
        (MIXED, '"使用Python语言"', True),
        (MIXED, '"Python框架"', False),
        # Japanese
        (JAPANESE, "東京タワー", True),
        (JAPANESE, "東京", True),
        (JAPANESE, "エラー", True),
        (JAPANESE, "エ", True),
        (JAPANESE, "タイムアウト", True),
        (JAPANESE, "京都", False),
        (JAPANESE, '"東京タワーへ行った"', True),
        (WIDE, "python", True),
        (WIDE, "テスト", True),
        # Korean, Thai, Hindi, Arabic
        (KOREAN, "한국어", True),
        (KOREAN, "처리", True),
        (KOREAN, "오류", True),
        (KOREAN, "한국인", True),
        (KOREAN, '"한국인"', False),
        (THAI, "ข้อผิดพลาด", True),
        (HINDI, "हिन्दी", True),
        (ARABIC, "الاتصال", True),
        # Accents and letters
        (FRENCH, "cafe", True),
        (FRENCH, "CAFÉ", True),
        (FRENCH, "cafe\u0301", True),
        (FRENCH, "zoe etait", True),
        (FRENCH, "naive", True),
        (GERMAN, "strasse", True),
        (GERMAN, "STRASSE", True),
        (GERMAN, "olpreise", True),
        (GERMAN, "grosser", True),
        (RUSSIAN, "елка", True),
        (RUSSIAN, "ёлка", True),
        # Emoji
        (EMOJI, "🚀", True),
        (EMOJI, "👍", True),
        (EMOJI, "👍🏿", True),
        (EMOJI, "👩‍💻", True),
        (EMOJI, "💻", True),
        (EMOJI, "🇩🇪", True),
        (EMOJI, "❤", True),
        (EMOJI, "🐛", False),
        (EMOJI, "🇫🇷", False),
        (EMOJI, "👨‍💻", False),
        (EMOJI, '"deployed 🚀"', True),
        # Names in code
        (CODE, "getUserName", True),
        (CODE, "getusername", True),
        (CODE, "get_user_name", True),
        (CODE, "GetUserName", True),
        (CODE, '"user name"', True),
        (CODE, "userName", True),
        (CODE, "fallback", True),
        (CODE, "fallback_value", True),
        (CODE, "fallback-value", True),
        (CODE, '"getUserId"', False),
        (CODE, '"setUserName"', False),
        (CLI, "--dry-run", True),
        (CLI, "dryrun", True),
        (CLI, "-1", True),
        # Paths and addresses
        (PATH, "src/app/main.py", True),
        (PATH, "app/main.py", True),
        (PATH, "main.py", True),
        (PATH, "main", True),
        (PATH, "/home/me/project/src/app/main.py", True),
        (PATH, '"src/main.py"', False),
        (PATH, "test_upload_retry", True),
        (PATH, "upload", True),
        (PATH, '"main.rs"', False),
        (WINDOWS, "C:\\Users\\me\\report.docx", True),
        (WINDOWS, "report.docx", True),
        (BROWSER, "https://example.com/api/v1/users", True),
        (BROWSER, "example.com", True),
        (BROWSER, '"example.org"', False),
        (BROWSER, "users?id=42", True),
        # Codes and numbers
        (RUST, "E0277", True),
        (RUST, "e0277", True),
        (RUST, "E0308", False),
        (RUST, "Foo: Bar", True),
        (BROWSER, "ERR_CONNECTION_RESET", True),
        (BROWSER, "net::ERR_CONNECTION_RESET", True),
        (BROWSER, '"ERR_CONNECTION_REFUSED"', False),
        (WINDOWS, "0x80070005", True),
        (WINDOWS, "80070005", True),
        (WINDOWS, "0x80070002", False),
        ("GET /users failed: HTTP 404", "HTTP404", True),
        ("GET /users failed: HTTP404", '"http 404"', True),
        (LANGUAGES, "C++", True),
        (LANGUAGES, "c#", True),
        (LANGUAGES, ".NET", True),
        (LANGUAGES, "C++17", True),
        (LANGUAGES, "F#", False),
        (LANGUAGES, "c", True),
        ("Vitamin C and a net", "C++", False),
        ("Vitamin C and a net", "C#", False),
        ("Vitamin C and a net", ".net", False),
        (UNITS, "250ms", True),
        (UNITS, '"250 ms"', True),
        (UNITS, "1.5GB", True),
        (UNITS, '"1.5 gb"', True),
        (UNITS, "2.10.3", True),
        (UNITS, "v2.10.3", True),
        (UNITS, "3.11", True),
        (UNITS, "python", True),
        (UNITS, "350ms", False),
        (GIT, "a3f9c1d", True),
        (GIT, "a3f9c1d2e4b5f60718293a4b5c6d7e8f90a1b2c3", True),
        (GIT, "a3f9c2d", False),
        (UUID, "550e8400-e29b-41d4-a716-446655440000", True),
        (UUID, "550e8400", True),
        # Words, phrases, exclusion, OR, beginnings
        (PROSE, "peer connection", True),
        (PROSE, "reset connections deployed", True),
        (PROSE, "zebra peer", True),
        (PROSE, "zebra", False),
        (PROSE, '"reset by the peer"', True),
        (PROSE, '"reset the peer"', False),
        (PROSE, '"connection was" zebra', True),
        (PROSE, '"connection was" "peer zebra"', False),
        (PROSE, "peer -reset", False),
        (PROSE, "peer -zebra", True),
        (PROSE, 'peer -"reset by"', False),
        (PROSE, 'peer -"by reset"', True),
        (PROSE, "peer -deploy*", False),
        (PROSE, "zebra OR peer", True),
        (PROSE, "zebra OR lion", False),
        (PROSE, "peer zebra OR lion", False),
        (PROSE, 'zebra OR "the peer"', True),
        (PROSE, "connec*", True),
        (PROSE, "connectio*", True),
        (PROSE, "zeb*", False),
        (PROSE, '"reset by the pe"*', True),
        (PROSE, '"reset by the pi"*', False),
        (PROSE, "DEPLOYMENT", True),
        (SHARP, "“deploy key”", True),
        (SHARP, "“key deploy”", False),
        (SHARP, "deploy -key", False),
        (SHARP, "deploy AND key", True),
        ("to be or not to be", "to be", True),
        ("nothing else", "to be", False),
    ],
)
def test_a_question_finds_what_a_person_expects(index: Index, document: str, typed: str, is_found: bool) -> None:
    index.fill([document, "Something else altogether"])
    found = index.ask(typed)
    snippet = highlight(document, asked(typed), 60)

    assert found == ([0] if is_found else [])
    assert bool(snippet.marks) or not is_found


def test_rows_with_more_of_the_words_rank_first(index: Index) -> None:
    index.fill(["the key was lost", "deploy with a key", "deploy twice today", "nothing of it"])

    assert index.ask("deploy key")[0] == 1
    assert sorted(index.ask("deploy key")) == [0, 1, 2]


def test_the_whole_of_a_name_ranks_before_its_parts_and_can_be_asked_for_alone(index: Index) -> None:
    index.fill(["the app has a source", "see src/app/main.py", "main entry of the app"])

    assert index.ask("src/app/main.py")[0] == 1
    assert len(index.ask("src/app/main.py")) == 3
    assert index.ask("src/app/main.py", is_strict=True) == [1]


def test_words_beside_a_phrase_rank_and_are_not_required(index: Index) -> None:
    index.fill(["connection reset today", "connection reset during upload", "upload only"])

    assert index.ask('"connection reset" upload') == [1, 0]


def test_stop_words_count_only_where_nothing_else_was_typed() -> None:
    assert fts5_match(asked("where is the deploy key")) == '"deploy" OR "key"'
    assert fts5_match(asked("the and")) == '"the" OR "and"'
    assert fts5_match(asked('the "deploy key"')) == '("deploy key")'
    assert fts5_match(asked("why doesn't it connect")) == '"connect"'


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("deploy key", Query(terms=(Term("deploy"), Term("key")))),
        ("key key", Query(terms=(Term("key"),))),
        ('"deploy key"', Query(phrases=(Term("deploy key", is_phrase=True),))),
        ("connec*", Query(terms=(Term("connec", is_prefix=True),))),
        ('"reset by"*', Query(phrases=(Term("reset by", is_phrase=True, is_prefix=True),))),
        ("key -staging", Query(terms=(Term("key"),), excluded=(Term("staging"),))),
        ('key -"old one"', Query(terms=(Term("key"),), excluded=(Term("old one", is_phrase=True),))),
        ("a1 OR b2 OR c3", Query(any_groups=((Term("a1"), Term("b2"), Term("c3")),))),
        ("x | y", Query(any_groups=((Term("x"), Term("y")),))),
        ("x or y", Query(terms=(Term("x"), Term("or"), Term("y")))),
        ("-staging", Query(terms=(Term("staging"),))),
        ('-"old one"', Query(phrases=(Term("old one", is_phrase=True),))),
        ("--dry-run", Query(terms=(Term("--dry-run"),))),
        ("offset -1", Query(terms=(Term("offset"), Term("-1")))),
        ("agent:planner", Query(filters=Filters(agents=("planner",)))),
        ('agent:"my agent"', Query(filters=Filters(agents=("my agent",)))),
        ("AGENT:Planner agent:coder", Query(filters=Filters(agents=("Planner", "coder")))),
        ("agent:planner OR agent:coder", Query(filters=Filters(agents=("planner", "coder")))),
        ("kind:Message role:USER is:Waiting", Query(filters=Filters(
            kinds=("message",), roles=("user",), flags=("waiting",)))),
        ("tool:grep turn:t3 session:s.1 branch:all", Query(filters=Filters(
            tools=("grep",), turns=("t3",), sessions=("s.1",), branches=("all",)))),
        ("-old kind:note", Query(excluded=(Term("old"),), filters=Filters(kinds=("note",)))),
        ("key -agent:planner", Query(terms=(Term("key"),), excluded=(Term("agent:planner"),))),
        # What is no operator is plain words.
        ('"unbalanced', Query(terms=(Term('"unbalanced'),))),
        ("AND", Query(terms=(Term("AND"),))),
        ("OR", Query(terms=(Term("OR"),))),
        ("OR key", Query(terms=(Term("OR"), Term("key")))),
        ("key OR", Query(terms=(Term("key"), Term("OR")))),
        ("NOT key", Query(terms=(Term("NOT"), Term("key")))),
        ("NEAR(key, 3)", Query(terms=(Term("NEAR(key,"), Term("3)")))),
        ("col:", Query(terms=(Term("col:"),))),
        ("agent:", Query(terms=(Term("agent:"),))),
        ('agent:""', Query(terms=(Term("agent"),))),
        ("colour:red", Query(terms=(Term("colour:red"),))),
        ('colour:"dark red"', Query(terms=(Term("colour"),), phrases=(Term("dark red", is_phrase=True),))),
        ("since:whenever", Query(terms=(Term("since:whenever"),))),
        ("^key {x} x\\y", Query(terms=(Term("^key"), Term("{x}"), Term("x\\y")))),
        # Nothing to search.
        ("", Query()),
        (" \t\n", Query()),
        ("* \\ - ( ) ' \" \0 \ud800 --", Query()),
        ('""', Query()),
    ],
)  # fmt: skip
def test_a_question_is_taken_apart(typed: str, query: Query) -> None:
    assert asked(typed) == query


def test_a_question_can_be_filters_and_exclusions_alone() -> None:
    query = asked("kind:note -old")

    assert not query.is_empty
    assert fts5_match(query) is None
    assert fts5_excluded(query) == '"old"'
    assert fts5_excluded(asked("key")) is None
    assert asked("* -").is_empty


BERLIN = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024-05-01T12:30", datetime(2024, 5, 1, 12, 30, tzinfo=UTC)),
        ("2024-05-01 12:30", datetime(2024, 5, 1, 12, 30, tzinfo=UTC)),
        ("2024-05-01T12:30:00Z", datetime(2024, 5, 1, 12, 30, tzinfo=UTC)),
        ("2024-05-01T12:30+02:00", datetime(2024, 5, 1, 10, 30, tzinfo=UTC)),
        ("2024-05", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024", datetime(2024, 1, 1, tzinfo=UTC)),
        ("7d", NOW - timedelta(days=7)),
        ("12h", NOW - timedelta(hours=12)),
        ("30m", NOW - timedelta(minutes=30)),
        ("2w", NOW - timedelta(weeks=2)),
        ("3mo", NOW - timedelta(days=90)),
        ("1y", NOW - timedelta(days=365)),
        ("now", NOW),
        ("Today", datetime(2024, 5, 8, tzinfo=UTC)),
        ("yesterday", datetime(2024, 5, 7, tzinfo=UTC)),
    ],
)
def test_a_date_is_read(value: str, moment: datetime) -> None:
    assert read_moment(value, now=NOW) == pytest.approx(moment.timestamp())


@pytest.mark.parametrize(
    "value", ["", "2024-13-01", "0000", "9999-99", "tomorrow", "d", "-7d", "7 d", "1e9", "٣d", "99999999d"]
)
def test_what_is_no_date_is_none(value: str) -> None:
    assert read_moment(value, now=NOW) is None


def test_a_date_without_a_zone_is_in_the_zone_of_now() -> None:
    there = NOW.astimezone(BERLIN)

    assert read_moment("2024-05-01", now=there) == datetime(2024, 5, 1, tzinfo=BERLIN).timestamp()
    assert read_moment("yesterday", now=there) == datetime(2024, 5, 7, tzinfo=BERLIN).timestamp()
    assert read_moment("1d", now=NOW.replace(tzinfo=None)) == (NOW - timedelta(days=1)).timestamp()


def test_the_narrowest_of_several_dates_counts() -> None:
    filters = asked("since:7d after:2d since:2020 before:1h before:2024-05-08").filters

    assert filters.since == (NOW - timedelta(days=2)).timestamp()
    assert filters.until == datetime(2024, 5, 8, tzinfo=UTC).timestamp()


def test_dates_at_the_end_of_the_calendar_are_read_or_searched_as_words() -> None:
    for value in ("0001-01-01", "9999-12-31", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"):
        query = asked(f"since:{value}")

        assert (query.filters.since is None) == bool(query.terms)
    assert read_moment("yesterday", now=datetime.min.replace(tzinfo=UTC)) is None


@pytest.mark.parametrize(
    "typed",
    [
        'x" OR -( * NEAR ' * 70_000,
        "z" * 1_000_000,
        '"' * 1_000_001,
        '"a ' * 400_000,
        "-" * 1_000_000,
        "agent:" * 200_000,
        "東" * 1_000_000,
        "\0\ud800" * 500_000,
        " ".join(f"word{number}" for number in range(100_000)),
        '"' + " ".join(f"word{number}" for number in range(100_000)) + '"',
        "a_" * 500_000 + "*",
        "e\u0301\u0316" * 300_000,
    ],
    ids=lambda typed: ascii(typed[:8]),
)
def test_a_megabyte_of_anything_is_a_short_question(index: Index, typed: str) -> None:
    index.fill(["word1 z a 東"])
    start = time.process_time()
    query = asked(typed)
    index.match(fts5_match(query))
    highlight("word1 z a 東", query, 20)

    assert time.process_time() - start < 2
    assert len(query.terms) + len(query.phrases) + len(query.any_groups) <= QUERY_TERMS_MAX
    assert all(len(term.text) <= QUERY_CHARS_MAX for term in query.terms)


def test_a_long_question_is_cut_between_words() -> None:
    typed = "needle " * (QUERY_CHARS_MAX // 7) + "unbroken" * 10

    assert asked(typed).terms == (Term("needle"),)


def test_every_term_of_the_longest_question_is_a_legal_expression(index: Index) -> None:
    index.fill(["play42"])
    words = [f"play{number}*" for number in range(QUERY_TERMS_MAX)] + [
        f"-runn{number}*" for number in range(QUERY_TERMS_MAX)
    ]

    assert index.ask(" ".join(words)) == [0]


ANYTHING = st.text(alphabet=st.characters())
SYNTAX = st.lists(
    st.sampled_from(
        ['"', "''", "-", "--", "*", "OR", "|", "AND", "NOT", "NEAR(", "NEAR(a b, 3)", ")", "(", "{", "}", "^", "+", ":",
         "\\", "\0", "\ud83d", "agent:", 'kind:"', "since:", "before:7d", "body:", "rowid:", " ", " ", " ", "the",
         "key", "deploy", "getUserName", "src/a.py", "C++", ".NET", "E0277", "東京", "エ", "한국어", "é", "🚀",
         "👍🏽", "🇩🇪", "a3f9c1d2"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@settings(max_examples=500)
@given(typed=st.one_of(ANYTHING, SYNTAX), document=st.one_of(ANYTHING, SYNTAX))
@example(typed='"', document="")
@example(typed='a* OR "b"* -c* AND (', document="abc")
@example(typed="\u19b0 ᦰ", document="\u19b0")
def test_nothing_that_can_be_typed_is_an_error(index: Index, typed: str, document: str) -> None:
    query = asked(typed)
    index.fill([document])
    loose = index.match(fts5_match(query))
    strict = index.match(fts5_match(query, is_strict=True))
    excluded = index.match(fts5_excluded(query))
    snippet = highlight(document, query, 30)

    assert set(strict) <= set(loose)
    assert not (loose and excluded)
    assert snippet.text in document
    assert (fts5_match(query) is None) == (not (query.terms or query.phrases or query.any_groups))


@given(st.text(max_size=30))
def test_a_zone_and_a_moment_never_raise(value: str) -> None:
    moment = read_moment(value, now=NOW)

    assert moment is None or isinstance(moment, float)


def test_the_same_question_is_taken_apart_the_same_way_twice() -> None:
    typed = 'deploy "connection reset" -old a OR b agent:planner since:7d'

    assert parse(typed, now=NOW) == parse(typed, now=NOW)
    assert hash(parse(typed, now=NOW)) == hash(parse(typed, now=NOW))
