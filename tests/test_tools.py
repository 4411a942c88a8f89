"""What stands around the library: the console script without its extra, the check of Python, the coverage gate."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from playhead import _entry
from tests.conftest import PROJECT
from tools.coverage_gate import main as gate, measure
from tools.python_check import problem


def test_without_the_cli_extra_the_command_says_in_one_sentence_what_to_install(tmp_path: Path) -> None:
    # A finder that knows no typer stands in for an environment that has none.
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'typer' else find(name, package)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", "import sitecustomize, sys; from playhead._entry import main; sys.exit(main())"],
        cwd=PROJECT,
        env={"PYTHONPATH": f"{tmp_path}"},
        capture_output=True,
        text=True,
    )

    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr == (
        'The playhead command needs typer, which a plain install leaves out: run pip install "playhead[cli]".\n'
    )


def test_the_console_script_is_the_guarded_entry_point() -> None:
    scripts = re.search(r"\[project\.scripts\]\n(.*?)\n\n", (PROJECT / "pyproject.toml").read_text(), re.DOTALL)

    assert scripts is not None
    assert scripts[1] == f'playhead = "{_entry.__name__}:{_entry.main.__name__}"'


@pytest.mark.parametrize(
    ("version", "absent", "words"),
    [
        ((3, 9, 18), [], ["3.11 or newer", "this is 3.9", "make PYTHON="]),
        ((3, 11, 2), ["ensurepip"], ["without ensurepip", "python3.11-venv"]),
        ((3, 12, 1), ["venv", "ensurepip"], ["without venv and ensurepip", "python3.12-venv"]),
    ],
)
def test_a_python_that_will_not_do_is_named_with_the_way_out(
    version: tuple[int, ...], absent: list[str], words: list[str]
) -> None:
    sentence = problem(version, absent)

    assert [word for word in words if word not in sentence] == []


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 13, 1), (4, 0, 0)])
def test_a_whole_python_since_3_11_will_do(version: tuple[int, ...]) -> None:
    assert problem(version, []) == ""


def _file(
    branches: tuple[int, int], lines: tuple[int, int], missing_lines: list[int], missing_branches: list[list[int]]
) -> dict[str, Any]:
    return {
        "summary": {
            "num_branches": branches[1],
            "covered_branches": branches[0],
            "num_statements": lines[1],
            "covered_lines": lines[0],
        },
        "missing_lines": missing_lines,
        "missing_branches": missing_branches,
    }


def _report(tmp_path: Path, files: dict[str, Any]) -> str:
    path = tmp_path / "coverage.json"
    path.write_text(json.dumps({"files": files}), encoding="utf-8")
    return str(path)


def test_the_gate_lets_well_covered_folders_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = _report(
        tmp_path,
        {
            "playhead/model/path.py": _file((19, 20), (50, 50), [], [[7, 9]]),
            "playhead/cli/main.py": _file((0, 40), (0, 90), [1], []),
        },
    )
    code = gate([report, "playhead/model"])

    assert code == 0
    assert capsys.readouterr().out == "playhead/model: 95.0 % of 20 branches, 100.0 % of 50 lines\n"


def test_the_gate_names_the_lines_and_branches_that_no_test_reaches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = _report(
        tmp_path,
        {
            "playhead/model/path.py": _file((10, 10), (50, 50), [], []),
            "playhead/views/fold.py": _file((8, 10), (40, 44), [12, 13, 14, 30], [[11, 12], [13, 30], [29, -20]]),
        },
    )
    code = gate([report, "playhead/model", "playhead/views"])
    output = capsys.readouterr().out

    assert code == 1
    assert "playhead/model: 100.0 %" in output
    assert "playhead/views: 80.0 % of 10 branches" in output
    assert "playhead/views/fold.py: lines 12-14, 30; branches 11->12, 29->exit" in output


def test_each_folder_has_to_reach_the_threshold_by_itself(tmp_path: Path) -> None:
    report = _report(
        tmp_path,
        {
            "playhead/model/path.py": _file((990, 990), (990, 990), [], []),
            "playhead/views/fold.py": _file((9, 10), (10, 10), [], [[1, 2]]),
        },
    )

    assert gate([report, "playhead/model", "playhead/views"]) == 1


def test_a_file_without_branches_that_no_test_imports_still_counts(tmp_path: Path) -> None:
    report = _report(tmp_path, {"playhead/views/state.py": _file((0, 0), (0, 12), [1], [])})

    assert gate([report, "playhead/views"]) == 1


def test_a_folder_that_the_report_does_not_know_is_no_pass() -> None:
    with pytest.raises(ValueError, match="no file under playhead/views/"):
        measure({"files": {"playhead/views_old/fold.py": _file((1, 1), (1, 1), [], [])}}, "playhead/views")


def test_a_report_without_branches_is_no_pass() -> None:
    with pytest.raises(ValueError, match="without branches"):
        measure({"files": {"playhead/views/fold.py": {"summary": {"num_statements": 3}}}}, "playhead/views")
