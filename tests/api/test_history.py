"""What of a client's history is new, by hand and for clients that send it in every usual way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.api.history import News, Role, Said, find_news, list_spoken
from mgl.llm.base import Message, ToolCall


def talk(*texts: str) -> list[Said]:
    """User and assistant by turns; ``-a`` is a turn that said "a" and was deleted."""
    roles = ("user", "assistant")
    return [
        Said(roles[place % 2], text.removeprefix("-"), text.startswith("-"))  # type: ignore[arg-type]
        for place, text in enumerate(texts)
    ]


USER, USER_C = [Said("user", "ok")], [Said("user", "c")]


@pytest.mark.parametrize(
    ("stored", "sent", "found"),
    [
        ([], talk("hi"), ["hi"]),
        ([], talk("hi", "hello", "who?"), ["hi", "hello", "who?"]),
        (talk("hi", "hello"), talk("hi", "hello", "who?"), ["who?"]),
        (talk("ok", "fine"), talk("ok", "fine", "ok"), ["ok"]),
        (talk("hi", "hello", "ok", "fine"), USER, ["ok"]),  # one that sends the last message alone
        (talk("a", "b", "c", "d"), talk("c", "d", "e"), ["e"]),  # the last messages
        (talk("a", "b", "c", "d"), talk("a", "b", "new"), ["new"]),  # an edited message
        (talk("a", "b"), talk("a", "other", "c"), ["other", "c"]),  # another reply
        (talk("a", "b", "x", "y"), talk("a", "b", "c", "d", "e"), ["c", "d", "e"]),
        (talk("a", "b", "x", "y"), talk("new", "b", "x", "y", "e"), ["new", "e"]),
        (talk("a", "b", "x", "y"), talk("a", "altered", "x", "y", "e"), ["e"]),
        (talk("-a"), talk("new"), ["new"]),  # what is deleted is like nothing but itself
        (talk("-a", "-b"), talk("a", "b", "new"), ["new"]),
        (talk("a", "b", "-c", "-d"), talk("a", "b", "new"), ["new"]),
        (talk("a", "b", "-c", "d"), talk("a", "b", "c", "d", "e"), ["e"]),
        (talk("a", "b", "-c", "d"), talk("a", "b", "x", "d", "e"), ["x", "e"]),
        (talk("a", "b", "c", "-d"), talk("a", "b", "c", "d", "e"), ["e"]),
        (talk("-a"), talk("a"), ["a"]),  # said anew
        (talk("a", "b", "c"), talk("a", "b", "c"), 2),  # a request that failed comes again
        (talk("a", "b", "c"), USER_C, 2),
        (talk("a", "b", "c", "d"), talk("a", "b", "c"), 2),  # a reply that was lost is given again
        (talk("a", "b"), talk("a"), 0),
        (talk("a", "b", "c", "d", "new", "e"), talk("a", "b", "new"), 4),
        (talk("a", "b", "c", "d", "new"), talk("a", "b", "new"), 4),
    ],
)
def test_what_follows_is_new_and_what_is_known_is_asked(
    stored: list[Said], sent: list[Said], found: list[str] | int
) -> None:
    """The texts that are new, or the place of the stored turn that is asked again."""
    if isinstance(found, int):
        assert find_news(stored, sent) == News((), found)
        return
    news = find_news(stored, sent)
    assert [sent[place].what for place in news.fresh] == found
    assert news.asked is None


def test_tool_calls_and_their_results_are_no_part_of_a_talk() -> None:
    call = (ToolCall("1", "look", "{}"),)
    messages = [
        Message("system", "Be kind."),
        Message("user", " hi "),
        Message("assistant", "Let me look.", call),
        Message("tool", "42", (), "1"),
        Message("assistant", "It is 42."),
    ]
    assert list_spoken(messages) == [(1, "user", "hi"), (4, "assistant", "It is 42.")]


Texts = st.lists(st.sampled_from(["ok", "no", "hm"]), max_size=12)


@given(Texts, st.integers(1, 30), st.data())
def test_however_much_a_client_sends_each_message_is_stored_once(
    texts: list[str], window: int, data: st.DataObject
) -> None:
    """Few words, so that messages are often alike; replies are lost on the way, or never made."""
    stored: list[Said] = []
    shown: list[Said] = []
    for text in texts:
        shown.append(Said("user", text))
        fails = data.draw(st.booleans())
        for attempt in range(2 if fails else 1):
            found = find_news(stored, shown[-window:])
            if window == 1 and not attempt and found.asked == 0:
                return  # the first message again, by one who sends nothing else
            stored += [shown[-window:][place] for place in found.fresh]
            if fails and not attempt:
                continue  # the engine failed: the same request comes again
            reply = Said("assistant", data.draw(st.sampled_from(["fine", "ok"])))
            stored.append(reply)
            shown.append(reply)
    assert stored == shown


@dataclass
class Client:
    """What a client shows, and what its server has stored of it."""

    window: int
    shown: list[Said] = field(default_factory=list)
    stored: list[Said] = field(default_factory=list)
    said: int = 0

    def send(self, fate: str, *, is_retry: bool = False) -> None:
        """Send what is shown: it is ``served``, its reply is ``lost``, or it ``fails``."""
        sent = self.shown[-self.window :]
        found = find_news(self.stored, sent, is_retry=is_retry)
        asked = None if found.asked is None else self.stored[found.asked]
        before, after = None, found.after
        for place in found.fresh:
            follows = len(self.stored) - 1 if before == place - 1 and before is not None else after
            self.stored.append(replace(sent[place], follows=follows))
            before, after = place, None
        asked = self.stored[-1] if asked is None else asked
        if not is_retry:
            self._drop(found.replaced)
        if fate == "fails":
            return
        number = self.stored.index(asked)
        if number + 1 == len(self.stored):
            self.append("assistant", number)
        if fate == "served":
            reply = self.stored[number + 1]
            self.shown.append(Said(reply.role, reply.what))

    def append(self, role: Role, follows: int | None) -> None:
        self.said += 1
        self.stored.append(Said(role, f"said {self.said}", follows=follows))

    def say(self) -> None:
        self.said += 1
        self.shown.append(Said("user", f"said {self.said}"))

    def _drop(self, replaced: frozenset[int]) -> None:
        kept = [place for place in range(len(self.stored)) if place not in replaced]
        places = {place: number for number, place in enumerate(kept)}
        self.stored = [
            replace(each, follows=None if each.follows is None else places.get(each.follows))
            for each in map(self.stored.__getitem__, kept)
        ]


Moves = st.lists(
    st.tuples(
        st.sampled_from(["say", "say", "say", "edit", "regenerate", "forget"]),
        st.sampled_from(["served", "served", "lost", "fails"]),
        st.integers(0, 20),
    ),
    max_size=20,
)


@given(Moves, st.sampled_from([1, 2, 3, 5, 100]))
def test_nothing_is_lost_and_nothing_doubled(
    moves: list[tuple[str, str, int]], window: int
) -> None:
    """Clients say, edit and regenerate; turns are forgotten; replies and requests are lost.

    What a client shows is stored, and nothing else if it shows all of it: what it made again or
    edited is replaced. The first message alone is never known to be an edited one.
    """
    client = Client(window)
    has_begun_anew = False
    for what, fate, place in moves:
        users = [n for n, each in enumerate(client.shown) if each.role == "user"]
        if what == "forget" and client.stored:
            number = place % len(client.stored)
            old = client.stored[number]
            client.stored[number] = replace(old, is_deleted=True)
            continue
        if what == "edit" and users:
            at = users[place % len(users)]
            has_begun_anew |= not at
            del client.shown[at:]
            client.say()
        elif what == "regenerate" and users:
            if client.stored and any(each.is_deleted for each in client.stored[-2:]):
                continue  # said anew: it is taken in again
            if 1 in (window, users[-1] + 1) and len(client.stored) > 2:
                continue  # one message alone is said anew
            del client.shown[users[-1] + 1 :]
        else:
            client.say()
        client.send(fate)
        while fate != "served":  # the client tries again, until it has a reply
            fate = "served" if place % 2 else {"fails": "lost", "lost": "served"}[fate]
            client.send(fate, is_retry=True)
        told = [each.what for each in client.stored]
        shown = {each.what for each in client.shown}
        assert len(told) == len(set(told))
        assert shown <= set(told)
        if window == 100 and not has_begun_anew:
            assert {each.what for each in client.stored if not each.is_deleted} <= shown


def test_what_another_chat_said_is_not_replaced() -> None:
    """Two chats of one name: one edits, and the other's turns stay."""
    stored = talk("a", "b", "x", "y", "c", "d")
    follows = (None, 0, None, 2, 1, 4)
    stored = [replace(each, follows=at) for each, at in zip(stored, follows, strict=True)]
    assert find_news(stored, talk("a", "b", "new")) == News(
        (2,), after=1, replaced=frozenset({4, 5})
    )
    assert find_news(stored, talk("a", "b", "c")).replaced == frozenset({5})
    assert find_news(stored, talk("x", "y", "z")) == News((2,), after=3)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["ok", "no"])), max_size=20))
def test_chats_of_one_name_may_say_the_same(said: list[tuple[str, str]]) -> None:
    """Clients that name no chat send all of theirs under one name."""
    stored: list[Said] = []
    chats = {name: [Said("user", f"I am {name}")] for name in "abc"}
    for name, text in [*((name, "") for name in chats), *said]:
        chat = chats[name]
        if text:
            chat.append(Said("user", text))
        found = find_news(stored, chat)
        assert found == News((len(chat) - 1,), after=found.after)
        stored.append(replace(chat[-1], follows=found.after))
        reply = Said("assistant", f"reply {len(stored)}")
        chat.append(reply)
        stored.append(replace(reply, follows=len(stored) - 1))


@pytest.mark.parametrize(
    ("sent", "replaced"),
    [
        (talk("a", "b", "c", "d", "e"), ()),
        (talk("a", "other", "new"), ()),  # what followed stands on the reply
        (talk("a", "b", "c", "other", "e"), (3,)),
        (talk("a", "b", "old", "older", "e"), (2, 3)),  # back to a branch that went
        (talk("a", "d", "e"), ()),  # a client that leaves out the middle
        (talk("new"), ()),
        ([Said("user", "a"), Said("user", "new")], ()),  # one that sends no replies
    ],
)
def test_what_a_client_no_longer_shows_is_replaced(
    sent: list[Said], replaced: tuple[int, ...]
) -> None:
    stored = [
        replace(each, follows=place - 1 if place else None)
        for place, each in enumerate(talk("a", "b", "c", "d"))
    ]
    assert find_news(stored, sent).replaced == frozenset(replaced)


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (talk("new"), News((0,), after=-1, replaced=frozenset({0, 1, 2, 3}))),
        (talk("a"), News((), 0, replaced=frozenset({1, 2, 3}))),
        (talk("a", "b", "c"), News((), 2, replaced=frozenset({3}))),
        (talk("a", "b", "c", "d", "a"), News((4,), after=3)),
        (talk("a", "b", "a"), News((2,), after=1, replaced=frozenset({2, 3}))),
    ],
)
def test_a_client_that_sends_whole_chats_edits_the_first_message(
    sent: list[Said], found: News
) -> None:
    """What a program appended, at the end, stays."""
    stored = [replace(each, follows=n - 1) for n, each in enumerate(talk("a", "b", "c", "d"))]
    stored.append(Said("user", "a"))
    if sent[-1].what == "a" and len(sent) == 5:
        stored.pop()
    assert find_news(stored, sent, is_whole=True) == found
    assert not find_news(stored, sent[-1:]).replaced
