"""The names in a text, and the nouns that it comes back to, found by code.

    >>> [found.name for found in find_names("I met Irene Adler. Miss Adler sang; so did Bo to Bo.")]
    ['Irene Adler', 'Bo']
    >>> text = "The ferryman saw the river. A ferryman, by his river, sees rivers. The river ran."
    >>> [found.name for found in find_nouns(text, min_count=2)]
    ['river', 'ferryman']

A small model is not asked who is in a text: it invents. A capitalised word counts as a name if it
stands at least once where no sentence, quotation or line begins, and is not mostly in lower case.
Languages without capitals, or with capitals for common nouns, are not covered.

Time is linear in the text: shorter forms belong to a name of at most ``MOST_WORDS`` words, and a
word that more than ``MOST_FORMS`` names share belongs to none of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import Final

from mgl.text.stopwords import STOP_WORDS

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_TITLES = frozenset(
    "mr mrs miss ms mister dr sir lady lord king queen prince princess count countess baron "
    "baroness captain colonel major professor father mother brother sister uncle aunt duke "
    "duchess saint st judge doctor".split()
)
_ABBREVIATED = frozenset("mr mrs ms dr st".split())
_PARTICLES = frozenset("of von van de der du la the".split())
_NOT_A_NAME = frozenset(
    "i the a an and but or so then he she it they we you my your his her its our their this that "
    "these those in on at to for with from as if when what who whom whose why how where which no "
    "yes not oh ah well now there here once after before because though only even all one some "
    "many chapter".split()
)
_NATIONAL = frozenset(
    "english french german spanish italian greek roman latin american indian chinese japanese "
    "russian scottish scotch irish welsh dutch danish swedish norwegian polish turkish egyptian "
    "african asian european british christian jewish".split()
)
"""Adjectives that stand alone before a noun: "an English lawyer" names nobody."""
_NOT_A_NOUN = frozenset(
    "other others own same such left right last first second third next whole very more most few "
    "many much several another former latter only little great good old new young long short high "
    "low large small big best better least less one two three way thing sort kind lot bit".split()
)
"""What often follows an article or a possessive, and is seldom told about."""
_CONTENTS = re.compile(
    r"\s*(?:(?:table of )?contents|(?:chapter|book|part|volume|canto|act|scene)\s+[\divxlc]+\b.*"
    r"|.*(?:\.\s?){3,}\s*[\divxlc]+)\s*",
    re.IGNORECASE,
)
"""A line of front matter: a heading with its number, or an entry of a table with its page."""
_MYSELF = re.compile(r"I(?:['’]\w+|(?=\s+[a-z]))")
"""The pronoun after a name, ``In Detroit I saw``, which is no numeral by what follows."""
_LONGEST_HEADING: Final = 200
MOST_FORMS: Final = 200
MOST_WORDS: Final = 6
_OPENS = re.compile(r"(?:^|[.!?:;…—–\"'“”‘’()\[\]*_-]|\n\s*\n)\s*$")


@dataclass(frozen=True, slots=True)
class Name:
    """``name`` is the longest form, ``aliases`` are all forms with it, ``spans`` all places."""

    name: str
    aliases: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


def find_names(text: str) -> list[Name]:
    """Find names seen twice (once, if of several words), most frequent first."""
    found = GrowingNames()
    found.take(text, list(WORD.finditer(text)), stays=True)
    return sorted(found.all(), key=lambda name: (-len(name.spans), name.spans))


def find_mentioned(text: str, names: Sequence[Name]) -> list[Name]:
    """Select the names that have an alias in the text, as whole words."""
    flat = " ".join(text.split())
    return [
        name
        for name in names
        if any(
            alias in flat and re.search(rf"(?<!\w){re.escape(alias)}(?!\w)", flat)
            for alias in name.aliases
        )
    ]


def _is_name(form: str, count: int, inside: int, small: int) -> bool:
    first, *others = form.replace(".", " ").split()
    if not others and first.lower() in _NATIONAL:
        return False
    if others:
        return bool(inside) or first.lower() in _TITLES
    return bool(inside) and count > 1 and small <= count


def _is_heading(line: str) -> bool:
    """Whether a line is one of front matter, or all in capitals."""
    if line.isupper() and len(list(islice(WORD.finditer(line), 2))) > 1:
        return True
    return len(line) <= _LONGEST_HEADING and _CONTENTS.fullmatch(line) is not None


def _stands_inside(text: str, start: int) -> bool:
    """Whether no sentence, quotation or line begins at a place."""
    return _OPENS.search(text[max(0, start - 40) : start]) is None


def _runs(text: str, words: Iterable[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Yield runs of capitalised words, joined across titles' full stops and particles."""
    run: list[re.Match[str]] = []
    for match in words:
        word = match.group()
        joins = (
            bool(run)
            and _joins(text[run[-1].end() : match.start()], run[-1].group())
            and _MYSELF.match(text, match.start()) is None
        )
        if run and not joins:
            yield run
            run = []
        if word[0].isupper() or (run and word in _PARTICLES):
            run.append(match)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _joins(gap: str, before: str) -> bool:
    if gap.strip() == "." and before.lower() in _ABBREVIATED:
        return gap.count("\n") < 2
    return not gap.strip() and gap.count("\n") < 2


def _trim(run: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    first, last = 0, len(run)
    while first < last and re.split("['’]", run[first].group())[0].lower() in _NOT_A_NAME:
        first += 1
    while first < last and run[last - 1].group() in _PARTICLES:
        last -= 1
    if first < last:
        end = run[last - 1].end()
        if run[last - 1].group().endswith(("'s", "’s")):
            end -= 2
        yield run[first].start(), end


def _core(form: str) -> frozenset[str]:
    words = form.replace(".", " ").split()
    return frozenset([word for word in words if word.lower() not in _TITLES] or words)


def _parts(core: frozenset[str]) -> Iterator[frozenset[str]]:
    """Yield every choice of a name's words; of a long one all of them."""
    sizes = range(1, len(core) + 1) if len(core) <= MOST_WORDS else (len(core),)
    return map(frozenset, chain.from_iterable(combinations(core, size) for size in sizes))


class GrowingNames:
    """The names of a growing text, at each length those of all of it, each word read once.

    Words come in the order of the text. The last ones may mean something else once more follow:
    from ``open_from`` on they are taken provisionally (``stays`` False), and again with the next.
    """

    def __init__(self) -> None:
        self._spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._inside: Counter[str] = Counter()
        self._small: Counter[str] = Counter()
        self._places: list[tuple[int, int, str]] = []
        self._cores: dict[str, frozenset[str]] = {}
        self._forms_with: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._forms_of: defaultdict[frozenset[str], dict[str, None]] = defaultdict(dict)
        self._hosts: dict[str, str] = {}
        self._open_small: list[str] = []
        self._open_forms: list[tuple[str, bool]] = []

    @staticmethod
    def open_from(text: str, words: Sequence[re.Match[str]]) -> int:
        """Find where words may still change: at the run that the last one is in, or at it."""
        last = words[-1]
        for run in _runs(text, words):
            if run[-1] is last:
                return run[0].start()
        return last.start()

    def take(self, text: str, words: Sequence[re.Match[str]], *, stays: bool) -> None:
        """Read further words, in place of those taken provisionally."""
        self._hosts.clear()
        self._take_back()
        for word in (match.group() for match in words if match.group().islower()):
            self._small[word] += 1
            if not stays:
                self._open_small.append(word)
        line_end, is_heading = -1, False
        for start, end in chain.from_iterable(_trim(run) for run in _runs(text, words)):
            if start > line_end:  # a line is judged once, however long it is
                first, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", start)
                line_end = line_end if line_end >= 0 else len(text)
                is_heading = _is_heading(text[first:line_end])
            if is_heading:
                continue
            form, inside = " ".join(text[start:end].split()), _stands_inside(text, start)
            self._spans[form].append((start, end))
            self._inside[form] += inside
            self._places.append((start, end, form))
            if form not in self._cores:
                core = self._cores[form] = _core(form)
                self._forms_of[core][form] = None
                for part in core:
                    self._forms_with[part][form] = None
            if not stays:
                self._open_forms.append((form, inside))

    def all(self) -> Iterator[Name]:
        """Yield every name."""
        for form in self._spans:
            if self._keeps(form) and self._host(form) == form:
                aliases = self.aliases(form)
                yield Name(form, aliases, tuple(self._spans_of(aliases)))

    def within(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """List the places that begin in a range, each with its name."""
        first, last = (bisect_left(self._places, (place,)) for place in (start, end))
        found = self._places[first:last]
        return [(start, end, self._host(form)) for start, end, form in found if self._keeps(form)]

    def covers(self, place: int) -> bool:
        """Whether a place lies inside a name."""
        before = bisect_left(self._places, (place + 1,)) - 1
        if before < 0:
            return False
        _, end, form = self._places[before]
        return place < end and self._keeps(form)

    def aliases(self, name: str) -> tuple[str, ...]:
        """List the forms of a name, itself first."""
        alike = (self._forms_of.get(part, {}) for part in _parts(self._cores[name]))
        near = chain.from_iterable(forms for forms in alike if len(forms) <= MOST_FORMS)
        forms = [form for form in near if self._keeps(form) and self._host(form) == name]
        return tuple(dict.fromkeys([name, *sorted(forms, key=self._rank)]))

    def spans(self, name: str) -> list[tuple[int, int]]:
        """List the places of a name, in the order of the text."""
        return self._spans_of(self.aliases(name))

    def _spans_of(self, forms: Iterable[str]) -> list[tuple[int, int]]:
        return sorted(span for form in forms for span in self._spans[form])

    def _take_back(self) -> None:
        for word in self._open_small:
            self._small[word] -= 1
        for form, inside in reversed(self._open_forms):
            self._spans[form].pop()
            self._inside[form] -= inside
            self._places.pop()
        self._open_small, self._open_forms = [], []

    def _keeps(self, form: str) -> bool:
        count = len(self._spans[form])
        inside, small = self._inside[form], self._small[form.lower()]
        return count > 0 and _is_name(form, count, inside, small)

    def _rank(self, form: str) -> tuple[int, int, str]:
        return -len(self._cores[form]), -len(self._spans[form]), form

    def _host(self, form: str) -> str:
        """Find the name that a form belongs to: the only longer one with all its words, but titles.

        A name with a particle takes no other in: the King of Bohemia is not Bohemia. Nor does one
        of more than ``MOST_WORDS`` words: it is a list.
        """
        if form not in self._hosts:
            core, rank = self._cores[form], self._rank(form)
            rarest = min((self._forms_with[part] for part in core), key=len)
            longer = [
                other
                for other in (rarest if len(rarest) <= MOST_FORMS else ())
                if core <= self._cores[other]
                and len(self._cores[other]) <= MOST_WORDS
                and self._keeps(other)
                and self._rank(other) < rank
                and not _PARTICLES & set(other.split())
                and self._host(other) == other
            ]
            self._hosts[form] = longer[0] if len(longer) == 1 else form
        return self._hosts[form]


_BEFORE: Final = frozenset(
    "the a an his her my your their our its this that these those no every each some "
    "another".split()
)
LEAST_SHARE: Final = 0.25
LEAST_LETTERS: Final = 3
UNSURE: Final = 0.2


def find_nouns(text: str, *, min_count: int = 3) -> list[Name]:
    """Find English nouns seen ``min_count`` times in all their forms, most frequent first.

    A word in lower case counts as a noun where an article or a possessive precedes it often enough,
    and no further word of its kind follows. So some are missed, and some adjectives are taken for
    nouns. ``name`` is the commonest form; ``aliases`` are all forms of one stem.
    """
    found = GrowingNouns(min_count=min_count)
    found.take(list(WORD.finditer(text)))
    return sorted(found.all(), key=lambda noun: (-len(noun.spans), noun.spans))


class GrowingNouns:
    """The nouns of a growing text, at each length those of all of it.

    Words come in the order of the text, with the one after them, where that is known; those taken
    provisionally (``stays`` False) are replaced by the next.
    """

    def __init__(self, *, min_count: int = 3) -> None:
        import Stemmer

        self._min_count = min_count
        self._stop = STOP_WORDS
        self._skipped = self._stop | _NOT_A_NOUN | _NATIONAL
        self._stemmer = Stemmer.Stemmer("english")
        self._spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._forms: dict[str, Counter[str]] = defaultdict(Counter)
        self._marked: defaultdict[str, float] = defaultdict(float)
        self._places: list[tuple[int, int, str]] = []
        self._before: str | None = None
        self._open: list[tuple[str, str, float]] = []

    def take(
        self,
        words: Sequence[re.Match[str]],
        after: re.Match[str] | None = None,
        *,
        stays: bool = True,
    ) -> None:
        """Read further words."""
        self._take_back()
        for start, word, stem, mark in self._mark_nouns(words, after):
            if not stays:
                self._open.append((word, stem, self._marked[stem]))
            self._spans[stem].append((start, start + len(word)))
            self._forms[stem][word] += 1
            self._marked[stem] += mark
            self._places.append((start, start + len(word), stem))
        if stays and words:
            self._before = words[-1].group().lower()

    def all(self) -> Iterator[Name]:
        """Yield the nouns, by the first place of their stems."""
        for stem, spans in self._spans.items():
            if self._keeps(stem):
                yield Name(self.name(stem), self.aliases(stem), tuple(spans))

    def within(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """List the places of nouns that begin in a range, each with its stem."""
        first, last = (bisect_left(self._places, (place,)) for place in (start, end))
        found = self._places[first:last]
        return [each for each in found if self._keeps(each[2])]

    def name(self, stem: str) -> str:
        """Choose the form that is written most often."""
        return self._forms[stem].most_common(1)[0][0]

    def aliases(self, stem: str) -> tuple[str, ...]:
        """List the forms in the order in which they came."""
        return tuple(self._forms[stem])

    def spans(self, stem: str) -> Sequence[tuple[int, int]]:
        """List the places of a noun, in the order of the text."""
        return self._spans[stem]

    def _take_back(self) -> None:
        for word, stem, marked in reversed(self._open):
            self._places.pop()
            self._spans[stem].pop()
            self._marked[stem] = marked
            self._forms[stem][word] -= 1
            if not self._forms[stem][word]:
                del self._forms[stem][word]
        self._open = []

    def _keeps(self, stem: str) -> bool:
        count = len(self._spans[stem])
        return count >= max(1, self._min_count) and self._marked[stem] >= LEAST_SHARE * count

    def _mark_nouns(
        self, words: Sequence[re.Match[str]], last: re.Match[str] | None
    ) -> Iterator[tuple[int, str, str, float]]:
        """Yield words that may be nouns: start, form, stem, and how surely each is one."""
        if not words:
            return
        before = self._before
        for match, after in zip(words, [*words[1:], last], strict=True):
            word, earlier, before = match.group(), before, match.group().lower()
            if not word.islower() or word in self._skipped or len(word) < LEAST_LETTERS:
                continue
            word = re.sub(r"['’]s?$", "", word)
            mark = 0.0
            if earlier in _BEFORE:
                ends = after is None or _ends(after.group(), self._stop)
                mark = 1.0 if ends else UNSURE
            yield match.start(), word, self._stemmer.stemWord(word), mark


def _ends(after: str, stop: frozenset[str]) -> bool:
    """Whether the word after a noun belongs to something else."""
    return after.lower() in stop or not after.islower()
