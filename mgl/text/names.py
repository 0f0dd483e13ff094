"""The names in a text, found by code: capitalised sequences, their aliases merged.

    >>> [found.name for found in find_names("I met Irene Adler. Miss Adler sang; so did Bo to Bo.")]
    ['Irene Adler', 'Bo']

A small model is not asked who is in a text: it invents. A capitalised word counts as a name if it
stands at least once where no sentence, quotation or line begins, and is not mostly written small.
It knows nothing of languages without capitals, and of none where common nouns carry them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Name", "find_names", "mentioned"]

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
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
    small = Counter(match.group() for match in _WORD.finditer(text) if match.group().islower())
    for start, end in _sequences(text):
        form = " ".join(text[start:end].split())
        places.setdefault(form, []).append((start, end))
        inside[form] += _OPENS.search(text[max(0, start - 40) : start]) is None
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


def _sequences(text: str) -> Iterator[tuple[int, int]]:
    """Runs of capitalised words, joined across titles' full stops and particles."""
    run: list[re.Match[str]] = []
    for match in _WORD.finditer(text):
        word = match.group()
        joins = (
            bool(run)
            and _joined(text[run[-1].end() : match.start()], run[-1].group())
            and _MYSELF.match(text, match.start()) is None
        )
        if run and not joins:
            yield from _trimmed(run)
            run = []
        if word[0].isupper() or (run and word in _PARTICLES):
            run.append(match)
        elif run:
            yield from _trimmed(run)
            run = []
    yield from _trimmed(run)


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
