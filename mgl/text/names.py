"""The names in a text, found by code: capitalised sequences, their aliases merged.

    >>> [found.name for found in find_names("I met Irene Adler. Miss Adler sang; so did Bo to Bo.")]
    ['Irene Adler', 'Bo']

A small model is not asked who is in a text: it invents. A capitalised word counts as a name if it
stands at least once where no sentence, quotation or line begins, and is not mostly written small.
It knows nothing of languages without capitals, and of none where common nouns carry them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

__all__ = ["WORD", "GrowingNames", "Name", "find_names", "mentioned"]

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
_MYSELF = re.compile(r"I(?:['’]\w+|(?=\s+[a-z]))")
"""The pronoun behind a name: ``In Detroit I saw``; that it is no number is told by what follows."""
_OPENS = re.compile(r"(?:^|[.!?:;…—–\"'“”‘’()\[\]*_-]|\n\s*\n)\s*$")


@dataclass(frozen=True, slots=True)
class Name:
    """``name`` is the longest form; ``aliases`` are all forms with it, ``spans`` all places."""

    name: str
    aliases: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


def find_names(text: str, *, min_count: int = 2) -> list[Name]:
    """Names seen at least ``min_count`` times (once, if of several words), most frequent first."""
    places: dict[str, list[tuple[int, int]]] = {}
    inside: Counter[str] = Counter()
    words = list(WORD.finditer(text))
    small = Counter(match.group() for match in words if match.group().islower())
    for start, end in chain.from_iterable(_trimmed(run) for run in _runs(text, words)):
        form = " ".join(text[start:end].split())
        places.setdefault(form, []).append((start, end))
        inside[form] += _stands_inside(text, start)
    kept = {
        form: spans
        for form, spans in places.items()
        if _is_name(form, len(spans), inside[form], small[form.lower()], min_count)
    }
    return _merge_aliases(kept)


def mentioned(text: str, names: Sequence[Name]) -> list[Name]:
    """The names of which an alias stands in the text as whole words."""
    flat = " ".join(text.split())
    return [
        name
        for name in names
        if any(re.search(rf"(?<!\w){re.escape(alias)}(?!\w)", flat) for alias in name.aliases)
    ]


def _is_name(form: str, count: int, inside: int, small: int, min_count: int) -> bool:
    first, *others = form.replace(".", " ").split()
    if others:
        return bool(inside) or first.lower() in _TITLES
    return bool(inside) and count >= min_count and small <= count


def _stands_inside(text: str, start: int) -> bool:
    """Whether no sentence, quotation or line begins at a place."""
    return _OPENS.search(text[max(0, start - 40) : start]) is None


def _runs(text: str, words: Iterable[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Runs of capitalised words, joined across titles' full stops and particles."""
    run: list[re.Match[str]] = []
    for match in words:
        word = match.group()
        joins = (
            bool(run)
            and _joined(text[run[-1].end() : match.start()], run[-1].group())
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


def _joined(gap: str, before: str) -> bool:
    if gap.strip() == "." and before.lower() in _ABBREVIATED:
        return gap.count("\n") < 2
    return not gap.strip() and gap.count("\n") < 2


def _trimmed(run: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
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


@lru_cache(maxsize=10_000)
def _core(form: str) -> frozenset[str]:
    words = form.replace(".", " ").split()
    return frozenset([word for word in words if word.lower() not in _TITLES] or words)


def _merge_aliases(places: dict[str, list[tuple[int, int]]]) -> list[Name]:
    """A form joins the only longer name that holds all its words, titles aside. A name with a
    particle in it takes nobody in: the King of Bohemia is not Bohemia."""
    hosts: dict[str, list[str]] = {}
    for form in sorted(places, key=lambda form: (-len(_core(form)), -len(places[form]), form)):
        longer = [
            host
            for host in hosts
            if _core(form) <= _core(host) and not _PARTICLES & set(host.split())
        ]
        host = longer[0] if len(longer) == 1 else form
        hosts.setdefault(host, []).append(form)
    names = [
        Name(
            host,
            tuple(dict.fromkeys([host, *forms])),
            tuple(sorted(span for form in forms for span in places[form])),
        )
        for host, forms in hosts.items()
    ]
    return sorted(names, key=lambda name: (-len(name.spans), name.spans))


class GrowingNames:
    """The names of a text that grows: at each length those that ``find_names`` finds in all of it,
    without reading again what was read.

    Words come in the order of the text. The last may mean something else once more follows: from
    ``open_from`` on they are taken for the time being (``stays`` False), and again with the next.
    """

    def __init__(self, *, min_count: int = 2) -> None:
        self._min_count = min_count
        self._spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._inside: Counter[str] = Counter()
        self._small: Counter[str] = Counter()
        self._places: list[tuple[int, int, str]] = []
        self._forms_with: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._hosts: dict[str, str] = {}
        self._open_small: list[str] = []
        self._open_forms: list[tuple[str, bool]] = []

    @staticmethod
    def open_from(text: str, words: Sequence[re.Match[str]]) -> int:
        """Where what may still change begins: the run that the last word is in, or that word."""
        last = words[-1]
        for run in _runs(text, words):
            if run[-1] is last:
                return run[0].start()
        return last.start()

    def take(self, text: str, words: Sequence[re.Match[str]], *, stays: bool) -> None:
        """Read further words; what was taken for the time being is forgotten first."""
        self._hosts.clear()
        self._take_back()
        for word in (match.group() for match in words if match.group().islower()):
            self._small[word] += 1
            if not stays:
                self._open_small.append(word)
        for start, end in chain.from_iterable(_trimmed(run) for run in _runs(text, words)):
            form, inside = " ".join(text[start:end].split()), _stands_inside(text, start)
            self._spans[form].append((start, end))
            self._inside[form] += inside
            self._places.append((start, end, form))
            for part in _core(form):
                self._forms_with[part][form] = None
            if not stays:
                self._open_forms.append((form, inside))

    def within(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """The places that begin in a range, each with the name that stands there."""
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
        """All forms of a name, itself first."""
        core = _core(name)
        near = {form for part in core for form in self._forms_with[part] if _core(form) <= core}
        forms = [form for form in near if self._keeps(form) and self._host(form) == name]
        return tuple(dict.fromkeys([name, *sorted(forms, key=self._rank)]))

    def spans(self, name: str) -> list[tuple[int, int]]:
        """All places of a name, in the order of the text."""
        return sorted(span for form in self.aliases(name) for span in self._spans[form])

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
        return count > 0 and _is_name(form, count, inside, small, self._min_count)

    def _rank(self, form: str) -> tuple[int, int, str]:
        return -len(_core(form)), -len(self._spans[form]), form

    def _host(self, form: str) -> str:
        """The name that a form belongs to, as ``_merge_aliases`` joins them."""
        if form not in self._hosts:
            core, rank = _core(form), self._rank(form)
            rarest = min((self._forms_with[part] for part in core), key=len)
            longer = [
                other
                for other in rarest
                if core <= _core(other)
                and self._keeps(other)
                and self._rank(other) < rank
                and not _PARTICLES & set(other.split())
                and self._host(other) == other
            ]
            self._hosts[form] = longer[0] if len(longer) == 1 else form
        return self._hosts[form]
