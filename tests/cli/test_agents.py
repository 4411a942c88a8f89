"""Which agent answers: flags, environment and settings, a person's own modules, and what goes wrong with them."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead import Sessions
from playhead.cli.agents import goes_on_note, last_answered_by, local_zone
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal
from tests.conftest import PROJECT

MINE = """
from collections.abc import AsyncGenerator

async def reply(request, turn):
    await turn.say(f"mine: {request.prompt}")

async def yielding(request, turn):
    yield "a piece"

def plain(request, turn):
    return None

async def alone(turn):
    await turn.say("alone")

class Whole:
    name = "whole"
    async def answer(self, request, turn):
        await turn.stream("whole")
        yield "whole"

class Nameless:
    async def answer(self, request, turn):
        yield ""

class Returning:
    name = "returning"
    async def answer(self, request, turn):
        return "no"

class Holder:
    inner = Whole()

whole, nameless, returning, number = Whole(), Nameless(), Returning(), 7
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of one's own, the current one, with agents in the module `mine_of_a_test`."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "mine_of_a_test.py").write_text(MINE, encoding="utf-8")
    monkeypatch.chdir(folder)
    before = list(sys.path)
    yield folder
    sys.path[:] = before
    for name in [name for name in sys.modules if name.endswith("_of_a_test")]:
        del sys.modules[name]


@pytest.mark.parametrize(("name", "answer"), [("reply", "mine: hello"), ("whole", "whole"), ("Holder.inner", "whole")])
def test_an_agent_of_ones_own_comes_from_the_current_folder(
    cli: CommandLine, sessions: Sessions, mine: Path, name: str, answer: str
) -> None:
    answered = cli("run", "hello", "--agent", f"mine_of_a_test:{name}")

    assert (answered.code, answered.out) == (0, f"{answer}\n")
    assert sessions.get("@last").event(1).body["config"] == {"answered_by": f"mine_of_a_test:{name}"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("yielding", "the function yields"),
        ("plain", "the function is not async"),
        ("alone", "the function takes (turn); it is called with the request and the turn"),
        ("Whole", "is a class; name an object of it"),
        ("nameless", "it has no name"),
        ("returning", "an answer method that is no async generator"),
        ("number", "it has no answer method"),
        ("replay", "did you mean reply?"),
    ],
)
def test_what_is_no_agent_is_told_with_what_is_accepted(
    cli: CommandLine, sessions: Sessions, mine: Path, name: str, said: str
) -> None:
    answered = cli("run", "hello", "--agent", f"mine_of_a_test:{name}")

    assert (answered.code, answered.out) == (2, "")
    assert said in answered.err
    assert sessions.list().total == 0


@pytest.mark.parametrize("name", ["mine_of_a_test", ":reply", "mine_of_a_test:", "../mine:reply", "a b:reply"])
def test_a_name_that_names_no_agent_is_a_usage_error(cli: CommandLine, mine: Path, name: str) -> None:
    answered = cli("run", "hello", "--agent", name)

    assert answered.code == 2
    assert "write MODULE:NAME" in answered.err


def test_a_module_that_is_not_there_is_told_with_where_it_was_looked_for(cli: CommandLine, mine: Path) -> None:
    answered = cli("run", "hello", "--agent", "absent_of_a_test:reply")

    assert answered.code == 2
    assert f"there is no module absent_of_a_test; it was looked for in {mine}" in answered.err


@pytest.mark.parametrize(
    ("source", "said", "where"),
    [
        ("import absent_elsewhere_of_a_test", "No module named 'absent_elsewhere_of_a_test'", "line 1"),
        ("x = 1\ny = 1 / 0", "ZeroDivisionError: division by zero", "line 2: y = 1 / 0"),
        ("def f(:", "SyntaxError", "line 1"),
    ],
)
def test_what_a_persons_own_module_raises_is_shown_with_its_place(
    cli: CommandLine, sessions: Sessions, mine: Path, source: str, said: str, where: str
) -> None:
    (mine / "broken_of_a_test.py").write_text(source, encoding="utf-8")
    answered = cli("run", "hello", "--agent", "broken_of_a_test:reply")

    assert answered.code == 1
    assert "broken_of_a_test cannot be imported" in answered.err
    assert said in answered.err
    assert "broken_of_a_test.py" in answered.err and where in answered.err
    assert "Traceback" not in answered.err
    assert sessions.list().total == 0


def test_a_flag_counts_before_the_environment(cli: CommandLine, mine: Path) -> None:
    named = "mine_of_a_test:reply"

    assert cli("run", "hello", PLAYHEAD_AGENT=named).out == "mine: hello\n"
    assert cli("run", "hello", "--agent", "mine_of_a_test:whole", PLAYHEAD_AGENT=named).out == "whole\n"
    assert "built-in agent" in cli("run", "hello", "--agent", "built-in", PLAYHEAD_AGENT=named).out


def test_a_folder_that_somebody_else_filled_chooses_no_code(
    cli: CommandLine, mine: Path, tmp_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a process of its own, whose path holds the project and not the current folder.
    (mine / "trap_of_a_test.py").write_text("print('imported')", encoding="utf-8")
    settings = tmp_home / "playhead" / "config.toml"
    settings.parent.mkdir(parents=True)
    program = f"import sys; sys.path[0] = {str(PROJECT)!r}; from playhead._entry import main; sys.exit(main())"
    answers = []
    for file in (mine / ".playhead.toml", settings):
        file.write_text('agent = "trap_of_a_test:agent"\n', encoding="utf-8")
        file.chmod(0o600)
        command = [sys.executable, "-c", program, "run", "hello"]
        answers.append(subprocess.run(command, cwd=mine, capture_output=True, text=True, timeout=60))

    assert [answer.returncode for answer in answers] == [0, 2]
    assert "built-in agent" in answers[0].stdout
    assert "there is no module trap_of_a_test; it was looked for where Python keeps packages" in answers[1].stderr
    assert "imported" not in answers[0].stdout + answers[1].stdout


@pytest.mark.parametrize(
    "options",
    [
        ["--agent", "mine_of_a_test:reply", "--model", "m"],
        ["--base-url", "http://localhost:1/v1"],
        ["--instructions", "Be brief."],
        ["--agent", "mine_of_a_test:reply", "--documents", "."],
        ["--documents", "no-such-folder"],
        ["--model", "m", "--base-url", "http://localhost:1/v1", "--instructions", "@no-such-file"],
        ["--model", "m", "--base-url", "no url"],
    ],
)
def test_options_that_have_no_effect_or_no_object_are_refused(
    cli: CommandLine, sessions: Sessions, mine: Path, options: list[str]
) -> None:
    pytest.importorskip("openai", reason="the openai extra is not installed")

    assert cli("run", "hello", *options).code == 2
    assert sessions.list().total == 0


def test_a_model_without_a_key_or_an_endpoint_says_what_to_set(cli: CommandLine, sessions: Sessions) -> None:
    pytest.importorskip("openai", reason="the openai extra is not installed")
    answered = cli("run", "hello", "--model", "gpt-x", OPENAI_API_KEY="", PLAYHEAD_API_KEY="")

    assert answered.code == 1
    assert "set PLAYHEAD_API_KEY or OPENAI_API_KEY" in answered.err
    assert sessions.list().total == 0


def test_a_model_without_its_package_says_what_to_install(
    cli: CommandLine, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("playhead.cli.agents.find_spec", lambda name: None if name == "openai" else find(name))
    answered = cli("run", "hello", "--model", "gpt-x", OPENAI_API_KEY="key")

    assert answered.code == 1
    assert "pip install 'playhead[openai]'" in answered.err
    assert sessions.list().total == 0


def test_another_agent_that_goes_on_is_told_once_and_remembered_by_name_alone(
    cli: CommandLine, sessions: Sessions, mine: Path
) -> None:
    cli("run", "hello", "--agent", "mine_of_a_test:reply")
    changed = cli("run", "hello", "--session", "@last")
    same = cli("run", "hello", "--session", "@last")
    state = sessions.get("@last").state

    assert "This session was last answered by mine_of_a_test:reply; you are going on with built-in." in changed.err
    assert "last answered" not in same.err
    assert state == {"agent:command-line": {"answered_by": "built-in"}}


def test_nothing_is_imported_because_a_session_says_so(cli: CommandLine, sessions: Sessions, mine: Path) -> None:
    (mine / "trap_of_a_test.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    sessions.create("named-0001", config={"answered_by": "trap_of_a_test:agent"}).close()
    answered = cli("run", "hello", "--session", "named-0001")

    assert answered.code == 0
    assert "last answered by trap_of_a_test:agent" in answered.err
    assert "trap_of_a_test" not in sys.modules


@pytest.mark.parametrize(
    ("state", "started", "name"),
    [
        ({"agent:command-line": {"answered_by": "b"}}, {"config": {"answered_by": "a"}}, "b"),
        ({}, {"config": {"answered_by": "a"}, "origin": "claude-code"}, "a"),
        ({}, {"origin": "claude-code"}, "claude-code"),
        ({"agent:command-line": {"answered_by": 7}}, {"config": "x"}, None),
        ({}, {}, None),
    ],
)
def test_who_answered_last_is_read_without_trusting_it(
    state: dict[str, dict[str, object]], started: dict[str, object], name: str | None
) -> None:
    assert last_answered_by(state, started) == name


def test_the_note_about_another_agent_is_safe_to_show() -> None:
    note = goes_on_note("evil\x1b[2J\nname", "built-in")

    assert note is not None
    assert json.dumps(note).count("\\u001b") == 0
    assert "\n" not in note


@pytest.mark.parametrize(
    ("environment", "linked", "zone"),
    [
        ({"TZ": "Asia/Tokyo"}, "/usr/share/zoneinfo/Europe/Berlin", "Asia/Tokyo"),
        ({"TZ": ":Asia/Tokyo"}, None, "Asia/Tokyo"),
        ({}, "/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"),
        ({"TZ": "../../etc/passwd"}, "/elsewhere", "UTC"),
        ({"TZ": "CET-1CEST,M3.5.0"}, None, "UTC"),
        ({}, None, "UTC"),
    ],
)
def test_the_time_zone_is_what_the_machine_says(
    tmp_path: Path, environment: dict[str, str], linked: str | None, zone: str
) -> None:
    link = tmp_path / "localtime"
    if linked is not None:
        link.symlink_to(linked)

    assert local_zone(environment, link=link) == zone


def test_the_built_in_agent_answers_from_a_folder_of_documents(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("Green tea steeps for three minutes.\n", encoding="utf-8")
    by_flag = cli("run", "How long does green tea steep?", "--documents", str(tmp_path), "--no-session")
    by_setting = cli("run", "green tea", "--no-session", PLAYHEAD_DOCUMENTS=str(tmp_path))

    assert by_flag.code == by_setting.code == 0
    assert "Green tea steeps for three minutes." in by_flag.out and "tea.md:1" in by_flag.out
    assert "tea.md:1" in by_setting.out


def test_a_folder_that_takes_long_to_read_is_told_first(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.agents.documents.folder.FILE_BYTES_MIN", 5_000_000)
    (tmp_path / "tea.md").write_text("Green tea steeps for three minutes.\n", encoding="utf-8")
    answered = cli("run", "green tea", "--documents", str(tmp_path), "--no-session")

    assert f"Reading 1 file of {tmp_path} first." in answered.err
    assert "tea.md:1" in answered.out


def test_a_model_looks_things_up_in_a_folder_of_documents(cli: CommandLine, tmp_path: Path) -> None:
    pytest.importorskip("openai", reason="the openai extra is not installed")
    from tests.agents.fake_endpoint import FakeEndpoint, calls, says

    (tmp_path / "tea.md").write_text("Green tea steeps for three minutes.\n", encoding="utf-8")
    asks = calls(("call_1", "search_documents", '{"query": "green tea"}'))
    with FakeEndpoint(asks, says("Three minutes.")) as endpoint:
        options = ["--model", "fake-1", "--base-url", endpoint.url, "--documents", str(tmp_path)]
        answered = cli("run", "How long?", *options, PLAYHEAD_API_KEY="k")
        received = endpoint.received
    offered = {tool["function"]["name"] for tool in received[0].body["tools"]}

    assert (answered.code, answered.out) == (0, "Three minutes.\n")
    assert {"search_documents", "delegate"} <= offered
    assert "set_timer" not in offered  # Nobody waits for it once the answer is there.
    assert "steeps for three minutes" in json.dumps(received[1].messages)


KEY = "sk-of-a-test-0123456789abcdef"


def test_a_model_answers_with_the_key_of_the_environment_which_is_kept_nowhere(
    cli: CommandLine, sessions: Sessions, tmp_home: Path, tmp_path: Path
) -> None:
    pytest.importorskip("openai", reason="the openai extra is not installed")
    from tests.agents.fake_endpoint import FakeEndpoint, says

    (tmp_path / "brief.txt").write_text("Be brief.", encoding="utf-8")
    with FakeEndpoint(says("Four ", "minutes."), says("Three.")) as endpoint:
        options = ["--model", "fake-1", "--base-url", endpoint.url, "--instructions", f"@{tmp_path / 'brief.txt'}"]
        first = cli("run", "How long?", *options, PLAYHEAD_API_KEY=KEY, OPENAI_API_KEY="sk-another")
        second = cli("chat", "--session", "@last", *options, text="And green tea?\n", OPENAI_API_KEY=KEY)
        received = endpoint.received
    kept = b"".join(file.read_bytes() for file in tmp_home.rglob("*") if file.is_file())

    assert (first.code, first.out) == (0, "Four minutes.\n")
    assert (second.code, second.out) == (0, "Three.\n")
    assert [request.headers["authorization"] for request in received] == [f"Bearer {KEY}"] * 2
    assert received[0].messages[0] == {"role": "system", "content": "Be brief."}
    assert sessions.get("@last").event(1).body["config"] == {"answered_by": "fake-1"}
    assert KEY.encode() not in kept and b"sk-another" not in kept


def test_a_model_that_refuses_is_told_in_one_line_without_the_key(cli: CommandLine, sessions: Sessions) -> None:
    pytest.importorskip("openai", reason="the openai extra is not installed")
    from tests.agents.fake_endpoint import FakeEndpoint, refuses

    with FakeEndpoint(refuses(401, f"Incorrect API key provided: {KEY}")) as endpoint:
        answered = cli("run", "hello", "--model", "fake-1", "--base-url", endpoint.url, "--debug", PLAYHEAD_API_KEY=KEY)
    ended = sessions.get("@last").events(kinds=["turn_ended"])

    assert answered.code == 1
    assert "error: " in answered.err
    assert KEY not in answered.out + answered.err
    assert ended[-1].body["status"] == "failed"
    assert KEY not in json.dumps(ended[-1].body)


def test_a_wait_for_a_model_is_told_on_stderr(cli: CommandLine) -> None:
    pytest.importorskip("openai", reason="the openai extra is not installed")
    from tests.agents.fake_endpoint import FakeEndpoint, refuses, says

    with FakeEndpoint(refuses(429, headers={"Retry-After": "0.01"}), says("Four minutes.")) as endpoint:
        answered = cli("run", "hello", "--model", "fake-1", "--base-url", endpoint.url, "--no-session")

    assert (answered.code, answered.out) == (0, "Four minutes.\n")
    assert "takes no more requests for now (429); waiting 0.01 s, as it asks (attempt 2 of 4)." in answered.err


def test_an_agent_of_pydantic_ai_answers(cli: CommandLine, sessions: Sessions, mine: Path) -> None:
    pytest.importorskip("pydantic_ai", reason="the pydantic-ai extra is not installed")
    source = """
from pydantic_ai import Agent, Tool
from pydantic_ai.models.test import TestModel

agent = Agent(TestModel(custom_output_text="from pydantic"))
tool = Tool(lambda: "x", name="x")
"""
    (mine / "pydantic_of_a_test.py").write_text(source, encoding="utf-8")
    answered = cli("run", "hello", "--agent", "pydantic_of_a_test:agent")
    refused = cli("run", "hello", "--agent", "pydantic_of_a_test:tool")

    assert (answered.code, answered.out) == (0, "from pydantic\n")
    assert sessions.get("@last").conversation()[-1].text == "from pydantic"
    assert refused.code == 2
    assert "is something of Pydantic AI, but no agent" in refused.err


# What an agent of one's own does wrong.

RAISING = """
import asyncio

async def boom(request, turn):
    await turn.stream("It begins")
    raise ValueError("boom")

async def pipe(request, turn):
    raise BrokenPipeError("the tool went away")

async def absent(request, turn):
    open("/no/such/file")

async def group(request, turn):
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(boom(request, turn))

async def misnaming(request, turn):
    await request.sessions.get("no-such-session")

async def stopping(request, turn):
    raise asyncio.CancelledError

async def exiting(request, turn):
    raise SystemExit(3)

async def returning(request, turn):
    return "The answer."

class Yielding:
    name = "yielding"
    async def answer(self, request, turn):
        yield 7

yielding = Yielding()
"""


@pytest.mark.parametrize(
    ("name", "told", "where"),
    [
        ("boom", "raising_of_a_test:boom failed: ValueError: boom", 'raise ValueError("boom")'),
        ("pipe", "raising_of_a_test:pipe failed: BrokenPipeError: the tool went away", "raise BrokenPipeError"),
        ("absent", "raising_of_a_test:absent failed: FileNotFoundError: ", 'open("/no/such/file")'),
        ("group", "raising_of_a_test:group failed: ValueError: boom", 'raise ValueError("boom")'),
        ("misnaming", "no session 'no-such-session'", 'get("no-such-session")'),
        (
            "stopping",
            "raising_of_a_test:stopping failed: RuntimeError: it was cancelled",
            "raise asyncio.CancelledError",
        ),
        ("exiting", "raising_of_a_test:exiting failed: RuntimeError: it called sys.exit(3)", "raise SystemExit(3)"),
        ("returning", "raising_of_a_test:returning failed: TypeError: returning returned text but said nothing", ""),
        ("yielding", "raising_of_a_test:yielding failed: TypeError: it yields text, piece by piece, and not int", ""),
    ],
)
@pytest.mark.parametrize("command", ["run", "chat"])
def test_what_an_agent_raises_is_told_as_its_own_with_its_place(
    cli: CommandLine, sessions: Sessions, mine: Path, command: str, name: str, told: str, where: str
) -> None:
    (mine / "raising_of_a_test.py").write_text(RAISING, encoding="utf-8")
    answered = cli(command, "--agent", f"raising_of_a_test:{name}", text="hello\n")
    session = sessions.get("@last")
    statuses = [event.body["status"] for event in session.events(kinds=["turn_ended"])]

    assert answered.code == 1
    assert f"error: {told}" in answered.err
    assert where in answered.err
    assert ("raising_of_a_test.py, line " in answered.err) == bool(where)
    assert "mistake in Playhead" not in answered.err and "Traceback" not in answered.err
    assert statuses == ["failed"]


def test_the_traceback_of_an_agents_error_is_there_with_debug(cli: CommandLine, mine: Path) -> None:
    (mine / "raising_of_a_test.py").write_text(RAISING, encoding="utf-8")
    answered = cli("run", "hello", "--agent", "raising_of_a_test:boom", "--debug")

    assert "Traceback" in answered.err
    assert "It was raised in the agent raising_of_a_test:boom." in answered.err
    assert "error: raising_of_a_test:boom failed: ValueError: boom" in answered.err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import sys\nsys.exit(4)", "exiting_of_a_test cannot be imported: it calls sys.exit(4)"),
        ("class E(BaseException): pass\nraise E('out')", "exiting_of_a_test cannot be imported: E: out"),
        (
            "def __getattr__(name):\n    raise OSError('not now')",
            "exiting_of_a_test:agent cannot be looked at: OSError: not now",
        ),
        (
            "class A:\n    @property\n    def answer(self): raise SystemExit\nagent = A()",
            "exiting_of_a_test:agent cannot be looked at: it calls sys.exit(None)",
        ),
    ],
)
def test_a_module_that_ends_the_program_is_told_as_any_that_fails(
    cli: CommandLine, sessions: Sessions, mine: Path, source: str, said: str
) -> None:
    (mine / "exiting_of_a_test.py").write_text(source, encoding="utf-8")
    answered = cli("run", "hello", "--agent", "exiting_of_a_test:agent")

    assert answered.code == 1
    assert f"error: {said}" in answered.err
    assert "exiting_of_a_test.py, line " in answered.err
    assert sessions.list().total == 0


@pytest.mark.parametrize("option", ["--agent", "--model", "--base-url", "--documents"])
@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_value_is_refused_and_chooses_nothing_else(
    cli: CommandLine, sessions: Sessions, option: str, value: str
) -> None:
    pytest.importorskip("openai", reason="the openai extra is not installed")
    options = ["--model", "m"] if option in ("--base-url", "--documents") else []
    answered = cli("run", "hello", *options, option, value, OPENAI_API_KEY=KEY)

    assert answered.code == 2
    assert answered.err.startswith(f"error: {option} ")
    assert "empty" in answered.err
    assert sessions.list().total == 0


@pytest.mark.parametrize("name", ["blocked", "stubborn", "stubborn_object", "threaded"])
def test_ctrl_c_twice_leaves_whatever_the_agent_does(sessions: Sessions, name: str) -> None:
    """C-16. An agent that blocks, that does not let itself be cancelled, or that waits for a thread."""
    agent = f"tests.cli.mean_agents:{name}"
    begun = time.monotonic()
    shown = in_a_terminal("run", "hello", "--agent", agent, typed=[("It begins", "\x03"), ("^C", "\x03")])
    took_s = time.monotonic() - begun
    session = sessions.get("@last")

    assert shown.code == 130
    assert took_s < 5
    assert all(word not in shown.shown for word in ("mistake", "Traceback", "Exception ignored", "destroyed"))
    assert session.conversation()[-1].text == "It begins."
    assert session.event(session.seq).body["status"] == "cancelled"


@pytest.mark.parametrize(("name", "code", "status"), [("exiting", 1, "failed"), ("interrupting", 130, "cancelled")])
def test_an_agent_that_ends_the_program_ends_its_turn(
    cli: CommandLine, sessions: Sessions, name: str, code: int, status: str
) -> None:
    answered = cli("run", "hello", "--agent", f"tests.cli.mean_agents:{name}")
    session = sessions.get("@last")

    assert answered.code == code
    assert "mistake in Playhead" not in answered.err
    assert session.conversation()[-1].text == "It begins."
    assert session.event(session.seq).body["status"] == status


def test_a_current_folder_that_is_gone_is_named_as_that(tmp_home: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = (
        "import os, sys; os.rmdir(os.getcwd()); from playhead._entry import main; sys.argv[1:] = ['list']; "
        "sys.exit(main())"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=gone, capture_output=True, text=True, timeout=60, env=environment)

    assert done.returncode == 1
    assert done.stderr == "error: the current folder is gone; change to another one and run it again\n"


def test_what_goes_wrong_in_an_agent_of_pydantic_ai_is_told_as_its_own(
    cli: CommandLine, sessions: Sessions, mine: Path
) -> None:
    pytest.importorskip("pydantic_ai", reason="the pydantic-ai extra is not installed")
    source = """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

agent, bare = Agent(TestModel()), Agent()

@agent.tool_plain
def kettle() -> int:
    raise ValueError("no water")
"""
    (mine / "pydantic_of_a_test.py").write_text(source, encoding="utf-8")
    tool = cli("run", "hello", "--agent", "pydantic_of_a_test:agent")
    bare = cli("run", "hello", "--agent", "pydantic_of_a_test:bare")

    assert (tool.code, bare.code) == (1, 1)
    assert "error: pydantic_of_a_test:agent failed: ValueError: no water" in tool.err
    assert 'raise ValueError("no water")' in tool.err
    assert "error: pydantic_of_a_test:bare failed: UserError: " in bare.err
    assert "mistake in Playhead" not in tool.err + bare.err
