"""The scorer of search: its figures by hand, its two shapes of input, and what it says of bad ones."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from playhead.testing.retrieval import ranked, read, score


def document(questions: list[dict[str, Any]]) -> bytes:
    talk = ["The parrot is called Rio", "It rained in Lisbon", "The parrot likes nuts", "Nothing else happened"]
    messages = [{"id": f"m{number}", "speaker": "Ann", "text": text} for number, text in enumerate(talk, 1)]
    return json.dumps([{"id": "c", "messages": messages, "questions": questions}]).encode()


def test_figures_are_those_worked_out_by_hand() -> None:
    [conversation] = read(
        document(
            [
                {"text": "Lisbon", "evidence": ["m2"], "category": "one"},
                {"text": "parrot", "evidence": ["m1", "m4"], "category": "half"},
                {"text": "submarine", "evidence": ["m3"], "category": "none"},
                {"text": "Lisbon", "evidence": ["m99"], "category": "evidence that is not there"},
            ]
        )
    )
    [_, half, _] = [ranks for _, ranks in ranked(conversation)]
    assert half in ([1], [2])

    found = score([conversation])

    assert set(found) == {"all", "one", "half", "none"}
    assert (found["one"].recall[1], found["one"].ndcg, found["one"].mrr) == (1.0, 1.0, 1.0)
    assert (found["none"].recall[20], found["none"].ndcg, found["none"].mrr) == (0.0, 0.0, 0.0)
    best = 1 + 1 / math.log2(3)
    assert found["half"].recall[10] == 0.5
    assert found["half"].mrr == 1 / half[0]
    assert found["half"].ndcg == pytest.approx(1 / math.log2(half[0] + 1) / best)
    assert found["all"].question_count == 3
    assert found["all"].recall[10] == pytest.approx(0.5)


def test_locomo_is_read_as_it_is_published() -> None:
    said = {
        "speaker_a": "Ann",
        "session_10_date_time": "1:56 pm on 8 May, 2023",
        "session_10": [{"speaker": "Ann", "dia_id": "D10:5", "text": "Look", "blip_caption": "a red kite"}],
        "session_2_date_time": "9:05 am on 1 May, 2023",
        "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "Hello"}],
    }
    asked = {"question": "What flew?", "evidence": ["D10:05; D2:1"], "category": 4}
    [found] = read(json.dumps([{"sample_id": "x", "conversation": said, "qa": [asked]}]).encode())

    assert [part.id for part in found.sessions] == ["session-2", "session-10"]
    assert found.sessions[1].messages[0].text == "Look [shared image: a red kite]"
    assert found.sessions[1].messages[0].at == 1683554160.0
    assert (found.questions[0].evidence, found.questions[0].category) == (["D10:5", "D2:1"], "single-hop")


@pytest.mark.parametrize(
    "text",
    ["{", "7", '{"rows": []}', '[{"id": 1}]', '[{"qa": [], "conversation": {"session_1": []}}]'],
)
def test_what_is_no_document_says_so(text: str) -> None:
    with pytest.raises(ValueError, match=r"document|conversations"):
        read(text.encode())


def test_an_id_that_is_there_twice_is_refused() -> None:
    twice = [{"id": "m", "text": "one"}, {"id": "m", "text": "two"}]
    [conversation] = read(json.dumps([{"id": "c", "messages": twice, "questions": []}]).encode())
    with pytest.raises(ValueError, match="twice"):
        list(ranked(conversation))


def test_a_real_dialogue_is_scored(shared_data: Path) -> None:
    document = (shared_data / "dialogues" / "locomo" / "locomo_part.json").read_bytes()
    found = score(read(document)[:1])
    assert found["all"].question_count > 150
    assert found["all"].recall[10] > 0.4  # The usual full text alone gives 0.5 here.
