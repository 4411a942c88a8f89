"""How well search finds the evidence: conversations and questions in, recall, nDCG and MRR out.

A document is a list of conversations in JSON, or an object whose `conversations` is one:

    {"id": "c1",
     "sessions": [{"id": "s1", "messages": [
       {"id": "m1", "speaker": "Ann", "role": "user", "text": "...", "at": 1700000000}]}],
     "questions": [{"text": "Where does Ann live?", "evidence": ["m1"], "category": "single-hop"}]}

`messages` beside `questions` stands for one session. role is `user` where it is absent, speaker the role, at (UTC
seconds) a minute after the message before. Conversations as LoCoMo publishes them are read too (Maharana et al. 2024,
arXiv 2402.17753): its evidence ids are mended where they are joined by blanks or semicolons or have zeros in front.

Every conversation becomes a store of its own in memory, every session of it a session there, and every question goes
through `Sessions.search`. A question counts once at least one of its evidence ids is a message.

recall@k is the mean share of the evidence among the first k hits (strict: message by message), nDCG@10 is binary
(Järvelin and Kekäläinen 2002), MRR the mean of one by the rank of the first evidence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from playhead.errors import PlayheadError
from playhead.session import Sessions, open

RECALL_AT = (1, 5, 10, 20)
NDCG_AT = 10

LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_LOCOMO_ID = re.compile(r"D(\d+):0*(\d+)")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"


class Message(msgspec.Struct, frozen=True):
    """Something that was said. id: unique in its conversation. at: UTC seconds."""

    id: str
    text: str
    speaker: str | None = None
    role: str = "user"
    at: float | None = None


class Part(msgspec.Struct, frozen=True):
    """A session of a conversation."""

    id: str
    messages: list[Message]


class Question(msgspec.Struct, frozen=True):
    """A question, and the ids of the messages that answer it."""

    text: str
    evidence: list[str]
    category: str = "all"


class Conversation(msgspec.Struct, frozen=True):
    """A conversation with its questions."""

    id: str
    questions: list[Question]
    sessions: list[Part] = []
    messages: list[Message] = []

    def parts(self) -> list[Part]:
        """Return its sessions; messages that are in none are one."""
        return [*self.sessions, Part("all", self.messages)] if self.messages else list(self.sessions)


class Scores(msgspec.Struct, frozen=True):
    """Means over questions. recall: by k, each from 0 to 1, as are ndcg and mrr."""

    question_count: int
    recall: dict[int, float]
    ndcg: float
    mrr: float


def read(document: bytes) -> list[Conversation]:
    """Return the conversations of a JSON document. Raises `ValueError` with what is wrong with it."""
    try:
        found = msgspec.json.decode(document)
        rows = found.get("conversations") if isinstance(found, dict) else found
        if not isinstance(rows, list):
            raise ValueError("it is no list of conversations, and has none under `conversations`")
        return [_locomo(row) if _is_locomo(row) else msgspec.convert(row, Conversation) for row in rows]
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise ValueError(f"this is no document of conversations and questions: {error}") from error


def score(conversations: Iterable[Conversation], *, mode: str = "auto") -> dict[str, Scores]:
    """Return the scores of every category and, under `all`, of all questions together."""
    judged: dict[str, list[_Judged]] = {}
    for conversation in conversations:
        for question, ranks in ranked(conversation, mode=mode):
            one = _judged(ranks, len(set(question.evidence)))
            for category in {question.category, "all"}:
                judged.setdefault(category, []).append(one)
    return {category: _mean(ones) for category, ones in sorted(judged.items())}


def ranked(conversation: Conversation, *, mode: str = "auto") -> Iterator[tuple[Question, list[int]]]:
    """Yield each question that counts, with the ranks of its evidence among the hits, from 1, ascending. Of its
    evidence only what is there is left."""
    with open("memory:") as sessions:
        placed = _record(sessions, conversation)
        for question in conversation.questions:
            evidence = [id for id in dict.fromkeys(question.evidence) if id in placed]
            if evidence:
                hits = sessions.search(question.text, mode=mode, kind="message", k=max(RECALL_AT)).hits
                order = [(hit.session, hit.seq) for hit in hits]
                ranks = sorted(order.index(placed[id]) + 1 for id in evidence if placed[id] in order)
                yield msgspec.structs.replace(question, evidence=evidence), ranks


def _record(sessions: Sessions, conversation: Conversation) -> dict[str, tuple[str, int]]:
    """Record a conversation, and return where each of its messages is. Raises `ValueError` for an id that is twice."""
    placed: dict[str, tuple[str, int]] = {}
    now = 0.0
    for part in conversation.parts():
        try:
            session = sessions.create(part.id)
        except PlayheadError as error:
            raise ValueError(f"session {part.id!r} of conversation {conversation.id!r}: {error}") from error
        with session:
            for message in part.messages:
                if message.id in placed:
                    raise ValueError(f"message {message.id!r} of conversation {conversation.id!r} is there twice")
                now = now + 60 if message.at is None else message.at
                body = {"role": message.role, "parts": [{"type": "text", "content": message.text}]}
                event = session.append("message", body, agent=message.speaker or message.role, at=now)
                placed[message.id] = (part.id, event.seq)
    return placed


class _Judged(NamedTuple):
    recall: tuple[float, ...]
    ndcg: float
    mrr: float


def _judged(ranks: Sequence[int], evidence_count: int) -> _Judged:
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(evidence_count, NDCG_AT) + 1))
    gained = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= NDCG_AT)
    recall = tuple(sum(rank <= k for rank in ranks) / evidence_count for k in RECALL_AT)
    return _Judged(recall, gained / best, 1 / ranks[0] if ranks else 0.0)


def _mean(ones: Sequence[_Judged]) -> Scores:
    count = len(ones)
    recall = {k: sum(one.recall[place] for one in ones) / count for place, k in enumerate(RECALL_AT)}
    return Scores(count, recall, sum(one.ndcg for one in ones) / count, sum(one.mrr for one in ones) / count)


def _is_locomo(row: Any) -> bool:
    return isinstance(row, dict) and "qa" in row and "conversation" in row


def _locomo(row: Mapping[str, Any]) -> Conversation:
    said = row["conversation"]
    sessions = []
    for number in sorted(int(name[8:]) for name in said if re.fullmatch(r"session_\d+", name)):
        began = datetime.strptime(said[f"session_{number}_date_time"], _LOCOMO_TIME).replace(tzinfo=UTC).timestamp()
        messages = []
        for place, turn in enumerate(said[f"session_{number}"]):
            picture = f" [shared image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            messages.append(Message(turn["dia_id"], f"{turn['text']}{picture}", turn["speaker"], at=began + 30 * place))
        sessions.append(Part(f"session-{number}", messages))
    questions = [
        Question(
            one["question"],
            [f"D{session}:{turn}" for text in one.get("evidence") or () for session, turn in _LOCOMO_ID.findall(text)],
            LOCOMO_CATEGORIES.get(one.get("category"), "all"),
        )
        for one in row["qa"]
    ]
    return Conversation(str(row["sample_id"]), questions, sessions)
