"""What a command names: a file, a memory's id, or a conversation, and with which options it opens.

plan = Planner(place).plan_file("story.txt", None, None, {})
memory = plan.open(tools)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mgl import registry
from mgl.errors import InputError, StoreError, UsageError, WrongKind
from mgl.lab.workplace import Workplace
from mgl.memories.base import Memory, MemoryKind, Tools, is_memory_id
from mgl.memories.capabilities import supports
from mgl.memories.options import choose_kind, load_kind
from mgl.memories.talk import TalkMemory
from mgl.store import MemoryRecord, Store
from mgl.store.owners import Owner
from mgl.types import Conversation, Document, Question, Source

if TYPE_CHECKING:
    from pydantic import BaseModel

READS: Final = "mindgraph"  # the memory of a document, unless another is named
REMEMBERS: Final = "gam"  # and of a conversation
CONVERSATIONS: Final = frozenset({".json", ".jsonl"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What a memory is opened from; ``record`` is the stored memory that is opened again.

    ``is_stored`` says that the source was loaded from the store. ``owner`` is the record's, taken
    before its source was loaded, so that a deletion meanwhile is noticed.
    """

    name: str
    kind: MemoryKind
    config: BaseModel
    source: Source
    record: MemoryRecord | None = None
    is_stored: bool = False
    owner: Owner | None = None

    def open(self, tools: Tools, questions: Sequence[Question] = ()) -> Memory:
        identity = None if self.record is None else self.record.id
        return self.kind(tools, self.source, questions, self.config, identity=identity)

    @property
    def is_talk(self) -> bool:
        """Whether its memory is told a conversation turn by turn."""
        return isinstance(self.source, Conversation) and supports(self.kind, TalkMemory)


class Planner:
    """Finds sources and stored memories, and the kind and configuration to open them with."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._store = place.store
        self._observer = place.observer

    def find(self, source: str, memory: str | None = None) -> MemoryRecord:
        """Find one memory by its id, by the exact name of its conversation, or by that of its
        document: the newest of the kind ``memory``; without one, of the usual kind, else of any.

        StoreError if there is none; UsageError if several kinds of memory have the conversation
        and ``memory`` names none.
        """
        if known := self.find_named(source):
            return self.pick(source, known, memory)
        called = self.find_called(source)
        found = [each for each in called if memory in (None, each.kind)]
        if called and not found:
            kinds = " or ".join(sorted({each.kind for each in called}))
            raise StoreError(
                f"{source!r} has no memory of the kind {memory}",
                hint=f"leave out --memory, or give {kinds}",
            )
        if not found:
            raise StoreError(f"there is no memory {source!r}", hint=hint_names(self._store, source))
        same = (each for each in found if each.document_id == found[0].document_id)
        return next((each for each in same if each.kind in (READS, REMEMBERS)), found[0])

    def read_conversation(
        self, path: Path, name: str | None = None, content: bytes | None = None
    ) -> Conversation:
        """Read a file's conversation, or one of several: by its name, its number, its id or the day
        on which it began.

        With ``content`` the path is its name, and is not read.
        """
        from mgl.text.conversations import (
            choose_conversation,
            describe_conversation,
            parse_conversations,
            read_conversations,
        )

        found = read_conversations(path) if content is None else parse_conversations(content, path)
        chosen = choose_conversation(found, name)
        if len(chosen) != 1:
            shown = [(n, talk) for n, talk in enumerate(found, 1) if talk in chosen or not chosen]
            names = "; ".join(describe_conversation(n, talk) for n, talk in shown[:10])
            fault = "none is" if not chosen else f"{len(chosen)} are"
            raise InputError(
                f"{path} holds {len(found)} conversations"
                + (f", and {fault} called {name!r}" if name is not None else ""),
                hint="choose one by its number (--conversation), or add all (`mgl add NAME FILE "
                f"--all`): {names}",
            )
        for note in chosen[0].notes:
            self._observer.note(f"{chosen[0].name}: {note}")
        return chosen[0]

    def read_all(self, path: Path, name: str) -> Conversation:
        """Read all conversations of a file as one, each a session of its own."""
        from mgl.text.conversations import join_conversations, read_conversations

        joined = join_conversations(name, read_conversations(path))
        for note in joined.notes:
            self._observer.note(note)
        return joined

    def plan_source(
        self,
        source: Path | str,
        memory: str | None,
        conversation: str | None,
        options: Mapping[str, Any],
    ) -> Plan:
        """Plan to ask a file, or what is stored under an id or a name.

        A document's name stands for its file, and leads to the same memory. InputError if there is
        neither.
        """
        if isinstance(source, Path) or Path(source).is_file():
            return self.plan_file(source, memory, conversation, options)
        if conversation is not None:
            raise UsageError(
                f"--conversation chooses a part of a file, and {source!r} is not a file",
                hint="check the path, or leave out --conversation",
            )
        try:
            record = self.find(source, memory)
        except StoreError as missing:
            if Path(source).exists():  # a folder: say so
                return self.plan_file(source, memory, conversation, options)
            documents = [each for each in self.find_called(source) if not self._is_talk(each)]
            if not documents:
                raise InputError(
                    f"there is no file, memory or conversation {source!r}",
                    hint=f"check the path; {missing.hint}",
                ) from None
            record = documents[0]
        wanted = memory or READS
        if is_memory_id(source) or self._is_talk(record) or record.kind == wanted:
            return self.plan_record(record, options)
        plan = self.plan_file(self.load(record.document_id), wanted, None, options)
        return replace(plan, is_stored=True)

    def _is_talk(self, record: MemoryRecord) -> bool:
        return self._store.count_turns(record.document_id) is not None

    def plan_file(
        self,
        given: Path | str | Source,
        memory: str | None,
        conversation: str | None,
        options: Mapping[str, Any],
    ) -> Plan:
        """Plan a memory of a file, or of a source that was read: of the kind ``memory``, or of the
        usual one. ``conversation`` picks one of several in a file."""
        from mgl.text import read_document

        if isinstance(given, Document | Conversation):
            name = memory or (REMEMBERS if isinstance(given, Conversation) else READS)
            return Plan(name, *self._configure(name, options), given)
        path = Path(given)
        is_log = path.suffix.lower() in CONVERSATIONS
        name = memory or (REMEMBERS if is_log else READS)
        if is_log and registry.load("memory", name).reads == "document" and _is_chat_log(path):
            self._observer.note(f"{name} reads documents: {REMEMBERS} remembers this chat log")
            name = REMEMBERS
        kind, config = self._configure(name, options)
        source: Source
        if kind.reads == "conversation" or (kind.reads == "either" and is_log):
            try:
                source = self.read_conversation(path, conversation)
            except InputError as error:
                if is_log:
                    raise
                raise InputError(
                    f"{name} reads conversations: {error.message}",
                    hint=f"take --memory {READS} for a document; a chat log has lines as Ann: Hi.",
                ) from error
        elif conversation is not None:
            raise UsageError(
                f"{name} reads {path.name} as a document, which holds no conversations",
                hint=f"leave out --conversation, or take --memory {REMEMBERS} for a chat log",
            )
        else:
            source = read_document(path)
            for note in source.notes:
                self._observer.note(f"{source.name}: {note}")
        return Plan(name, kind, config, source)

    def plan_record(self, record: MemoryRecord, options: Mapping[str, Any]) -> Plan:
        """Plan to open a stored memory; one of a document with other options is another memory.

        Options of an earlier version that its kind no longer has are left out.
        """
        kind = load_kind(record.kind, record.config.get("preset"))
        known = kind.Config.model_fields
        stored = {name: value for name, value in record.config.items() if name in known}
        given = {name: value for name, value in options.items() if value is not None}
        owner = self._store.own(record.id, record.document_id, requires="memory")
        source = self._load_for(kind, record.document_id)
        if not given:
            config = kind.Config.model_validate(stored)
        else:
            kept = _keep_options(record.kind, kind, stored, given)
            kind, config = self._configure(record.kind, {**kept, **given})
        if isinstance(source, Conversation) or not given:
            return Plan(record.kind, kind, config, source, record, is_stored=True, owner=owner)
        return Plan(record.kind, kind, config, source, is_stored=True)

    def _load_for(self, kind: MemoryKind, document_id: str) -> Source:
        """Load what a memory is opened with: one that grows reads its turns by itself."""
        is_talk = self._store.count_turns(document_id) is not None
        if is_talk and supports(kind, TalkMemory):
            return self._store.conversation(document_id, with_turns=False)
        return self.load(document_id)

    def load(self, document_id: str) -> Source:
        """Load a stored document, or conversation; StoreError if there is none."""
        is_talk = self._store.count_turns(document_id) is not None
        load = self._store.conversation if is_talk else self._store.document
        return load(document_id)

    def _configure(self, name: str, options: Mapping[str, Any]) -> tuple[MemoryKind, BaseModel]:
        return choose_kind(name, options, lambda: self._place.preset)

    def choose_questions(self, plan: Plan, tools: Tools, asked: Question) -> list[Question]:
        """Choose the questions that identify the memory which answers: a stored one's if it can
        answer this question, else this question. A conversation's memory answers any."""
        if plan.record is not None:
            return [Question(text) for text in plan.record.questions]
        if isinstance(plan.source, Conversation):
            return []
        is_shared = plan.open(tools, [asked]).id == plan.open(tools).id
        if plan.kind.per_question or is_shared:
            return [asked]
        alike = [
            record
            for record in self._store.memories()
            if (record.kind, record.document_id) == (plan.name, plan.source.id)
            and record.id == plan.open(tools, [Question(text) for text in record.questions]).id
        ]
        finished = [
            record for record in alike if len(self._store.chunks_done(record.id)) == record.chunks
        ]
        own = [record for record in alike if record.questions == (asked.text,)]
        several = [record for record in finished if asked.text in record.questions]
        general = [record for record in finished if not record.questions]
        for record in (*own, *several, *general):
            if record.questions != (asked.text,):
                self._observer.note(f"answering from memory {record.id}, which is already built")
            return [Question(text) for text in record.questions]
        return [asked]

    def find_named(self, source: str) -> list[MemoryRecord]:
        """Find the memory with this id, or the memories of the conversation of this exact name."""
        if is_memory_id(source):
            found = self._store.find_memory(source)
            return [] if found is None else [found]
        return self._store.memories_of(self._store.named_conversation(source).id)

    def find_called(self, name: str) -> list[MemoryRecord]:
        """Find the memories of the documents and conversations of this exact name, the newest
        first."""
        called = self._store.documents_called(name)
        found = self._store.memories() if called else ()
        return [each for each in found if each.document_id in called]

    def pick(self, source: str, known: Sequence[MemoryRecord], kind: str | None) -> MemoryRecord:
        """Pick the newest memory, of some kind if one is named."""
        found = [each for each in known if kind in (None, each.kind)]
        if not found:
            others = " and ".join(sorted({record.kind for record in known}))
            raise WrongKind(
                f"{source!r} is remembered by {others}, not by {kind}",
                hint=f"leave out --memory, or give {known[0].kind}; other kinds read the file",
            )
        kinds = sorted({record.kind for record in found})
        if len(kinds) > 1:
            raise WrongKind(
                f"{source!r} is remembered by {' and by '.join(kinds)}",
                hint=f"choose one: --memory {kinds[0]}, or memory={kinds[0]} in the query of a URL",
            )
        return found[0]


def hint_names(store: Store, wanted: str) -> str:
    """What to try where no document, conversation or memory has this name or id: those like it."""
    names = (*store.memory_ids(), *store.document_names().values())
    known = {name.casefold(): name for name in names if name != wanted}
    given = wanted.casefold()
    near = get_close_matches(given, known) or [each for each in known if each.startswith(given)][:3]
    guess = f"did you mean {' or '.join(known[each] for each in near)}? " if near else ""
    return f"{guess}`mgl list` shows what there is"


def _keep_options(
    name: str, kind: MemoryKind, config: Mapping[str, Any], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Keep a stored configuration. If the preset changes, drop what the old preset set and what
    the kind of the new preset lacks."""
    preset = given.get("preset", config.get("preset"))
    if preset == config.get("preset"):
        return config
    defaults = kind.Config().model_dump(mode="json")
    known = load_kind(name, preset).Config.model_fields
    return {
        option: value
        for option, value in config.items()
        if value != defaults[option] and option in known
    }


def _is_chat_log(path: Path) -> bool:
    from mgl.text.conversations import read_conversations

    try:
        return bool(read_conversations(path))
    except InputError:
        return False
