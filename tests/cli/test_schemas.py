"""`--json` prints what docs/schemas says, field for field."""

import json
from pathlib import Path
from typing import Any

import pytest

from playhead import Sessions
from tests.cli.conftest import CommandLine
from tests.cli.json_schema import problems
from tests.conftest import PROJECT

SCHEMAS = PROJECT / "docs" / "schemas"

CALLS = {
    "list": [
        ["list"],
        ["list", "-n", "1"],
        ["list", "--refresh"],
        ["list", "--status", "archived"],
        ["list", "--trashed"],
    ],
    "show": [
        ["show", "upload-0001"],
        ["show", "upload-0001", "--agent", "coordinator/researcher:1"],
        ["show", "hostile-0001"],
        ["show", "imported-0001"],
        ["show", "upload-0001", "--tree"],
        ["show", "upload-0001", "--event", "6"],
    ],
    "search": [["search", "timeout limit"], ["search", "connection", "-C", "2"], ["search", "xylophone"]],
    "timeline": [["timeline", "upload-0001"], ["timeline", "hostile-0001", "--last", "2"]],
    "diff": [["diff", "upload-0001", "hostile-0001"], ["diff", "upload-0001#9", "upload-0001"]],
    "run": [["run", "hello"], ["run", "hello", "--session", "upload-0001"], ["run", "hello", "--no-session"]],
    "resume": [["resume", "upload-0001"], ["resume", "waiting-0001"], ["resume", "upload-0001", "--fork"]],
    "fork": [["fork", "upload-0001"], ["fork", "upload-0001", "--turn", "1"]],
    "rewind": [["rewind", "upload-0001", "--to", "2", "--dry-run"], ["rewind", "upload-0001", "--to", "1"]],
    "verify": [["verify", "upload-0001"], ["verify", "--all"]],
    "index": [["index"], ["index", "rebuild", "upload-0001"]],
    "doctor": [["doctor"], ["doctor", "--deep"], ["doctor", "--fix"]],
    "db": [["db", "path"], ["db", "check"], ["db", "backup", "copy-of-the-store", "--force"]],
    "import": [["import"], ["import", "--dry-run"], ["import"]],
    "title": [["title", "upload-0001"], ["title", "upload-0001", "Timeouts"]],
    "tag": [["tag", "upload-0001", "imported-0001", "--add", "ci"]],
    "pin": [["pin", "upload-0001"], ["pin", "upload-0001", "--off"]],
    "archive": [["archive", "upload-0001"], ["archive", "upload-0001", "--undo"]],
    "rm": [["rm", "upload-0001", "-n"], ["rm", "upload-0001"], ["rm", "broken-0001"], ["rm", "--empty-trash", "-y"]],
    "restore": [["restore"]],
    "stats": [["stats"], ["stats", "--overview"], *(["stats", "--by", by] for by in ("model", "agent", "day", "tool"))],
    "config": [["config"], ["config", "set", "model", "m"], ["config", "get", "model"], ["config", "path"]],
    "completion": [["completion", "bash"]],
    "export": [["export", "upload-0001", "-o", "upload.jsonl"], ["export", "--all", "--redact", "-o", "all.md"]],
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_printed_is_what_the_schema_says(
    cli: CommandLine,
    sessions: Sessions,
    upload: str,
    hostile: str,
    claude_home: Path,
    store_url: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    sessions.ingest("imported-0001", [], at=1_785_585_600.0, started={"origin": "claude-code"})
    with sessions.create("waiting-0001") as waiting:
        body = {"interrupt": "int-1", "reason": "confirmation", "question": "Delete it?", "choices": ["yes", 7]}
        waiting.append("interrupt_requested", body, agent="coordinator")
    (Path(store_url.removeprefix("bundles:")) / "broken-0001.playhead").write_bytes(b"this is no database" * 100)
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    found = {
        " ".join(call): problems(cli(*call, "--json", CLAUDE_CONFIG_DIR=str(claude_home)).json, schema)
        for call in CALLS[name]
    }

    assert {call: wrong for call, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("file", sorted(SCHEMAS.glob("*.json")), ids=lambda file: file.stem)
def test_a_schema_belongs_to_a_command_and_describes_all_its_objects(file: Path) -> None:
    schema = json.loads(file.read_text(encoding="utf-8"))
    objects = schema["$defs"]

    assert file.stem in CALLS
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert [name for name, one in objects.items() if not one.get("description")] == []
    assert [name for name, one in objects.items() if set(one["required"]) != set(one["properties"])] == []


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"id": "a", "total": None, "rows": [{"x": 1}]}, []),
        ({"id": "a", "total": True, "rows": []}, ["$.total: True is not ['integer', 'null']"]),
        ({"id": "a", "total": 1}, ["$: rows is missing"]),
        ({"id": "a", "total": 1, "rows": [], "x": 1}, ["$: x is documented nowhere"]),
        ({"id": "a", "total": 1, "rows": [{"x": "y"}]}, ["$.rows[0].x: 'y' is not integer"]),
    ],
)
def test_the_check_sees_what_is_missing_undocumented_or_of_another_type(value: Any, found: list[str]) -> None:
    fields = {
        "id": {"type": "string"},
        "total": {"type": ["integer", "null"]},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
    }
    row = {"type": "object", "additionalProperties": {"type": "integer"}}
    schema = {"type": "object", "properties": fields, "required": list(fields), "$defs": {"row": row}}

    assert problems(value, schema) == found
