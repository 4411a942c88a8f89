"""How a command ends: exit codes, one line that says what to do, no traceback unless one asks."""

import io

import pytest
from typer.main import get_command

from playhead import Sessions, errors
from playhead.cli.failures import EXIT_CODES, Failure, exit_code, guarded, message
from playhead.cli.main import COMMANDS, app
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
    assert value.err == 'error: --count is a whole number, not "many"\n  see: playhead list --help\n'
    assert missing.err == "error: missing argument 'SESSION'\n  see: playhead show --help\n"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["list", "-n", "0"], '--count is 1 or more, not "0"'),
        (["stats", "--days", "100001"], '--days is 100,000 or less, not "100001"'),
        (["stats", "--days", "1.5"], '--days is a whole number, not "1.5"'),
        (["stats", "--days", "9" * 5_000], f'--days is a whole number, not "{"9" * 60}…"\n'),
        (["list", "--sort", "'\x1b[2J"], '--sort is last-active, created, title or relevance, not "\'␛[2J"'),
        (["db", "mend"], 'ACTION is path, backup, check or shell, not "mend"'),
        (["export", "x", "--format", "pdf"], '--format is jsonl, md or html, not "pdf"'),
        (["resume", "--lat"], "no such option: --lat; did you mean --agent, --at or --last?"),
        (["import", "--interval", "soon"], '--interval is a number, not "soon"'),
        (["list", "a", "b"], "nothing more is expected after: a b"),
    ],
)
def test_what_an_option_is_is_said_in_our_words(cli: CommandLine, call: list[str], said: str) -> None:
    answer = cli(*call)

    assert answer.code == 2
    assert answer.err.startswith(f"error: {said}")
    assert answer.err.endswith(f"  see: playhead {call[0]} --help\n")
    assert "Input should" not in answer.err and "Value error" not in answer.err


def test_every_option_of_a_few_values_says_which_in_our_words(cli: CommandLine) -> None:
    """Whatever a command is given, no sentence of the library that reads options comes out."""
    found = {}
    for name in COMMANDS:
        for option in get_command(app).get_command(None, name).params:  # type: ignore[attr-defined]
            if option.param_type_name == "option" and not getattr(option, "is_flag", False):
                answer = cli(name, option.opts[-1], "no such value")
                if "Input should" in answer.err or "Value error" in answer.err:
                    found[f"{name} {option.opts[-1]}"] = answer.err

    assert found == {}


def test_a_session_without_turns_is_said_to_have_none(cli: CommandLine, sessions: Sessions) -> None:
    sessions.create("empty-0001").close()
    answers = [cli("show", "empty-0001", "--turn", "1"), cli("rewind", "empty-0001", "--to", "1")]

    assert [answer.code for answer in answers] == [3, 3]
    assert {answer.err for answer in answers} == {"error: session 'empty-0001' has no turns on its path\n"}


def test_an_interrupted_command_claims_nothing_about_what_was_written() -> None:
    terminal, err = _terminal()

    def interrupted() -> int:
        raise KeyboardInterrupt

    assert guarded(interrupted, terminal) == 130
    assert err.getvalue() == "error: interrupted\n"


def test_a_url_that_names_no_store_is_a_usage_error(cli: CommandLine) -> None:
    answer = cli("--store", "ftp://example", "list")

    assert (answer.code, answer.out) == (2, "")
    assert "bundles:DIR" in answer.err
    assert "Traceback" not in answer.err


def test_debug_before_or_after_the_command_shows_the_traceback(cli: CommandLine) -> None:
    assert "Traceback" in cli("--debug", "show", "nobody").err
    assert "Traceback" in cli("show", "nobody", "--debug").err
    assert "Traceback" not in cli("show", "nobody").err
