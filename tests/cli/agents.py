"""Agents for the tests of `run` and `resume`: each answers in its own way and records what it says."""

from collections.abc import Generator

from playhead import Session, Sessions, Turn


def echo(sessions: Sessions, session: Session, turn: Turn, prompt: str) -> Generator[str]:
    """Give the prompt back in two pieces."""
    for piece in ("You said: ", prompt):
        turn.stream(piece)
        yield piece


def asking(sessions: Sessions, session: Session, turn: Turn, prompt: str) -> Generator[str]:
    """Ask a person, and end the turn until there is an answer."""
    yield "I need to know one thing."
    turn.say("I need to know one thing.")
    body = {"interrupt": "int-1", "reason": "input_required", "question": "Delete 14 files?"}
    session.append("interrupt_requested", body, agent=turn.agent, turn=turn.turn_id)
    turn.end("interrupted")


def failing(sessions: Sessions, session: Session, turn: Turn, prompt: str) -> Generator[str]:
    """Fail half-way."""
    turn.stream("It begins ")
    yield "It begins "
    raise ConnectionError("the model did not answer")


def interrupted(sessions: Sessions, session: Session, turn: Turn, prompt: str) -> Generator[str]:
    """Be interrupted from the keyboard half-way."""
    turn.stream("It begins ")
    yield "It begins "
    raise KeyboardInterrupt
