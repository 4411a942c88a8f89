"""ChatGPT's export: its trees become branches, its tools calls and results, and a zip is not trusted."""

import json
import stat
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import playhead
from playhead import Sessions
from playhead.errors import ImportFailed
from playhead.formats import chatgpt
from playhead.formats.chatgpt import archive
from playhead.formats.imported import ImportedSession
from playhead.formats.importing import Imported, Purged, Silent, import_source
from playhead.views.conversation import Message

AT = 1_783_000_000.0
ID = "6869e1a0-0000-4000-8000-00000000000a"


def message(role: str, content: Any, at: float | None = AT, **fields: Any) -> dict[str, Any]:
    author = {"role": role, "name": fields.pop("name", None), "metadata": {}}
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    found = {"author": author, "create_time": at, "content": content, "status": "finished_successfully", "weight": 1.0}
    return found | {"recipient": "all", "metadata": {}} | fields


def node(parent: str | None, said: dict[str, Any] | None) -> dict[str, Any]:
    return {"parent": parent, "children": [], "message": said}


def conversation(nodes: Mapping[str, dict[str, Any]], current: str | None, **fields: Any) -> dict[str, Any]:
    mapping = {id: one | {"id": id, "children": list(one["children"])} for id, one in nodes.items()}
    for id, one in mapping.items():
        if one["parent"] in mapping:
            mapping[one["parent"]]["children"].append(id)
    found = {"conversation_id": ID, "title": "Flaky upload", "create_time": AT, "update_time": AT + 60}
    return found | {"mapping": mapping, "current_node": current} | fields


BASE = {
    "root": node(None, None),
    "system": node("root", message("system", "", None, metadata={"is_visually_hidden_from_conversation": True})),
    "q1": node("system", message("user", "Why does test_upload fail?")),
    "a1": node("q1", message("assistant", "It times out.", AT + 1, metadata={"model_slug": "gpt-5"})),
    "q2": node("a1", message("user", "And now?", AT + 2)),
    "a2": node("q2", message("assistant", "Raise the limit.", AT + 3)),
}


@pytest.fixture
def sessions() -> Sessions:
    """A store in memory."""
    return playhead.open("memory:")


def exported(folder: Path, *conversations: Any, name: str = "conversations.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(conversations), encoding="utf-8")
    return file


def only(path: Path) -> ImportedSession:
    (found,) = chatgpt.discover(path)
    session = chatgpt.read(found)
    assert session is not None
    return session


def bring_in(sessions: Sessions, path: Path) -> Imported | None:
    """Import the one conversation of an export."""
    (one,) = chatgpt.discover(path)
    return bring_in_one(sessions, one)


def bring_in_one(sessions: Sessions, one: chatgpt.Conversation) -> Imported | None:
    name = one.position_name
    found = import_source(sessions, one.path, lambda known: chatgpt.read(one, known), at=1.0, name=name)
    assert not isinstance(found, Purged)
    return None if isinstance(found, Silent) else found


def files_of(message: Message) -> list[str]:
    return [part["file_id"] for part in message.parts if part["type"] == "file"]


def texts(sessions: Sessions) -> list[str]:
    return [message.text for message in sessions.get(f"chatgpt.{ID}").conversation()]


def test_the_shown_path_is_the_live_one_and_other_answers_are_branches(tmp_path: Path, sessions: Sessions) -> None:
    nodes = BASE | {
        "a1b": node("q1", message("assistant", "It is the network.", AT + 5)),
        "q3": node("a1b", message("user", "Are you sure?", AT + 6)),
    }
    imported = bring_in(sessions, exported(tmp_path, conversation(nodes, "a2")))
    session = sessions.get(f"chatgpt.{ID}")
    shown = texts(sessions)
    other = next(branch for branch in session.branches() if not branch.is_current)
    session.seek(other.tip_seq)

    assert imported is not None
    assert imported.session.title == "Flaky upload"
    assert shown == ["Why does test_upload fail?", "It times out.", "And now?", "Raise the limit."]
    assert texts(sessions) == ["Why does test_upload fail?", "It is the network.", "Are you sure?"]
    assert session.turn_count == 2
    assert session.verify().problems == ()
    assert imported.session.counts.user_prompts == 3


def test_what_was_said_since_is_added_and_the_head_follows(tmp_path: Path, sessions: Sessions) -> None:
    bring_in(sessions, exported(tmp_path, conversation(BASE, "a2")))
    nodes = BASE | {"q2b": node("a1", message("user", "What else?", AT + 70))}
    grown = bring_in(sessions, exported(tmp_path, conversation(nodes, "q2b", update_time=AT + 70)))
    followed = texts(sessions)
    back = bring_in(sessions, exported(tmp_path, conversation(nodes, "a2", update_time=AT + 80)))
    again = bring_in(sessions, exported(tmp_path, conversation(nodes, "a2", update_time=AT + 80)))

    assert grown is not None
    assert (grown.added_count, grown.is_new) == (1, False)
    assert followed == ["Why does test_upload fail?", "It times out.", "What else?"]
    assert back is not None
    assert back.added_count == 0
    assert texts(sessions) == ["Why does test_upload fail?", "It times out.", "And now?", "Raise the limit."]
    assert again is None


def test_the_head_follows_nobody_who_went_on_here(tmp_path: Path, sessions: Sessions) -> None:
    bring_in(sessions, exported(tmp_path, conversation(BASE, "a2")))
    with sessions.get(f"chatgpt.{ID}").turn("A question of my own") as turn:
        turn.say("An answer here.")
    nodes = BASE | {"q3": node("a2", message("user", "And there?", AT + 70))}
    bring_in(sessions, exported(tmp_path, conversation(nodes, "q3", update_time=AT + 70)))
    bring_in(sessions, exported(tmp_path, conversation(nodes, "a1", update_time=AT + 90)))

    assert texts(sessions)[-2:] == ["A question of my own", "An answer here."]
    assert sessions.search("And there").hits != []


def test_following_does_not_make_an_old_conversation_the_one_last_active(tmp_path: Path, sessions: Sessions) -> None:
    bring_in(sessions, exported(tmp_path, conversation(BASE, "a2")))
    sessions.create("today")
    bring_in(sessions, exported(tmp_path, conversation(BASE, "a1", update_time=AT + 90)))

    assert texts(sessions)[-1] == "It times out."
    assert sessions.get("@last").id == "today"


def test_an_older_export_moves_nothing(tmp_path: Path, sessions: Sessions) -> None:
    nodes = BASE | {"q3": node("a2", message("user", "And there?", AT + 70))}
    bring_in(sessions, exported(tmp_path, conversation(nodes, "q3", update_time=AT + 70)))
    older = bring_in(sessions, exported(tmp_path, conversation(BASE, "a1", update_time=AT + 60)))

    assert older is not None
    assert older.added_count == 0
    assert texts(sessions)[-1] == "And there?"


def test_a_message_to_a_tool_is_a_call_and_what_the_tool_says_answers_it(tmp_path: Path) -> None:
    code = {"content_type": "code", "language": "unknown", "text": '{"search_query":[{"q":"upload"}]}'}
    quote = {"content_type": "tether_quote", "url": "https://example.com", "title": "t", "text": "Known since March."}
    nodes = BASE | {
        "call": node("a2", message("assistant", code, recipient="web.run")),
        "r1": node("call", message("tool", quote, name="web.run")),
        "r2": node("r1", message("tool", {"content_type": "system_error", "text": "timed out"}, name="web")),
        "py": node("r2", message("assistant", "print(1)", recipient="python")),
        "out": node("py", message("tool", {"content_type": "execution_output", "text": "1"}, name="python")),
    }
    session = only(exported(tmp_path, conversation(nodes, "out")))
    call, first, second, script, output = (event.body["parts"][0] for event in session.events[-5:])

    assert call == {
        "type": "tool_call",
        "id": "call",
        "name": "web.run",
        "arguments": {"search_query": [{"q": "upload"}]},
    }
    assert first == {"type": "tool_call_response", "name": "web.run", "id": "call", "response": "Known since March."}
    assert second == {"type": "tool_call_response", "name": "web", "response": "timed out", "is_error": True}
    assert (script["arguments"], output["id"]) == ("print(1)", "py")
    assert session.counts.tool_calls == 2


def test_what_chatgpt_wrote_for_itself_is_injected_and_empty_messages_are_notes(tmp_path: Path) -> None:
    context = {"content_type": "user_editable_context", "user_profile": "I am Ada.", "user_instructions": "Be brief."}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Limits", "content": "Let me see."}]}
    nodes = BASE | {
        "ctx": node("a2", message("user", context)),
        "hid": node("ctx", message("user", "hidden", metadata={"is_visually_hidden_from_conversation": True})),
        "sys": node("hid", message("system", "You are helpful.")),
        "think": node("sys", message("assistant", thoughts)),
        "recap": node("think", message("assistant", {"content_type": "reasoning_recap", "content": "Thought for 3s"})),
    }
    session = only(exported(tmp_path, conversation(nodes, "recap")))
    by_id = {event.id: event for event in session.events}

    assert [by_id[id].body.get("injected") for id in ("ctx", "hid", "sys", "q1")] == ["chatgpt"] * 3 + [None]
    assert by_id["system"].kind == by_id["recap"].kind == "note"
    assert by_id["recap"].body["text"] == "Thought for 3s"
    assert by_id["think"].body["parts"][0]["type"] == "reasoning"
    assert by_id["a1"].body["model"] == "gpt-5"
    assert session.counts.user_prompts == 2


def test_every_message_is_given_back_as_it_was(tmp_path: Path) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_0a", "width": 5, "metadata": None}
    spoken = {"content_type": "audio_transcription", "text": "Hello", "direction": "in"}
    contents: list[Any] = [
        "text",
        {"content_type": "multimodal_text", "parts": ["Look:", image, spoken, {"odd": 1}, None]},
        {"content_type": "code", "language": "python", "text": '{\n  "a": 1\n}'},
        {
            "content_type": "thoughts",
            "thoughts": [{"summary": "s", "content": "c", "chunks": []}, {"summary": "alone"}],
        },
        {"content_type": "reasoning_recap", "content": "Thought"},
        {"content_type": "user_editable_context", "user_profile": "p", "user_instructions": None},
        {"content_type": "tether_browsing_display", "result": "# 1", "summary": None},
        {"content_type": "unheard_of", "payload": [1, {"x": None}]},
        {"content_type": "text", "parts": ["one", "two"]},
        {"content_type": "text", "parts": []},
        None,
        "a string",
    ]
    said = [
        message(role, content, recipient=recipient, name="python", metadata={"attachments": [{"id": "file_0b"}]})
        for content in contents
        for role, recipient in [("user", "all"), ("assistant", "all"), ("assistant", "python"), ("tool", "all")]
    ]
    nodes = {f"n{index}": node(f"n{index - 1}" if index else None, one) for index, one in enumerate(said)}
    session = only(exported(tmp_path, conversation(nodes, None)))
    restored = {event.id: chatgpt.restore_message(event.body) for event in session.events}

    assert {id: one for id, one in restored.items() if one != nodes[id]["message"]} == {}
    assert len(restored) == len(nodes)


def test_a_damaged_tree_is_read_and_reported(tmp_path: Path, sessions: Sessions) -> None:
    nodes = BASE | {
        "lost": node("nowhere", message("user", "Out of nowhere", None)),
        "x": node("y", message("user", "round", "yesterday")),  # type: ignore[arg-type]
        "y": node("x", message("assistant", "and round", 1e30)),
        "self": node("self", message("user", "mine")),
        "odd": {"parent": 5, "children": "none", "message": "text"},
        "import-started": node("a2", message("user", "A name of ours", AT + 9)),
    }
    imported = bring_in(sessions, exported(tmp_path, conversation(nodes, "gone", title=None)))
    assert imported is not None
    session = sessions.get(f"chatgpt.{ID}")

    assert imported.session.title == "Why does test_upload fail?"
    assert [warning.partition(" (")[0] for warning in imported.session.warnings] == [
        "a message names a parent that is not there, and begins a branch of its own",
        "messages follow each other in a circle, which was cut",
        "the conversation stands at a message that is not there; its newest one was taken",
        "a time is impossible",
    ]
    assert imported.added_count == len(nodes) - 2
    assert texts(sessions)[-1] == "A name of ours"
    assert session.verify().problems == ()


IDS = [f"n{number}" for number in range(8)]
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["all", "python", "\ud800", "\0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "id", "type"]), inner),
    max_leaves=5,
)
CONTENTS = st.fixed_dictionaries(
    {"content_type": st.sampled_from(["text", "code", "thoughts", "reasoning_recap", "system_error"])},
    optional=dict.fromkeys(("parts", "thoughts", "text", "content", "user_profile"), ANYTHING),
)
MESSAGES = st.fixed_dictionaries(
    {"author": st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool", "system"])})},
    optional={"content": CONTENTS | ANYTHING, "recipient": ANYTHING, "metadata": ANYTHING, "create_time": ANYTHING},
)
NODES = st.dictionaries(
    st.sampled_from(IDS),
    st.fixed_dictionaries({"parent": st.sampled_from([*IDS, None, 5]), "children": ANYTHING, "message": MESSAGES}),
    min_size=1,
)


@given(NODES, st.sampled_from([*IDS, None]))
def test_whatever_an_export_holds_is_imported_once_and_given_back(nodes: dict[str, Any], current: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder, playhead.open("memory:") as sessions:
        file = exported(Path(folder), {"conversation_id": ID, "mapping": nodes, "current_node": current})
        first = bring_in(sessions, file)
        (one,) = chatgpt.discover(file)
        again = chatgpt.read(one)
        added = sessions.ingest(again.id, again.events, at=1.0).added_count if again else 0
        problems = sessions.verify(f"chatgpt.{ID}").problems if first else ()
    events = first.session.events if first else []
    changed = [event.id for event in events if chatgpt.restore_message(event.body) != nodes[event.id]["message"]]

    assert first is None or first.added_count == len(nodes)
    assert added == 0
    assert problems == ()
    assert changed == []


@pytest.mark.parametrize(
    "text",
    [
        '{"conversations": [%s]}',
        "\ufeff[%s]",
        '[%s, {"mapping": {}, "x": NaN}]',
        '[%s, {"title": "\\ud83d half", "mapping": {}}]',
    ],
    ids=["wrapped", "byte order mark", "NaN", "half a surrogate pair"],
)
def test_odd_files_of_conversations_are_read(tmp_path: Path, text: str) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(text % json.dumps(conversation(BASE, "a2")), encoding="utf-8")
    found = chatgpt.discover(file)
    session = chatgpt.read(found[0])

    assert chatgpt.recognised(file)
    assert session is not None
    assert session.id == f"chatgpt.{ID}"
    assert [chatgpt.read(one) for one in found[1:]] == [None] * (len(found) - 1)


def test_a_conversation_that_is_none_harms_no_other(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    file = exported(
        tmp_path, {"title": "empty"}, conversation(BASE, "a2"), 7, conversation({"a": node(None, deep)}, "a")
    )
    good, bad = [], []
    for one in chatgpt.discover(file):
        try:
            good.append(chatgpt.read(one))
        except ImportFailed as error:
            bad.append(str(error))

    assert [session.title for session in good if session] == ["Flaky upload"]
    assert [error.partition("conversation ")[2] for error in bad] == [
        "1 is left out: it has no messages",
        "3 is left out: it has no messages",
        "4 is left out: it is nested deeper than 200 levels",
    ]


def test_a_file_that_breaks_off_is_a_failure_that_says_where(tmp_path: Path) -> None:
    file = exported(tmp_path, conversation(BASE, "a2"), conversation(BASE, "a2"))
    file.write_bytes(file.read_bytes()[:-40])

    with pytest.raises(ImportFailed, match="conversation 2, at byte "):
        chatgpt.discover(file)


# The archive.


def zipped(folder: Path, files: Mapping[str, bytes], name: str = "export.zip") -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for entry, data in files.items():
            target.writestr(entry, data)
    return path


def data(*conversations: Any) -> bytes:
    return json.dumps(conversations).encode()


def test_a_zip_is_read_in_its_parts_with_what_was_attached(tmp_path: Path) -> None:
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-AbC", "width": 1}
    shown = {"content_type": "multimodal_text", "parts": [pointer, "What is this?"]}
    listed = {"attachments": [{"id": "file-AbC", "name": "shot.png"}, {"id": "file-Doc", "name": "log.txt"}]}
    nodes = BASE | {
        "pic": node("a2", message("user", shown, metadata=listed)),
        "a3": node("pic", message("assistant", "A log.")),
    }
    other = conversation(BASE, "a2", conversation_id="b")
    files = {
        "export/conversations-000.json": data(conversation(nodes, "a3")),
        "export/conversations-001.json": data(other),
        "export/file-AbC-shot.png": b"\x89PNG",
        "export/file-AbCd-other.png": b"another",
        "export/user.json": b'{"email": "ada@example.com"}',
    }
    path = zipped(tmp_path, files)
    found = chatgpt.discover(path)
    url = f"bundles:{tmp_path / 'store'}"
    with playhead.open(url) as sessions:
        for one in found:
            bring_in_one(sessions, one)
        session = sessions.get(f"chatgpt.{ID}")
        picture = next(event for event in session.events() if event.kind == "artifact_saved")
        kept = session.artifact(picture.body["name"])
        conversed = session.conversation()
        problems = session.verify().problems

    assert chatgpt.recognised(path)
    assert [one.id for one in found] == [ID, "b"]
    assert kept == b"\x89PNG"
    assert picture.body["media_type"] == "image/png"
    assert [part["file_id"] for part in conversed[-2].parts if part["type"] == "file"] == [
        picture.body["hash"],
        "file-Doc",
    ]
    assert conversed[-1].text == "A log."
    assert problems == ()


def test_a_folder_is_read_like_its_zip(tmp_path: Path) -> None:
    exported(tmp_path, conversation(BASE, "a2"))
    exported(tmp_path, conversation(BASE, "a2", conversation_id="b"), name="conversations-001.json")
    zipped(tmp_path, {"conversations.json": data(conversation(BASE, "a2", conversation_id="c"))})
    (tmp_path / "claude.json").write_text('[{"uuid": "x", "chat_messages": []}]')

    assert [one.id for one in chatgpt.discover(tmp_path)] == ["b", ID, "c"]


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "C:evil", "a\\..\\evil"])
def test_a_zip_with_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path, {"conversations.json": data(conversation(BASE, "a2")), name: b"x"})

    with pytest.raises(ImportFailed, match="leads out of the export"):
        chatgpt.discover(path)


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path, {"conversations.json": data(conversation(BASE, "a2"))})
    link = zipfile.ZipInfo("file-AbC-shot.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as target:
        target.writestr(link, "/etc/passwd")

    with pytest.raises(ImportFailed, match="is a link"):
        chatgpt.discover(path)


def test_a_zip_that_unpacks_to_far_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path, {"conversations.json": b'[{"mapping":' + b" " * 20_000_000})

    with pytest.raises(ImportFailed, match="unpacks to"):
        chatgpt.discover(path)


@pytest.mark.parametrize("limit", ["ENTRIES_MAX", "CONVERSATIONS_BYTES_MAX"])
def test_an_export_beyond_the_bounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    path = zipped(tmp_path, {"conversations.json": data(conversation(BASE, "a2")), "chat.html": b"x"})
    monkeypatch.setattr(archive, limit, 1)

    with pytest.raises(ImportFailed):
        chatgpt.discover(path)


def test_a_damaged_zip_is_a_failure(tmp_path: Path) -> None:
    path = zipped(tmp_path, {"conversations.json": data(conversation(BASE, "a2"))})
    whole = path.read_bytes()
    path.write_bytes(whole[:60] + bytes(20) + whole[80:])

    with pytest.raises(ImportFailed, match=r"export\.zip"):
        chatgpt.discover(path)


def test_a_link_in_a_folder_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_bytes(b"secret")
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "file-AbC-shot.png").symlink_to(outside)
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-AbC"}
    shown = message("user", {"content_type": "multimodal_text", "parts": [pointer]})
    session = only(exported(folder, conversation({"q": node(None, shown)}, "q")))

    assert session.files == []
    assert session.events[0].body["parts"][0]["file_id"] == "file-service://file-AbC"


def test_the_real_export_has_what_its_readme_says(shared_data: Path, sessions: Sessions) -> None:
    file = shared_data / "exports" / "chatgpt" / "conversations.json"
    raw = json.loads(file.read_text(encoding="utf-8"))
    found = chatgpt.discover(file)
    expected, actual, restored = [], [], []
    for conversation, one in zip(raw, found, strict=True):
        messages = {id: one["message"] for id, one in conversation["mapping"].items() if one["message"]}
        shown = [m for m in messages.values() if any(str(part).strip() for part in m["content"].get("parts", ["tool"]))]
        expected.append([sum(m["author"]["role"] == role for m in shown) for role in ("user", "assistant", "tool")])
        imported = bring_in_one(sessions, one)
        assert imported is not None
        logged = [event for event in sessions.get(imported.session.id).events() if event.kind == "message"]
        actual.append([sum(event.body["role"] == role for event in logged) for role in ("user", "assistant", "tool")])
        by_id = {event.id: chatgpt.restore_message(event.body) for event in imported.session.events}
        restored.append(by_id == messages)

    assert len(found) == 2
    assert actual == expected == [[5, 6, 0], [0, 1, 1]]
    assert restored == [True, True]
    assert len(sessions.get(f"chatgpt.{raw[0]['id']}").branches()) == 3
    assert [one.id for one in sessions.list().items if sessions.verify(one.id).problems] == []


def packed(folder: Path, count: int) -> Path:
    """A zip of one conversation with an attachment, which lies behind so many others."""
    asked = message("user", "Look", metadata={"attachments": [{"id": "file-Last", "name": "last.txt"}]})
    file = folder / f"export-{count}.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("conversations.json", json.dumps([conversation({"q": node(None, asked)}, "q")]))
        for number in range(count):
            archive.writestr(f"file-{number:05}-photo.png", b"x", zipfile.ZIP_DEFLATED)
        archive.writestr("file-Last-last.txt", b"what is wanted")
    return file


def test_an_attachment_costs_the_same_however_many_there_are(tmp_path: Path) -> None:
    (one,) = chatgpt.discover(packed(tmp_path, 20_000))
    started = time.process_time()
    for _ in range(50):
        member = one.export.attachment("file-Last")
        assert member is not None
        data = member.read()
    spent_s = time.process_time() - started

    assert data == b"what is wanted"
    assert spent_s < 1  # Reading the list of the zip takes a tenth of a second, each time.


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("file-Last", "file-Last-last.txt"),
        ("file", "file-00000-photo.png"),
        ("file-00001-photo", "file-00001-photo.png"),
        ("file-00001-photo.png", "file-00001-photo.png"),
        ("file-0000", None),
        ("ile", None),
        ("", None),
        ("-", None),
    ],
)
def test_an_attachment_is_found_by_what_stands_before_its_name(tmp_path: Path, id: str, name: str | None) -> None:
    (one,) = chatgpt.discover(packed(tmp_path, 3))
    found = one.export.attachment(id)

    assert (found.name if found else None) == name


def test_a_zip_that_is_replaced_meanwhile_gives_nothing_wrong(tmp_path: Path) -> None:
    file = packed(tmp_path, 2)
    (one,) = chatgpt.discover(file)
    whole = file.read_bytes()
    said = []
    for data in (whole[: len(whole) // 2], whole.replace(b"what", b"when"), b"x" * len(whole), whole[5:], b""):
        file.write_bytes(data)
        session = chatgpt.read(one)
        assert session is not None
        said.append((session.files, session.warnings))

    assert [files for files, _ in said] == [[]] * 5
    assert all("an attachment was left out" in warnings[0] for _, warnings in said)
