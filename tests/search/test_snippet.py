"""What of a found text is shown, and which words in it are marked (K16)."""

import time
import unicodedata

import pytest
from hypothesis import example, given, settings, strategies as st

from playhead.search.query import fts5_match, highlight
from playhead.search.snippet import SNAP_CHARS, Snippet
from playhead.search.tokenize import ANALYZE_CHARS_MAX
from tests.search.conftest import Index, asked


def marked(text: str, typed: str, width: int = 200) -> list[str]:
    """Return the marked words of the snippet."""
    snippet = highlight(text, asked(typed), width)
    return [snippet.text[start:end] for start, end in snippet.marks]


@pytest.mark.parametrize(
    ("text", "typed", "words"),
    [
        ("The deploy key and the keys", "key", ["key", "keys"]),
        (
            "Connected, connecting, connections; not Connecticut",
            "connection",
            ["Connected", "connecting", "connections"],
        ),
        ("A car on a carpet", "car", ["car"]),
        ("happiness, happy, unhappy", "happy", ["happiness", "happy"]),
        ("He retries what was retried", "retry", ["retries", "retried"]),
        ("hoping and hopping", "hope", ["hoping"]),
        ("possibly sensible", "possible", ["possibly"]),
        ("Le CAFÉ fermé", "cafe", ["CAFÉ"]),
        ("Le cafe\u0301 ferme\u0301", "café", ["cafe\u0301"]),
        ("Die STRASSE, die Straße", "straße", ["STRASSE", "Straße"]),
        ("Ёлка и ёлки", "елка", ["Ёлка"]),
        ("深夜に東京タワーへ行った", "東京タワー", ["東京タワー"]),
        ("深夜に東京へ行った", "東京タワー", ["東京"]),
        ("使用Python语言", "python", ["Python"]),
        ("使用Python语言", "语言", ["语言"]),
        ("서버에서 오류 처리를", "처리", ["처리"]),
        ("यह हिन्दी में", "हिन्दी", ["हिन्दी"]),
        ("เกิดข้อผิดพลาดในการ", "ข้อผิดพลาด", ["ข้อผิดพลาด"]),
        ("ok 👍🏽 by 👩\u200d💻", "👍 👩‍💻", ["👍🏽", "👩\u200d💻"]),
        ("I ❤️ it", "❤", ["❤️"]),
        ("call getUserName() or get_user_name", "getUserName", ["getUserName", "get_user_name"]),
        ("call getUserName()", "user", ["User"]),
        ("call getUserName()", '"user name"', ["UserName"]),
        ("an HTTPServer", "server", ["Server"]),
        ("with --dry-run", "dryrun", ["dry-run"]),
        ("dry runs", '"dry run"', ["dry runs"]),
        ("see src/app/main.py, and main", "src/app/main.py", ["src/app/main.py"]),
        ("see lib/main.py", "src/app/main.py", ["main.py"]),
        ("C++ and C, .NET and .network, C#", "c++ .net c#", ["C++", ".NET", "C#"]),
        ("HTTP404, E0277, 50 ms", '"http 404" e0277 50ms', ["HTTP404", "E0277", "50 ms"]),
        ("at a3f9c1d2e4b5f607", "a3f9c1d", ["a3f9c1d2e4b5f607"]),
        ("reset by the peer, the peer", '"the peer"', ["the peer", "the peer"]),
        ("reset by,\n  the peer", '"by the peer"', ["by,\n  the peer"]),
        ("the lock is the key", "the key", ["key"]),
        ("playing the player", "play*", ["playing", "player"]),
        ("a pair of apples", "a OR pair", ["a", "pair"]),
        ("deploy it", "deploy -it", ["deploy"]),
        ("nothing of it", "zebra", []),
        ("anything", "", []),
        ("", "key", []),
    ],
)
def test_every_form_of_a_word_is_marked_and_nothing_else(text: str, typed: str, words: list[str]) -> None:
    assert marked(text, typed) == words


def test_the_window_is_where_most_of_the_question_is() -> None:
    text = "key " * 5 + "filler " * 50 + "the deploy key was rotated " + "filler " * 50

    assert highlight(text, asked("deploy key"), 60).text == "filler filler filler the deploy key was rotated filler"
    assert marked(text, "deploy key", 60) == ["deploy", "key"]


def test_of_two_equal_places_the_first_is_shown() -> None:
    text = "first key " + "filler " * 50 + "second key " + "filler " * 50

    assert highlight(text, asked("key"), 30).text.startswith("first key")


def test_a_short_text_is_shown_whole() -> None:
    assert highlight("The deploy key", asked("key"), 60) == Snippet("The deploy key", ((11, 14),), False, False)


def test_without_a_match_the_beginning_is_shown() -> None:
    snippet = highlight("one two three four", asked("zebra"), 9)

    assert snippet == Snippet("one two", (), cut_before=False, cut_after=True)


def test_cut_ends_fall_between_words_where_that_is_near() -> None:
    text = "alpha beta gamma delta epsilon zeta eta theta"
    snippet = highlight(text, asked("delta"), 20)

    assert snippet == Snippet("gamma delta epsilon", ((6, 11),), cut_before=True, cut_after=True)


def test_a_match_wider_than_the_window_is_shown_from_its_beginning() -> None:
    snippet = highlight("x " * 50 + '"reset by the peer" y', asked('"reset by the peer"'), 8)

    assert snippet.text == "reset by"
    assert snippet.marks == ((0, 8),)


@pytest.mark.parametrize("width", [-5, 0, 1])
def test_the_narrowest_window_is_one_character(width: int) -> None:
    assert highlight("a key", asked("key"), width) == Snippet("k", ((0, 1),), cut_before=True, cut_after=True)


def test_a_snippet_does_not_begin_with_the_accent_of_a_letter_left_out() -> None:
    text = unicodedata.normalize("NFD", "é" * 40) + " key"

    assert not unicodedata.combining(highlight(text, asked("key"), 20).text[0])


def test_a_match_deep_in_a_long_text_is_found() -> None:
    text = "the keyboard " * 200_000 + "zebra"
    snippet = highlight(text, asked("zebra"), 40)

    assert [snippet.text[start:end] for start, end in snippet.marks] == ["zebra"]


FIFTY_MB = 50_000_000


@pytest.mark.parametrize(
    ("piece", "typed"),
    [
        ("a", "a aa"),
        ("a ", '"a a a a a a a a b"'),
        ("ab_", "ab_ab_c"),
        ("aB", "ab b"),
        ("the key ", '"the lock"'),
        ("key ", " ".join(f"key{number}" for number in range(64))),
        ("-", '"a b"'),
        ("e\u0301", "cafe"),
        ("東京", "京都"),
        ("🚀", "🚀🐛"),
    ],
    ids=ascii,
)
def test_fifty_megabytes_are_no_trouble(piece: str, typed: str) -> None:
    text = piece * (FIFTY_MB // len(piece))
    start = time.process_time()
    snippet = highlight(text, asked(typed), 200)

    assert time.process_time() - start < 8
    assert 0 < len(snippet.text) <= 200


def test_what_is_beyond_the_index_is_not_searched() -> None:
    text = "x" * ANALYZE_CHARS_MAX + " key"

    assert marked(text, "key") == []


WORDS = st.lists(
    st.sampled_from(
        "the key keys deploy deploying deployment getUserName get_user_name user name src/app/main.py main.py E0277 "
        "HTTP404 HTTP 404 C++ C .NET café cafe\u0301 Straße strasse 東京タワー 東京 エラー 한국어를 👍🏽 👍 🚀 "
        "dry-run dryrun 50ms 50 ms".split()
    ),
    max_size=8,
)


@settings(max_examples=300)
@given(document=WORDS, typed=WORDS, width=st.integers(1, 80))
@example(document=["dry-run"], typed=["dryrun"], width=10)
def test_what_the_index_finds_is_marked(index: Index, document: list[str], typed: list[str], width: int) -> None:
    text, question = ", ".join(document), asked(" ".join(typed))
    index.fill([text])
    snippet = highlight(text, question, width)

    assert bool(index.match(fts5_match(question))) == bool(snippet.marks)


@settings(max_examples=300)
@given(
    text=st.one_of(
        st.text(alphabet=st.characters()), st.text(alphabet="aé\u0301\ufe0f\u200d👍🏽東カ C+#.net_- \n", max_size=60)
    ),
    typed=st.one_of(st.text(alphabet=st.characters()), st.text(alphabet='aé\u0301👍🏽東カ C+#.net_-*" ', max_size=12)),
    width=st.integers(-1, 60),
)
def test_a_snippet_is_a_piece_of_the_text_with_marks_inside_it(text: str, typed: str, width: int) -> None:
    snippet = highlight(text, asked(typed), width)
    edges = [edge for mark in snippet.marks for edge in mark]

    assert snippet.text in text
    assert len(snippet.text) <= max(width, 1)
    assert edges == sorted(edges)
    assert all(start < end for start, end in snippet.marks)
    assert not edges or (edges[0] >= 0 and edges[-1] <= len(snippet.text))
    assert text.startswith(snippet.text) or snippet.cut_before
    assert text.endswith(snippet.text) or snippet.cut_after


def test_an_end_moves_no_further_than_stated() -> None:
    text = "x" * 100 + " key " + "y" * 100
    snippet = highlight(text, asked("key"), 60)

    assert len(snippet.text) >= 60 - 2 * SNAP_CHARS
