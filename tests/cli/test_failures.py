"""How a command ends: exit codes, one line that says what to do, no traceback unless one asks."""

import io

import pytest

from playhead import errors
from playhead.cli.failures import EXIT_CODES, Failure, exit_code, guarded, message
from playhead.cli.terminal import Terminal
from tests.cli.conftest import CommandLine

HOLDER = {"host": "den", "pid": 4711, "since": 0.0, "label": "playhead serve"}


def _terminal() -> tuple[Terminal, io.StringIO]:
    err = io.StringIO()
    return Terminal(io.StringIO(), err, {}), err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Failure("no", code=5), 5),
        (errors.SessionNotFound("s1"), 3),
        (errors.EventNotFound("s1", 4), 3),
        (errors.TurnNotFound("s1", 4, turn_count=3), 3),
        (errors.SessionBusy("s1", HOLDER), 4),
        (errors.StaleWriter("s1", expected_seq=4, actual_seq=6), 4),
        (errors.StoreLocked("locked"), 4),
        (errors.StoreUnavailable("no such folder"), 1),
        (errors.InvalidName("no such URL"), 2),
        (errors.StoreDamaged("page 4"), 6),
        (errors.NotAStore("a picture"), 1),
        (errors.NewerFormat("s1", found=9, supported=1), 1),
        (errors.StoreFull("disk full"), 1),
        (errors.ImportFailed("no session file"), 1),
        (ZeroDivisionError("division by zero"), 1),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 0),
    ],
)
def test_every_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert exit_code(error) == code
    assert code in EXIT_CODES


def test_every_error_of_the_library_gives_a_line_and_a_documented_code() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.PlayheadError)
    ]
    plain = [kind for kind in kinds if kind.__init__ is errors.PlayheadError.__init__]

    assert len(kinds) > 15
    assert [kind for kind in plain if exit_code(kind("it happened")) not in EXIT_CODES] == []
    assert all(message(kind("it happened")) == "it happened" for kind in plain)


def test_a_failure_is_one_line_on_stderr_and_what_helps_below_it() -> None:
    terminal, err = _terminal()

    def fails() -> int:
        raise Failure("no session answers to \x1b[2J", code=3, lines=["4f9a  Deploy \x1b[2Jnotes"])

    code = guarded(fails, terminal)

    assert code == 3
    assert err.getvalue() == "error: no session answers to ␛[2J\n  4f9a  Deploy ␛[2Jnotes\n"


def test_the_holder_of_a_busy_session_is_named() -> None:
    assert "playhead serve (pid 4711 on den)" in message(errors.SessionBusy("s1", HOLDER))


def test_an_error_of_the_system_names_the_file() -> None:
    assert message(FileNotFoundError(2, "No such file or directory", "/tmp/x")) == "No such file or directory: /tmp/x"


@pytest.mark.parametrize("debug", [False, True])
def test_a_mistake_of_ours_shows_its_traceback_only_where_one_asks(debug: bool) -> None:
    terminal, err = _terminal()

    def fails() -> int:
        raise ZeroDivisionError("division by zero")

    code = guarded(fails, terminal, debug=debug)

    assert code == 1
    assert ("Traceback" in err.getvalue()) is debug
    assert err.getvalue().splitlines()[-1].startswith("error: this is a mistake in Playhead (ZeroDivisionError")


def test_a_usage_error_points_to_the_help(cli: CommandLine) -> None:
    unknown, option, value, missing = (
        cli("serach", "x"),
        cli("list", "--nope"),
        cli("list", "-n", "many"),
        cli("show"),
    )

    assert [answer.code for answer in (unknown, option, value, missing)] == [2] * 4
    assert unknown.err == 'error: there is no command "serach"; did you mean search?\n  see: playhead --help\n'
    assert option.err.startswith("error: no such option: --nope")
    assert option.err.endswith("  see: playhead list --help\n")
    assert value.err.startswith("error: invalid value for")
    assert missing.err == "error: missing argument 'SESSION'\n  see: playhead show --help\n"


def test_a_url_that_names_no_store_is_a_usage_error(cli: CommandLine) -> None:
    answer = cli("--store", "ftp://example", "list")

    assert (answer.code, answer.out) == (2, "")
    assert "bundles:DIR" in answer.err
    assert "Traceback" not in answer.err


def test_debug_before_or_after_the_command_shows_the_traceback(cli: CommandLine) -> None:
    assert "Traceback" in cli("--debug", "show", "nobody").err
    assert "Traceback" in cli("show", "nobody", "--debug").err
    assert "Traceback" not in cli("show", "nobody").err
