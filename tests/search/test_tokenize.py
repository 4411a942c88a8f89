"""What a document becomes in the index, and that typing any part of it finds it again."""

import base64
import random
import string
import time
import unicodedata

import pytest
from hypothesis import example, given, settings, strategies as st

from playhead.search.tokenize import (
    ANALYZE_CHARS_MAX,
    OPAQUE_CHARS_MIN,
    PIECES_MAX,
    SEGMENT_BREAK,
    WORD_CHARS_MAX,
    analyze,
    analyze_query_term,
    chunks,
    fold,
    loose_query_terms,
    read,
    terms,
)
from tests.search.conftest import Index

ANY_TEXT = st.text(alphabet=st.characters())
WORDY_TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from(string.ascii_letters + string.digits + "_-+#./\\:@'\"*() \n"),
        st.sampled_from("éüñßøЙяё東京タワーがｶﾞ한국어สวัสดีहिन्दी中文🚀👍🏽👩‍💻🇩🇪️⃣゙́̈℡ﬁ½Ａ"),
    ),
    max_size=60,
)


def running(text: str) -> list[str]:
    """Return the terms of the running text alone."""
    return analyze(text).partition(f" {SEGMENT_BREAK} ")[0].split()


def spellings(text: str) -> set[str]:
    """Return the other spellings, each as one string."""
    return {segment.strip() for segment in analyze(text).split(SEGMENT_BREAK)[1:]}


@pytest.mark.parametrize(
    ("text", "words", "others"),
    [
        ("The lock is held", "the lock is held", set()),
        ("get_user_name", "get user name", {"getusername"}),
        ("getUserName", "getusername", {"get user name"}),
        ("HTTPServer", "httpserver", {"http server"}),
        ("APIs", "apis", set()),
        ("--dry-run", "dry run", {"dryrun"}),
        ("__init__", "init", set()),
        ("src/app/main.py", "src app main py", set()),
        ("C:\\Users\\me", "c users me", set()),
        ("E0277", "e 0277", {"e0277"}),
        ("ERR_CONNECTION_RESET", "err connection reset", {"errconnectionreset"}),
        ("0x80070005", "0x80070005", {"80070005"}),
        ("HTTP404", "http 404", {"http404"}),
        ("C++ and C#", "cplusplus and csharp", {"c"}),
        ("c++17", "cplusplus 17", {"c"}),
        ("count++", "count", set()),
        (".NET", "dotnet", {"net"}),
        ("asp.net", "asp net", set()),
        (".network", "network", set()),
        ("50ms", "50 ms", {"50ms"}),
        ("a3f9c1d2e", "a3f9c1d2e", set()),
        ("utf8mb4", "utf8mb4", {"utf 8 mb 4"}),
        ("東京タワー", "東京 京タ タワ ワー ー", set()),
        ("東", "東", set()),
        ("使用Python语言", "使用 用 python 语言 言", set()),
        ("한국어를", "한국 국어 어를 를", set()),
        ("ｶﾞﾗｽ ガラス", "ガラ ラス ス ガラ ラス ス", set()),
        ("Ｐｙｔｈｏｎ", "python", set()),
        ("Café Straße", "cafe strasse", set()),
        ("ﬁle №5", "file 5", set()),
        ("🚀", "emoji1f680", set()),
        ("👍🏽 👍", "emoji1f44d emoji1f44d", set()),
        ("👩‍💻", "emoji1f469 emoji1f4bb", set()),
        ("🇩🇪", "emoji1f1e91f1ea", set()),
        ("❤️ ❤", "emoji2764 emoji2764", set()),
        ("1️⃣", "1 emoji20e3", set()),
        ("║ ─ → █", "", set()),
        ("", "", set()),
        ("\0 \ud800 !?", "", set()),
    ],
)
def test_a_text_becomes_its_words_and_then_the_other_spellings(text: str, words: str, others: set[str]) -> None:
    assert " ".join(running(text)) == words
    assert spellings(text) == others


def test_the_terms_are_the_analysed_text_split() -> None:
    text = "getUserName reads café_menu, 東京 and 🚀"

    assert terms(text) == analyze(text).split()
    assert " ".join(terms(text)) == analyze(text)


def test_each_spelling_is_kept_once_however_often_the_name_occurs() -> None:
    text = "getUserName " * 50

    assert terms(text).count("getusername") == 50
    assert terms(text).count(SEGMENT_BREAK) == 1


def test_a_phrase_does_not_match_across_the_border_of_two_spellings(index: Index) -> None:
    # The tail holds "foo bar" and then "baz qux": neither a phrase over both, nor one from the text into the tail.
    index.fill(["fooBar bazQux"])

    assert index.match('"foo bar"') == [0]
    assert index.match('"bar baz"') == []
    assert index.match('"bazqux foo"') == []


def test_no_text_and_no_query_contains_the_break() -> None:
    assert terms(f"a{SEGMENT_BREAK}b {SEGMENT_BREAK}") == ["a", "b"]
    assert analyze_query_term(SEGMENT_BREAK) == []


@pytest.mark.parametrize(
    ("typed", "ways"),
    [
        ("getUserName", [["getusername"], ["get", "user", "name"]]),
        ("get_user_name", [["get", "user", "name"], ["getusername"]]),
        ("src/app/main.py", [["src", "app", "main", "py"]]),
        ("東", [["東*"]]),
        ("東京タワー", [["東京", "京タ", "タワ", "ワー"]]),
        ("café", [["cafe"]]),
        ("a3f9c1d", [["a3f9c1d"], ["a3f9c1d*"]]),
        ("C++", [["cplusplus"]]),
        ("“", []),
        ("", []),
    ],
)
def test_a_typed_word_stands_for_every_way_to_write_it(typed: str, ways: list[list[str]]) -> None:
    assert analyze_query_term(typed) == ways


def test_the_parts_of_a_name_are_offered_for_ranking_and_numbers_are_not() -> None:
    assert loose_query_terms("src/app/main.py") == [["main", "py"], ["src"], ["app"], ["main"]]
    assert loose_query_terms("東京タワー") == [["東京"], ["京タ"], ["タワ"], ["ワー"]]
    assert loose_query_terms("E0277") == []
    assert loose_query_terms("10.0.0.1") == []
    assert loose_query_terms("lock") == []


def test_an_emoji_keeps_a_name_of_its_own_in_the_index(index: Index) -> None:
    # The index stems what ends like English, and a hexadecimal number may: `emoji1f9ed` ends in "ed".
    emoji = [chr(code) for code in range(0x1F300, 0x1FB00) if chunks(chr(code))]
    emoji += [chr(code) for code in range(0x2600, 0x27C0)]
    index.fill(emoji)

    kept = [tuple(words) for words in index.terms()]
    assert len(kept) == len(emoji) > 1_500
    assert len(set(kept)) == len(emoji)


def test_long_runs_of_base64_are_skipped_and_long_paths_are_not() -> None:
    signature = base64.b64encode(random.Random(7).randbytes(OPAQUE_CHARS_MIN)).decode()
    hexadecimal = "0f1e2d3c" * (OPAQUE_CHARS_MIN // 8 + 1)
    path = "/".join(["home", "user", "project"] * (OPAQUE_CHARS_MIN // 15 + 1))
    rule = "before" + "-" * OPAQUE_CHARS_MIN + "after"
    sentence = "東京" * OPAQUE_CHARS_MIN

    assert terms(f"sig {signature} end") == ["sig", "end"]
    assert terms(f"sig {hexadecimal} end") == ["sig", "end"]
    assert "project" in terms(path)
    assert running(rule) == ["before", "after"]
    assert len(terms(sentence)) == len(sentence)


def test_a_long_word_is_found_by_its_beginning_and_has_no_other_spelling() -> None:
    word = "ж" * (WORD_CHARS_MAX + 50)
    chain = "_".join(["aB"] * (PIECES_MAX + 1))

    assert terms(word) == [word[:WORD_CHARS_MAX]]
    assert analyze_query_term(word) == [[word[:WORD_CHARS_MAX]]]
    assert terms(chain) == ["ab"] * (PIECES_MAX + 1)


def test_text_beyond_the_limit_is_not_indexed() -> None:
    text = "lock " * (ANALYZE_CHARS_MAX // 5) + "beyond"

    assert terms(text)[-1] == "lock"


HOSTILE = {
    "one letter": "a",
    "a chain of names": "ab_",
    "borders of case": "aB",
    "accents": "e\u0301\u0316",
    "accents out of order": "\u0e48\u0e38",
    "voicing": "か\u3099",
    "a sentence without an end": "東京",
    "emoji": "🚀",
    "joiners": "👩\u200d",
    "a letter that is eighteen": "ﷺ ",
    "signs": "+",
    "dashes": "-",
    "slashes": "a/",
    "half pairs": "\ud83d",
    "nothing": "\0",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_work_is_linear_in_a_hostile_text(piece: str) -> None:
    # Quadratic work would take 64 times as long for 8 times the text, and hours for all of it.
    short = _seconds(piece * (50_000 // len(piece)))
    long = _seconds(piece * (400_000 // len(piece)))

    assert long < 30 * short + 0.2


def _seconds(text: str) -> float:
    def once() -> float:
        start = time.process_time()
        analyze(text)
        return time.process_time() - start

    return min(once() for _ in range(3))


@given(ANY_TEXT)
@example("\ud800\udfff \0 \udbff")
@example("ﷺ" * 3)
@example("_\u0301-\u200d\ufe0f🏽")
def test_any_text_can_be_analysed(text: str) -> None:
    made = terms(text)

    analyze(text).encode("utf-8")
    assert all(term == SEGMENT_BREAK or term.isalnum() for term in made)
    assert made == terms(text)


@given(st.one_of(WORDY_TEXT, ANY_TEXT))
def test_the_short_cut_for_plain_words_changes_nothing(text: str) -> None:
    expected = [word for chunk in chunks(text) for word in read(chunk).words]

    assert running(text) == expected


@settings(max_examples=300)
@given(text=st.one_of(WORDY_TEXT, ANY_TEXT))
def test_every_word_of_a_document_finds_it(index: Index, text: str) -> None:
    index.fill([text])
    missed = []
    for word in text.split():
        ways = analyze_query_term(word)
        if ways and not index.match(" OR ".join(map(expression, ways))):
            missed.append(word)

    assert missed == []


@settings(max_examples=300)
@given(text=WORDY_TEXT, data=st.data())
def test_every_stretch_of_words_of_a_document_finds_it(index: Index, text: str, data: st.DataObject) -> None:
    words = text.split()
    first = data.draw(st.integers(0, len(words)))
    phrase = " ".join(words[first : data.draw(st.integers(first, len(words)))])
    ways = analyze_query_term(phrase)
    index.fill([text])

    assert not ways or index.match(" OR ".join(map(expression, ways))) == [0]


@given(st.text(alphabet="aeiouéüñçàйёяがぱ한글ё東 ", max_size=20))
def test_composed_and_decomposed_letters_are_the_same(text: str) -> None:
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)

    assert terms(composed) == terms(decomposed)
    assert fold(composed) == fold(decomposed)


def expression(way: list[str]) -> str:
    words = " ".join(way)
    return f'"{words.removesuffix("*")}" *' if words.endswith("*") else f'"{words}"'
