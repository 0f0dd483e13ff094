"""The index of a memory's nodes, by words and by meaning: candidates and System-1 find by it.

Source: Mnemis §2.1, §2.3. It grows with the state, each part when that is asked for: summaries
change with each episode, and only questions need their vectors. After a deletion or a merge another
index is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from mgl.llm.calls import note_made_of
from mgl.memories.mnemis.edits import turns_of
from mgl.memories.mnemis.reading import render_episode
from mgl.memories.mnemis.state import MnemisState, summary_text, words_text
from mgl.memories.rows import Chosen, list_speakers
from mgl.memories.table import Table
from mgl.retrieval.base import Embedder, Hit, Reranker
from mgl.retrieval.lexical import all_stems
from mgl.retrieval.ranking import best, fuse_hits
from mgl.retrieval.turns import TurnIndex, rank_turns
from mgl.retrieval.vectors import HybridIndex, VectorIndex
from mgl.store import Store
from mgl.types import Conversation, Question, Turn

LEAST_SIMILARITY: Final = 0.5
"""Cosine above which a known name or fact may be a new one; ours. It spares the model most of the
questions."""

Kind = Literal["episodes", "entities", "facts"]
NodeT = TypeVar("NodeT")


class Index:
    """The nodes of a state, as of the last time that a part was grown to it.

    Episodes and facts, whose texts never change, are indexed in the store under the memory's
    ``name``; a deletion empties these indexes. With ``in_context`` episodes are ranked by what
    stands around them, too. Methods embed, and block.
    """

    def __init__(
        self,
        embedder: Embedder,
        store: Store | None = None,
        name: str = "",
        *,
        in_context: bool = False,
    ) -> None:
        self.embedder = embedder
        self.state = MnemisState()
        self.entities = HybridIndex(embedder)
        self.facts = HybridIndex(embedder, store, f"{name}/facts")
        self.episodes = (
            TurnIndex(embedder, store, f"{name}/said")
            if in_context
            else HybridIndex(embedder, store, f"{name}/episodes")
        )
        self._names = VectorIndex(embedder)
        self._forms: dict[tuple[int, str], None] = {}
        self._grown: dict[str, Table[str, Any]] = {}
        self._turns: Sequence[Turn] = ()
        self._spoken: list[int] = []
        self._numbers: list[int] = []

    # What a new name or fact may repeat

    def grow_candidates(self, state: MnemisState) -> None:
        """Index the names and the facts of a later state that are new."""
        named = self._find_changed("names", state.entities)
        own = ((at, name) for at, entity in named.items() for name in entity.names)
        fresh = [form for form in own if form not in self._forms]
        with note_made_of({name: turns_of(state, named[at]) for at, name in fresh}):
            self._names.extend(dict(enumerate((name for _, name in fresh), len(self._forms))))
        self._forms |= dict.fromkeys(fresh)
        self._grow_shared(state)

    def find_entities(self, names: Sequence[str], most: int) -> list[list[str]]:
        """For each name return the ids of ``most`` entities that may be meant, likeliest first.

        Those whose names or summary share its words, and those with a similar name, by rank.
        """
        if not names or not self._forms:
            return [[] for _ in names]
        ids = self.entities.words.ids
        owners = np.searchsorted(ids, [at for at, _ in self._forms])
        found = []
        for name, vector in zip(names, self.embedder.embed(names), strict=True):
            alike = np.full(len(ids), -1.0)
            np.maximum.at(alike, owners, self._names.scores(vector))
            by_words = _rank(ids, self.entities.words.scores(name), 0.0, most)
            rankings = by_words, _rank(ids, alike, LEAST_SIMILARITY, most)
            found.append([f"e{hit.id}" for hit in fuse_hits(rankings)[:most]])
        return found

    def find_earlier(self, names: Sequence[str], most: int) -> list[list[int]]:
        """For each name return the places of ``most`` earlier ones among them that may mean the
        same, likeliest first: they share a word, or their embeddings are similar."""
        stems, vectors = [frozenset(each) for each in all_stems(names)], self.embedder.embed(names)
        found: list[list[int]] = []
        for place, row in enumerate(vectors @ vectors.T):
            before = [
                other
                for other in range(place)
                if stems[other] & stems[place] or row[other] > LEAST_SIMILARITY
            ]
            found.append(sorted(before, key=lambda other: (-float(row[other]), other))[:most])
        return found

    def find_facts(
        self, texts: Sequence[str], own: Sequence[Sequence[str]], most: int
    ) -> list[list[str]]:
        """For each text return the ids of similar facts, the most similar first: ``most`` of its
        ``own``, which join the same entities, then ``most`` of all."""
        if not texts or not len(self.facts):
            return [[] for _ in texts]
        search, found = self.facts.vectors.search, []
        for vector, ids in zip(self.embedder.embed(texts), own, strict=True):
            hits = [*search(vector, most, [int(each[1:]) for each in ids]), *search(vector, most)]
            near = (f"f{hit.id}" for hit in hits if hit.score > LEAST_SIMILARITY)
            found.append(list(dict.fromkeys(near)))
        return found

    # What a question finds

    def update(self, state: MnemisState, source: Conversation) -> None:
        """Index what a question finds of a later state, where it is new or changed."""
        changed = self._find_changed("summaries", state.entities)
        texts = {at: summary_text(each) for at, each in changed.items()}
        with note_made_of({texts[at]: turns_of(state, each) for at, each in changed.items()}):
            self.entities.vectors.extend(texts)
        self._grow_shared(state)
        self._grow_episodes(state, source)
        self.state = state

    def search(self, kind: Kind, query: str, vector: NDArray[np.float32], count: int) -> list[str]:
        """Return the ids of the ``count`` most similar nodes of a kind, the best first."""
        index = {"episodes": self.episodes, "entities": self.entities, "facts": self.facts}[kind]
        assert isinstance(index, HybridIndex)
        hits = index.search(query, count, vector=vector)
        if kind == "episodes":
            known = len(self._numbers)  # another process may have indexed more
            return [str(self._numbers[hit.id]) for hit in hits if hit.id < known]
        return [f"{kind[0]}{hit.id}" for hit in hits]

    async def rank_in_context(self, question: Question, reranker: Reranker | None) -> Iterator[str]:
        """Yield the ids of all episodes, the best first, by what stands around them, too."""
        assert isinstance(self.episodes, TurnIndex)
        turns = self._turns  # it may grow meanwhile
        speakers = list_speakers(turns)
        scores = await rank_turns(
            question, turns, self.episodes, reranker=reranker, spoken_by=speakers
        )
        return (str(self._numbers[place]) for place in np.argsort(-scores, kind="stable").tolist())

    def _grow_shared(self, state: MnemisState) -> None:
        entities = self._find_changed("words", state.entities)
        facts = self._find_changed("facts", state.facts)
        self.entities.words.extend({at: words_text(each) for at, each in entities.items()})
        new = {at: facts[at] for at in self.facts.find_missing(facts)}
        with note_made_of({fact.text: turns_of(state, fact) for fact in new.values()}):
            self.facts.extend({at: fact.text for at, fact in new.items()})

    def _grow_episodes(self, state: MnemisState, source: Conversation) -> None:
        numbers = state.episodes.changes_since(self.state.episodes) or ()
        places = range(len(self._numbers), len(self._numbers) + len(numbers))
        missing = self.episodes.find_missing(places)
        self._numbers += numbers
        own = {at: state.episodes[self._numbers[at]] for at in missing}
        if isinstance(self.episodes, TurnIndex):
            self._spoken = [*self._spoken, *(state.episodes[each].turns[0] for each in numbers)]
            turns = Chosen(source.turns, self._spoken)
            with note_made_of({turns[at].line: each.turns for at, each in own.items()}):
                self.episodes.add_turns(turns, missing)
            self._turns = turns
        else:
            texts = {at: render_episode(source, each) for at, each in own.items()}
            with note_made_of({texts[at]: each.turns for at, each in own.items()}):
                self.episodes.extend(texts)

    def _find_changed(self, part: str, table: Table[str, NodeT]) -> dict[int, NodeT]:
        """Return what a part lacks of a table's nodes, by the numbers of their ids."""
        known = self._grown.get(part, Table())
        self._grown[part] = table
        return {int(each[1:]): table[each] for each in table.changes_since(known) or ()}


def _rank(
    ids: NDArray[np.int64], scores: NDArray[np.floating[Any]], above: float, most: int
) -> list[Hit]:
    return [Hit(int(ids[at]), score) for at, score in best(scores, most) if score > above]
