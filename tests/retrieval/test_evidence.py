"""Which sentences are taken to say what is claimed."""

from __future__ import annotations

from mgl.retrieval.evidence import find_evidence
from mgl.types import Document

TEXT = "Ann asked where the ring was. The ring lay under a stone in Malta. Ann wept."
ASKED = "Where was the ring of Ann?"


def test_evidence_prefers_what_the_question_does_not_say() -> None:
    document = Document.from_text("t", TEXT)
    within = document.span(0, len(TEXT))
    span, share = find_evidence(document, within, "The ring lay under a stone.", ASKED)
    assert document.quote(span) == "The ring lay under a stone in Malta."
    assert share > 0


def test_what_shares_no_word_with_the_claim_is_worth_nothing() -> None:
    document = Document.from_text("t", TEXT)
    span, share = find_evidence(document, document.span(0, len(TEXT)), "Bo laughs.", ASKED)
    assert (document.quote(span), share) == ("Ann asked where the ring was.", 0.0)
