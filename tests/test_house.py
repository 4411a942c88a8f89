"""The rules of the house that neither the type checker nor the import linter can see.

Each rule is a function from source text to the places that break it. A rule is tested twice: on a small piece of
code that breaks it, so that the rule itself is known to work, and on the project.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.conftest import PROJECT

PACKAGE = PROJECT / "playhead"
# The command line talks to a terminal, and so does the console script that stands before it.
TERMINAL = {"cli", "_entry.py"}
# These layers make up the public page and are not made from it.
BELOW_THE_PUBLIC_PAGE = {"errors.py", "model", "views", "stores", "search", "features", "session.py", "aio.py"}
# What an import of the core must not cost, and the second SQLite library that it must not bring into the process.
HEAVY_OR_FOREIGN = {"fastapi", "google.adk", "numpy", "psycopg", "pydantic", "rich", "sqlite3", "typer"}

Rule = Callable[[ast.Module], list[str]]


def surroundings_read(tree: ast.Module) -> list[str]:
    """Return each use of the environment, the home directory or the terminal."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "environb" | "getenv" | "getlogin" as name):
                found.append(_at(node, f"os.{name}"))
            case ast.Attribute(value=ast.Name(id="sys"), attr="stdin" | "stdout" | "stderr" | "argv" as name):
                found.append(_at(node, f"sys.{name}"))
            case ast.Attribute(attr="expanduser" | "expandvars" | "get_terminal_size" as name):
                found.append(_at(node, name))
            case ast.Attribute(value=ast.Name(id=owner), attr="home") if owner.endswith("Path"):
                found.append(_at(node, f"{owner}.home"))
            case ast.Call(func=ast.Name(id="print" | "input" | "breakpoint" as name)):
                found.append(_at(node, f"{name}()"))
            case ast.ImportFrom(module="os" | "sys" | "os.path" | "shutil" as module, names=names):
                hidden = {"environ", "getenv", "stdin", "stdout", "stderr", "argv", "expanduser", "get_terminal_size"}
                found += [_at(node, f"{module}.{alias.name}") for alias in names if alias.name in hidden]
            case ast.Import(names=names) if any(alias.name in {"getpass", "curses", "readline"} for alias in names):
                found.append(_at(node, names[0].name))
    return found


def clocks_read(tree: ast.Module) -> list[str]:
    """Return each question for the time that importing `datetime` for its arithmetic makes possible."""
    return [
        _at(node, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}
    ]


# Either case of SQL, but not a sentence that begins with a capital: "Delete from the list what you do not need."
_SQL = re.compile(
    r"\s*(?:"
    r"(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|ATTACH|WITH)\s"
    r"|select\s.*\sfrom\s|insert\s+(?:or\s+\w+\s+)?into\s|replace\s+into\s|update\s+\S+\s+set\s|delete\s+from\s"
    r"|(?:create|drop|alter)\s+(?:temp\s+|virtual\s+|unique\s+)*(?:table|index|trigger|view)\s"
    r")",
    re.DOTALL,
)


def sql_written(tree: ast.Module) -> list[str]:
    """Return each string that is a query. Pragmas and the frames of a transaction are no queries."""
    return [
        _at(node, repr(node.value.strip()[:40]))
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SQL.match(node.value)
    ]


def docstring_missing(tree: ast.Module) -> list[str]:
    """Return one entry if the module does not begin by saying its job."""
    return [] if (ast.get_docstring(tree) or "").strip() else ["line 1: no docstring"]


def public_page_imported(tree: ast.Module) -> list[str]:
    """Return each import of the public page itself; `from playhead import errors` names a module and is none."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if any(alias.name == "playhead" for alias in names):
                found.append(_at(node, "import playhead"))
            case ast.ImportFrom(module="playhead", level=0, names=names):
                found += [_at(node, alias.name) for alias in names if not _is_module(alias.name)]
    return found


def data_run(tree: ast.Module) -> list[str]:
    """Return each place where data could become code: what unpickles, evaluates, or imports a module by its name."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found += [_at(node, alias.name) for alias in names if alias.name.split(".")[0] in _UNPICKLING]
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in _UNPICKLING:
                found.append(_at(node, module))
            case ast.ImportFrom(module="importlib", names=names) if any(one.name == "import_module" for one in names):
                found.append(_at(node, "import_module"))
            case ast.Attribute(attr="import_module"):
                found.append(_at(node, "import_module"))
            case ast.Call(func=ast.Name(id="eval" | "exec" | "compile" | "__import__" as name)):
                found.append(_at(node, f"{name}()"))
    return found


_UNPICKLING = {"code", "dill", "marshal", "pickle", "runpy", "shelve"}


@pytest.mark.parametrize(
    ("rule", "breaking", "keeping"),
    [
        (surroundings_read, "import os\nhome = os.environ['HOME']", "import os\nos.replace('a', 'b')"),
        (surroundings_read, "import os\nhome = os.getenv('HOME')", "os = 1"),
        (surroundings_read, "from os import environ", "from os import replace"),
        (surroundings_read, "folder = Path.home()", "folder = Path.cwd()"),
        (surroundings_read, "folder = pathlib.Path('~').expanduser()", "folder = Path('a').resolve()"),
        (surroundings_read, "print('saved')", "text = 'print()'"),
        (surroundings_read, "name = input()", "input_tokens = 3"),
        (surroundings_read, "import sys\nsys.stderr.write('saved')", "import sys\nsys.intern('a')"),
        (clocks_read, "at = datetime.now(UTC)", "at = datetime.fromtimestamp(seconds, UTC)"),
        (sql_written, "run('SELECT seq FROM event')", "run('PRAGMA user_version')"),
        (sql_written, "run('select seq from event')", "say('Select a session from the list.')"),
        (sql_written, "run(f'DELETE FROM {table}')", "say('Delete the session.')"),
        (sql_written, "run('''\n  create virtual table t using fts5(a)''')", "run('BEGIN IMMEDIATE')"),
        (sql_written, "run('insert or ignore into t values (1)')", "run('ROLLBACK')"),
        (docstring_missing, "x = 1", "'''Count.'''\nx = 1"),
        (docstring_missing, "", "'''Nothing yet, and why.'''"),
        (data_run, "import pickle", "from importlib import resources"),
        (data_run, "from marshal import loads", "import msgspec.json"),
        (data_run, "import importlib\nimportlib.import_module(name)", "import importlib.util"),
        (data_run, "from importlib import import_module", "re.compile('a')"),
        (data_run, "eval(text)", "evaluate(text)"),
        (data_run, "__import__(name)", "text = '__import__(name)'"),
        (public_page_imported, "from playhead import Session", "from playhead import errors"),
        (public_page_imported, "import playhead", "import playhead.errors"),
    ],
)
def test_each_rule_sees_what_breaks_it_and_nothing_else(rule: Rule, breaking: str, keeping: str) -> None:
    found, spared = rule(ast.parse(breaking)), rule(ast.parse(keeping))

    assert found
    assert spared == []


def test_the_library_reads_no_environment_home_directory_or_terminal() -> None:
    found = _broken(surroundings_read, [file for file in _sources(PACKAGE) if _part(file) not in TERMINAL])

    assert found == []


def test_what_a_session_is_and_how_it_is_shown_asks_no_clock() -> None:
    found = _broken(clocks_read, [*_sources(PACKAGE / "model"), *_sources(PACKAGE / "views")])

    assert found == []


def test_every_module_begins_by_saying_its_job() -> None:
    found = _broken(docstring_missing, _sources(PROJECT))

    assert found == []


def test_sql_is_written_only_in_sql_files_of_the_stores() -> None:
    in_python = _broken(sql_written, _sources(PACKAGE))
    elsewhere = [_name(file) for file in PACKAGE.rglob("*.sql") if _part(file) != "stores"]

    assert in_python == []
    assert elsewhere == []


def test_no_data_becomes_code() -> None:
    """S8, K9. The command line loads its own commands by name; those names stand in its code."""
    found = _broken(data_run, [file for file in _sources(PACKAGE) if _part(file) not in TERMINAL])

    assert found == []


def test_what_makes_up_the_public_page_does_not_import_it() -> None:
    found = _broken(public_page_imported, [file for file in _sources(PACKAGE) if _part(file) in BELOW_THE_PUBLIC_PAGE])

    assert found == []


def test_importing_playhead_loads_no_optional_package_and_no_second_sqlite() -> None:
    """S3."""
    program = "import json, sys, playhead; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    loaded = set(json.loads(answer.stdout))

    assert "playhead" in loaded
    assert loaded & HEAVY_OR_FOREIGN == set()


def test_a_wheel_carries_the_sql_and_the_mark_that_it_is_typed() -> None:
    packed = {file.distribution_path for file in WheelBuilder(str(PROJECT)).recurse_included_files()}
    needed = {_name(file) for file in [*PACKAGE.rglob("*.sql"), *_sources(PACKAGE), PACKAGE / "py.typed"]}

    assert needed - packed == set()
    assert {path for path in packed if not path.startswith("playhead/")} == set()


def test_no_file_names_a_package_registry_or_a_folder_of_one_machine() -> None:
    # Written in pieces, since this file is searched as well.
    hosts = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "crates" + ".io", "proxy.golang" + ".org"]
    an_index = r"https?://\S+/sim" + r"ple\b"
    a_workplace = r"(?<![\w.~%-])/(?:wo" + r"rk|fa" + r"rm)/"
    unwanted = re.compile("|".join([*map(re.escape, hosts), an_index, a_workplace]))
    found = [
        f"{_name(file)}:{number}: {line.strip()[:80]}"
        for file in _own_files(PROJECT)
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if unwanted.search(line)
    ]

    assert found == []


def _sources(folder: Path) -> list[Path]:
    return [file for file in _own_files(folder) if file.suffix == ".py"]


def _own_files(folder: Path) -> Iterator[Path]:
    """Yield the project's own files under a folder: what is neither hidden (but for CI) nor made by a tool."""
    made = {"build", "dist", "node_modules", "__pycache__"}
    shown = {".ci", ".github", ".gitignore"}
    for file in sorted(folder.iterdir()):
        if file.name in made or (file.name.startswith(".") and file.name not in shown):
            continue
        if file.is_dir():
            yield from _own_files(file)
        else:
            yield file


def _broken(rule: Rule, files: list[Path]) -> list[str]:
    trees = {file: ast.parse(file.read_text(encoding="utf-8"), filename=str(file)) for file in files}
    return [f"{_name(file)}, {place}" for file, tree in trees.items() for place in rule(tree)]


def _name(file: Path) -> str:
    return file.relative_to(PROJECT).as_posix()


def _part(file: Path) -> str:
    """Return the layer of a file of the package: the first name below playhead/."""
    return file.relative_to(PACKAGE).parts[0]


def _is_module(name: str) -> bool:
    return (PACKAGE / f"{name}.py").is_file() or (PACKAGE / name).is_dir()


def _at(node: ast.AST, what: str) -> str:
    return f"line {getattr(node, 'lineno', '?')}: {what}"
