"""What a person tells the built-in agent to do is understood in a few plain forms, and nothing else is an order."""

import time

import pytest

from playhead.agents.built_in.orders import (
    ORDER_CHARS_MAX,
    REMINDER,
    Forget,
    Later,
    ListTriggers,
    Order,
    Recall,
    Remember,
    RemoveTrigger,
    Send,
    Unclear,
    WatchChannel,
    WatchFile,
    When,
    ordered,
    when_of,
)

CALL = f"{REMINDER}call Bob"
THERE = f"{REMINDER}there is something on #ops."


@pytest.mark.parametrize(
    ("said", "order"),
    [
        ("Remember that the oven is called Vesuvius.", Remember("the oven is called Vesuvius.")),
        ("note: buy milk", Remember("buy milk")),
        ("My notes", Recall()),
        ("What do you remember?", Recall()),
        ("forget note 2.", Forget("2")),
        ("remind me in 10 minutes to call Bob", Later(When(after_s=600), CALL)),
        ("Please remind me to call Bob in 10 minutes", None),
        ("please remind me to call Bob in 2 h", Unclear()),
        ("remind me to call Bob in 10 minutes", Later(When(after_s=600), CALL)),
        ("in half an hour: remind me to call Bob", Later(When(after_s=1_800), CALL)),
        ("remind me every weekday at 9 to call Bob", Later(When(cron="0 9 * * 1-5"), CALL)),
        ("every monday at 9: list my sessions", Later(When(cron="0 9 * * 1"), "list my sessions")),
        ("every 2 hours, What about ravens?", Later(When(after_s=7_200, every_s=7_200), "What about ravens?")),
        ("remind me about the upload", Unclear()),
        ("remind me at 25:00 to call Bob", Unclear()),
        ("remind me in 10 minutes", Unclear()),
        ("remind me about what we did yesterday", Unclear()),
        ("remind me in -5 seconds to go", Unclear(is_over=True)),
        ("remind me to go in -5 minutes", Unclear(is_over=True)),
        ("remind me yesterday at 9 to go", Unclear(is_over=True)),
        ("remind me last monday to go", Unclear(is_over=True)),
        ("remind me 5 minutes ago to go", Unclear(is_over=True)),
        ("tell me when /etc/hosts changes", WatchFile("/etc/hosts", f"{REMINDER}/etc/hosts has changed.")),
        ("when notes.md changes: ravens?", WatchFile("notes.md", "ravens?")),
        ("tell me if “my notes.md” changes", WatchFile("my notes.md", f"{REMINDER}my notes.md has changed.")),
        ("tell me when something comes on #ops", WatchChannel("ops", THERE)),
        ("when a message comes on #ops: my notes", WatchChannel("ops", "my notes")),
        ("answer questions on #ops", WatchChannel("ops", "Answer what is said.", reply=True)),
        ("my reminders", ListTriggers()),
        ("cancel reminder 2", RemoveTrigger("2")),
        ("remove trigger Timer-1.", RemoveTrigger("Timer-1")),
        ("send to #ops: the disk is full", Send("ops", "the disk is full")),
        ("tell #ops that we are done", Send("ops", "we are done")),
        ("post hello on #ops", Send("ops", "hello")),
    ],
)
def test_an_order(said: str, order: Order | None) -> None:
    assert ordered(said) == (order or Later(When(after_s=600), CALL))


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Remember when we fixed the upload?",
        "Do you remember that the oven is called Vesuvius?",
        "note the time",
        "forget about it",
        "every day at 9 the upload fails",
        "In March, what broke?",
        "tell me when it changes",
        "tell me about #ops",
        "when was the vault opened?",
        "why did we cancel the reminder",
        "what do my reminders say?",
        "answer me",
        "send the report to Bob",
        "note: " + "x" * ORDER_CHARS_MAX,
    ],
)
def test_a_question_is_no_order(said: str) -> None:
    assert ordered(said) is None


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("in an hour", When(after_s=3_600)),
        ("in 1.5 days", When(after_s=129_600)),
        ("every week", When(after_s=604_800, every_s=604_800)),
        ("at 15:30", When(hour=15, minute=30)),
        ("today at 9", When(hour=9, day=0)),
        ("tomorrow at 12 am", When(hour=0, day=1)),
        ("at 12:15 pm", When(hour=12, minute=15)),
        ("at noon", When(hour=12)),
        ("at 9 in Europe/Berlin", When(hour=9, zone="Europe/Berlin")),
        ("Every Sunday at 8:05 in UTC,", When(cron="5 8 * * 0", zone="UTC")),
        ("every weekend at 10", When(cron="0 10 * * 0,6")),
        ("every day at 24:00", None),
        ("at 13 pm", None),
        ("at 9:75", None),
        ("in Europe/Berlin", None),
        ("in 10 minutes in Europe/Berlin", None),
        ("every", None),
        ("at", None),
    ],
)
def test_a_time(text: str, when: When | None) -> None:
    assert when_of(text) == when


@pytest.mark.parametrize(
    "text",
    [
        "tell me when " + "./" * 5_000,
        "send " + "to #" * 2_500,
        "remind me " + "in at every " * 800,
        "when " + "a" * 9_000 + ".",
        "remind me at " + "in a/" * 1_900,
        ": " * 5_000,
    ],
)
def test_a_hostile_prompt_takes_no_time(text: str) -> None:
    began = time.monotonic()
    ordered(text)

    assert time.monotonic() - began < 5
