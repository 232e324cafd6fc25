"""What is kept of watched variables, and how hints and the tree show it."""

from __future__ import annotations

import pytest

from shapetrace.events.followed import FollowedValue, VariableChanged
from shapetrace.events.model import Tensor
from shapetrace.events.stop import Stop, StoppedFunction
from shapetrace.events.update import Source
from shapetrace.server.documents import Documents
from shapetrace.server.features.inlay_hints import inlay_hints
from shapetrace.server.features.watched_hints import watched_story
from shapetrace.server.features.watched_tree import WatchedTree
from shapetrace.server.listener import ProcessKey
from shapetrace.server.messages.settings import HintOptions
from shapetrace.server.ranges import SourceRange
from shapetrace.server.requested import KeptName, Requested
from shapetrace.server.scope import Scope, ScopePath
from shapetrace.server.sessions import Sessions
from shapetrace.server.store import TraceStore
from shapetrace.server.view import DocumentView
from shapetrace.transport.messages import Hello, ProcessInfo, read_from_agent, write
from shapetrace.transport.requested import (
    WATCHED,
    RequestedName,
    RunningCall,
    WatchedChange,
    WatchNews,
)

FILE = "/work/data.py"
TEXT = """\
def transform(video, mask):
    video = video.permute(
        1, 0, 2)
    video, mask = video.float(), 1
    return video
"""


def tensor(dtype: str, *shape: int) -> FollowedValue:
    return FollowedValue("array", Tensor(shape, dtype, kind="ndarray"))


def change(
    ordinal: int,
    line: int,
    before: FollowedValue | None,
    after: FollowedValue,
    call: int = 7,
    name: str = "video",
    differs: tuple[str, ...] = ("shape",),
) -> WatchedChange:
    event = VariableChanged(
        call=call, depth=0, name=name, file=FILE, line=line,
        before=before, after=after, differs=differs,
    )  # fmt: skip
    return WatchedChange(0 if name == "video" else 1, ordinal, "transform", call - 6, event)


U8, SMALL, F32 = tensor("uint8", 73, 3, 8), tensor("uint8", 3, 73, 8), tensor("float32", 3, 73, 8)
CHANGES = (
    change(1, 1, None, U8),
    change(2, 2, U8, SMALL),
    change(3, 4, SMALL, F32),
)
NEWS = WatchNews(
    requests=("video", "mask"),
    names=(RequestedName(0, "video", "video"), RequestedName(1, "mask", "mask")),
    problems={},
    sources=(Source(FILE, "digest", TEXT),),
    running=(RunningCall(7, "transform", FILE, 1),),
    items=CHANGES,
)


def told(news: WatchNews = NEWS) -> TraceStore:
    store = TraceStore()
    store.open_session("s")
    store.open_process("s", "p", ProcessInfo(4711, 1, "3.11", "python", ()))
    store.watch("p", news)
    return store


def view_of(store: TraceStore, text: str = TEXT) -> DocumentView:
    documents = Documents()
    document = documents.open(f"file://{FILE}", text, 1)
    assert document is not None
    records = store.records(document.key)
    assert records is not None
    return DocumentView(document, records, TEXT)


def hints(store: TraceStore, text: str = TEXT, room: int = 43) -> dict[int, str]:
    view = view_of(store, text)
    options = HintOptions(maximum_length=room)
    return {hint.line + 1: hint.text for hint in inlay_hints(view, 0, 99, options)}


def test_a_message_is_read_as_it_was_written() -> None:
    for news in (NEWS, WatchNews()):
        assert read_from_agent(write(news)) == (news, [])


@pytest.mark.parametrize(
    "message",
    [
        {"requests": 3, "problems": [["a"]], "sources": [[1]], "running": ["x"], "items": {}},
        {"requests": [3], "items": [[0, 1, "f", 1, {"event": "changed"}], 3, [0, 1, "f", 1, {}]]},
        {"items": [[0, 1, "f", 1, {"event": "unknown"}]]},
    ],
)
def test_what_is_wrong_in_a_message_is_left_out(message: dict[str, object]) -> None:
    news, refused = read_from_agent({"type": "watches", **message})
    assert isinstance(news, WatchNews)
    assert refused
    assert news.items == ()
    assert news.sources == ()
    assert not news.requests


def test_the_first_and_the_last_changes_are_kept() -> None:
    timeline: KeptName[WatchedChange] = KeptName(NEWS.names[0], WATCHED)
    for number in range(1, 2001):
        timeline.add_new(change(number, 1, None, U8))
        timeline.add_new(change(number, 1, None, U8))
    ordinals = [each.ordinal for each in timeline]
    assert ordinals == [*range(1, WATCHED.first + 1), *range(2001 - WATCHED.last, 2001)]
    assert (timeline.total, timeline.left_out) == (2000, 2000 - sum(WATCHED))
    timeline.clear()
    timeline.add_new(change(2001, 1, None, U8))
    assert (timeline.total, timeline.left_out) == (1, 0)


def test_changes_of_a_name_that_was_not_told_are_passed_over() -> None:
    watched: Requested[WatchedChange] = Requested(WATCHED)
    assert watched.add(WatchNews(items=CHANGES)) == []


def test_lines_say_what_a_variable_was_and_is() -> None:
    assert hints(told()) == {
        1: "video u8[73,3,8]",
        3: "video u8[73,3,8] → u8[3,73,8]",
        4: "video u8[3,73,8] → f32[3,73,8]",
    }


def test_hints_go_along_with_their_lines_and_those_of_changed_ones_are_gone() -> None:
    moved = hints(told(), "# one more\n" + TEXT)
    assert moved[5] == "video u8[3,73,8] → f32[3,73,8]"
    changed = hints(told(), TEXT.replace("1, 0, 2)", "1, 2, 0)"))
    assert set(changed) == {1, 4}


@pytest.mark.parametrize("room", range(12, 44))
def test_no_hint_is_longer_than_there_is_room_for(room: int) -> None:
    long = tensor("uint8", 73, 3, 720, 720), tensor("float32", 3, 73, 384, 544)
    news = WatchNews(
        requests=NEWS.requests,
        names=NEWS.names,
        sources=NEWS.sources,
        items=(change(1, 4, *long), change(1, 4, *long, name="mask")),
    )
    for text in hints(told(news), room=room).values():
        assert len(text) <= room
    full = hints(told(news), room=43)[4]
    assert full.startswith("video ")
    assert "f32" in full


def test_several_values_of_one_line_are_put_together() -> None:
    other = tensor("uint8", 9, 3, 8)
    news = WatchNews(
        requests=NEWS.requests,
        names=NEWS.names,
        sources=NEWS.sources,
        items=(*CHANGES, change(4, 2, other, SMALL)),
    )
    assert hints(told(news))[3] == "video u8[9|73,3,8] → u8[3,73,8]"


def test_the_story_of_a_line() -> None:
    story = watched_story(view_of(told()), SourceRange(2, 0, 3, 0))
    assert "**video**" in story
    assert "u8" in story


def test_what_an_earlier_call_had_is_marked_at_a_stop() -> None:
    later = WatchNews(
        items=(change(4, 1, None, U8, call=8),),
        running=(RunningCall(8, "transform", FILE, 1),),
    )
    store = told()
    store.watch("p", later)
    process = store.watching_processes()[0]
    stop = Stop(None, StoppedFunction(FILE, "transform", 2, frozenset()))
    scope = Scope(process.number, None, stop)
    found = inlay_hints(view_of(store), 0, 99, HintOptions(), scope_path=ScopePath(scope, process))
    assert {hint.line + 1: hint.text for hint in found} == {
        1: "video u8[73,3,8]",
        3: "~ video u8[73,3,8] → u8[3,73,8]",
        4: "~ video u8[3,73,8] → f32[3,73,8]",
    }


def rows(tree: WatchedTree, parent: str | None = None) -> list[str]:
    if parent is None:
        root = tree.root("")
        return [] if root is None else [f"{root.label}: {root.description}"]
    nodes, _ = tree.page(parent, "", 0, 100)
    return [f"{node.label}: {node.description}" for node in nodes]


def test_the_tree_lists_changes_in_order() -> None:
    tree = WatchedTree(told())
    tree.wanted = ("video", "mask", "later")
    assert rows(tree) == ["Watched variables: 3 changes"]
    assert rows(tree, "watched") == [
        "video: 3 changes  u8[73,3,8] → f32[3,73,8]",
        "mask: nothing yet",
        "later: from the next run on",
    ]
    assert rows(tree, "watched/0") == [
        "data.py:1: u8[73,3,8]  transform, call 1",
        "data.py:2: u8[73,3,8] → u8[3,73,8]  transform, call 1",
        "data.py:4: u8[3,73,8] → f32[3,73,8]  transform, call 1",
    ]
    nodes, _ = tree.page("watched/0", "", 1, 1)
    place = tree.place(nodes[0].id)
    assert place is not None
    assert place[1:] == (FILE, SourceRange(2, 0, 2, 0))
    assert "data.py:2" in tree.story(nodes[0].id)


def test_what_is_left_out_is_counted() -> None:
    many = tuple(change(number, 2, U8, SMALL) for number in range(1, 1001))
    tree = WatchedTree(
        told(WatchNews(("video",), names=NEWS.names, sources=NEWS.sources, items=many))
    )
    tree.page("watched", "", 0, 10)
    nodes, has_more = tree.page("watched/0", "", WATCHED.first - 1, 3)
    assert has_more
    assert [node.label for node in nodes] == ["data.py:2", "…", "data.py:2"]
    assert nodes[1].description == "500 more are not kept"


def test_a_name_that_brings_nothing_is_marked() -> None:
    store = told(WatchNews(requests=("vidoe",), problems={"vidoe": "nothing assigns 'vidoe'"}))
    tree = WatchedTree(store)
    tree.wanted = ("vidoe",)
    nodes, _ = tree.page("watched", "", 0, 10)
    assert [(node.description, node.is_failed) for node in nodes] == [("nothing yet", False)]
    store.close_process("p")
    nodes, _ = tree.page("watched", "", 0, 10)
    assert [(node.description, node.is_failed) for node in nodes] == [
        ("nothing assigns 'vidoe'", True)
    ]


def test_a_later_run_that_watches_nothing_takes_it_off_the_tree() -> None:
    store = told()
    store.close_process("p")
    store.close_session("s")
    assert WatchedTree(store).root("") is not None
    store.open_session("later")
    store.open_process("later", "q")
    assert WatchedTree(store).root("") is not None
    store.close_process("q")
    store.close_session("later")
    assert WatchedTree(store).root("") is None


def test_what_is_cleared_is_gone_and_what_comes_later_is_shown() -> None:
    store = told()
    store.clear()
    assert hints_or_none(store) == {}
    store.watch("p", WatchNews(items=(change(4, 4, SMALL, F32),)))
    assert hints_or_none(store) == {4: "video u8[3,73,8] → f32[3,73,8]"}


def hints_or_none(store: TraceStore) -> dict[int, str]:
    documents = Documents()
    document = documents.open(f"file://{FILE}", TEXT, 1)
    assert document is not None
    return {} if store.records(document.key) is None else hints(store)


def test_what_no_program_of_a_session_had_is_told_once_all_are_over() -> None:
    store = TraceStore()
    store.open_session("s")
    told_of: list[str] = []
    sessions = Sessions(
        store, lambda status: None, lambda problem: None, lambda it: told_of.append(it.message)
    )
    main, worker = ProcessKey("s", 1), ProcessKey("s", 2)
    problems = {"video": "nothing assigns 'video'", "vidoe": "nothing assigns 'vidoe'"}
    for process in (main, worker):
        about = ProcessInfo(process.pid, 1, "3.11", "python", ())
        sessions.hello(process, Hello("s", about))
        sessions.message(process, write(WatchNews(("video", "vidoe"), problems, NEWS.names)))
    sessions.message(worker, write(WatchNews(sources=NEWS.sources, items=CHANGES)))
    sessions.gone(worker, "ended")
    assert told_of == []
    sessions.gone(main, "ended")
    assert told_of == ["nothing assigns 'vidoe'"]
