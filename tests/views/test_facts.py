"""Facts: what holds for the session whatever its path, folded in the order of the log."""

from playhead.views.facts import Facts, facts
from tests.log import Log


def test_a_session_without_facts_is_open_and_has_no_title() -> None:
    log = Log()
    log.user("Why?")

    assert facts(log.events) == Facts()


def test_the_newest_of_each_field_holds_and_a_rewind_changes_none() -> None:
    log = Log()
    first = log.user("Why?")
    log.add("session_changed", title="Flaky test", labels=["ci"])
    log.add("session_changed", status="archived")
    log.add("session_changed", title="Flaky upload", labels=["ci", "upload"])
    log.user("And now?")
    moved = log.move(first)

    assert facts(log.events) == Facts(
        title="Flaky upload", labels=("ci", "upload"), status="archived", last_at=moved.at
    )


def test_a_title_may_be_taken_away_and_labels_cleared() -> None:
    log = Log()
    log.add("session_changed", title="Flaky test", labels=["ci"])
    log.add("session_changed", title=None, labels=[])

    found = facts(log.events)

    assert (found.title, found.labels) == (None, ())


def test_shared_state_is_what_this_session_wrote_last() -> None:
    log = Log()
    log.add("state_changed", {"delta": {"user": {"language": "de", "theme": "dark"}, "app": {"limit": 3}}})
    log.add("state_changed", {"delta": {"session": {"language": "fr"}}})
    log.add("state_changed", {"removed": {"user": ["theme"], "app": ["limit"]}})
    log.add("state_changed", {"delta": {"user": {"theme": "light"}}, "removed": {"user": ["theme", "none"]}})

    assert facts(log.events).shared == {"user": {"language": "de", "theme": "light"}}


def test_facts_never_change_the_bodies_they_are_read_from() -> None:
    log = Log()
    log.add("state_changed", {"delta": {"user": {"language": "de"}}})
    log.add("state_changed", {"delta": {"user": {"language": "fr"}}})

    facts(log.events)

    assert log.events[1].body == {"delta": {"user": {"language": "de"}}}


def test_what_was_redacted_is_listed_once_each() -> None:
    log = Log()
    log.add("redacted", events=["event-2", "event-3"], reason="a key")
    log.add("redacted", events=["event-3", "event-9", 7])

    assert facts(log.events).redacted == ("event-2", "event-3", "event-9")


def test_fields_of_another_shape_change_nothing() -> None:
    log = Log()
    log.add("session_changed", title="Flaky test", labels=["ci"], status="open")
    log.add("session_changed", labels="ci", status=7)
    log.add("session_changed", labels=[7, "upload"], title=["a"])
    log.add("redacted", events="event-1")

    found = facts(log.events)

    assert (found.title, found.labels, found.status, found.redacted) == (None, ("upload",), "open", ())
