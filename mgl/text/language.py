"""The language of a text, and what mgl itself says of an answer in the language of its question.

    >>> find_language("Wo wohnt mein Bruder jetzt?"), find_language("Who is König?")
    ('de', 'en')

A small model that is asked to decline in another language mostly does so in English, so models
decline by one English sentence, and people are shown it in the language of their question.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, NamedTuple

_SURE: Final = 0.7
"""Probability from which a language is taken, English below it; ours. Of 2,295 English questions
none is taken for another language, of 40 others one is taken for English."""

_ENGLISH: Final = re.compile(
    r"\W*(?:what|which|who|whom|whose|when|where|why|how|did|does)\b", re.IGNORECASE
)
"""The first word of most English questions and of no other language's: they need no model, which
takes a third of a second to load."""


class Phrases(NamedTuple):
    """The ``name`` of a language, as models know it; that a conversation does not tell an answer;
    and what stands before a guess about a text."""

    name: str
    unmentioned: str
    doubt: str


ENGLISH: Final = Phrases(
    "English", "Not mentioned in the conversation.", "Not found in the text; the model's guess: "
)

PHRASES: Final = {
    "en": ENGLISH,
    "cs": Phrases(
        "Czech", "V rozhovoru to nebylo zmíněno.", "V textu nenalezeno; model se domnívá: "
    ),
    "de": Phrases(
        "German",
        "Das wurde im Gespräch nicht erwähnt.",
        "Im Text nicht gefunden; das Modell vermutet: ",
    ),
    "es": Phrases(
        "Spanish",
        "No se mencionó en la conversación.",
        "No se encuentra en el texto; el modelo supone: ",
    ),
    "fr": Phrases(
        "French",
        "Cela n'a pas été mentionné dans la conversation.",
        "Introuvable dans le texte ; le modèle suppose : ",
    ),
    "it": Phrases(
        "Italian",
        "Non è stato menzionato nella conversazione.",
        "Non trovato nel testo; il modello suppone: ",
    ),
    "ja": Phrases(
        "Japanese", "会話では触れられていません。", "本文には見つかりません。モデルの推測："
    ),
    "ko": Phrases(
        "Korean", "대화에서 언급되지 않았습니다.", "본문에서 찾지 못했습니다. 모델의 추측: "
    ),
    "nl": Phrases(
        "Dutch",
        "Dat is niet genoemd in het gesprek.",
        "Niet gevonden in de tekst; het model vermoedt: ",
    ),
    "pl": Phrases(
        "Polish",
        "Nie wspomniano o tym w rozmowie.",
        "Nie znaleziono w tekście; model przypuszcza: ",
    ),
    "pt": Phrases(
        "Portuguese",
        "Isso não foi mencionado na conversa.",
        "Não encontrado no texto; o modelo supõe: ",
    ),
    "ru": Phrases(
        "Russian",
        "В разговоре об этом не упоминалось.",
        "В тексте не найдено; модель предполагает: ",
    ),
    "sv": Phrases(
        "Swedish", "Det nämndes inte i samtalet.", "Hittades inte i texten; modellen gissar: "
    ),
    "tr": Phrases(
        "Turkish", "Konuşmada bundan bahsedilmedi.", "Metinde bulunamadı; modelin tahmini: "
    ),
    "uk": Phrases(
        "Ukrainian", "У розмові про це не згадувалося.", "У тексті не знайдено; модель припускає: "
    ),
    "zh": Phrases("Chinese", "对话中没有提到。", "文中未找到；模型猜测："),
}
"""By ISO 639-1 code."""

_ALSO: Final = tuple("af az be bg ca da fi gl hu no ro sk".split())
"""Languages without phrases, told from those that have some; their questions are met in English."""


def find_phrases(text: str) -> Phrases:
    """The phrases of the language of a short text; English where it is not told for sure, or where
    the words without capitals tell another: an English question may be full of foreign names."""
    phrases = PHRASES.get(language := find_language(text), ENGLISH)
    if phrases is ENGLISH:
        return ENGLISH
    first, *rest = (text.lower() if text.isupper() else text).split()
    small = " ".join((first, *(word for word in rest if word == word.lower())))
    return phrases if _identifier().classify(small)[0] == language else ENGLISH


def find_language(text: str, unsure: str = "en") -> str:
    """The language of a text, by its ISO 639-1 code; ``unsure`` where it cannot be told."""
    if _ENGLISH.match(text):
        return "en"
    language, probability = _identifier().classify(text)
    return str(language) if probability >= _SURE else unsure


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([*PHRASES, *_ALSO])
    return identifier
