"""Texts matched token by token: the arithmetic by hand, the model on random weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.retrieval.matching import (
    Matching,
    TokenEncoder,
    TokenVectors,
    greedy_matching,
    open_matcher,
)
from mgl.retrieval.models import Source
from mgl.store import Store
from tests.retrieval import tiny

real = pytest.mark.retrieval
quiet = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def tokens(*vectors: tuple[float, ...], marks: tuple[int, ...] = ()) -> TokenVectors:
    """Vectors put to length 1; ``marks`` are the places of those that are no words."""
    rows = np.array(vectors, dtype=np.float32)
    own = np.array([place not in marks for place in range(len(rows))])
    return TokenVectors(rows / np.linalg.norm(rows, axis=1, keepdims=True), own)


EAST, NORTH, BETWEEN = (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)
HALFWAY = math.sqrt(0.5)


class TestGreedyMatching:
    def test_by_hand(self) -> None:
        """East is there; between is as near to east as to north. North finds between alone."""
        found = greedy_matching(tokens(EAST, BETWEEN), tokens(EAST, NORTH))
        assert found.precision == pytest.approx((1 + HALFWAY) / 2)
        assert found.recall == pytest.approx((1 + HALFWAY) / 2)
        assert found.f1 == pytest.approx((1 + HALFWAY) / 2)

    def test_one_token_may_be_matched_by_many(self) -> None:
        found = greedy_matching(tokens(EAST), tokens(EAST, EAST, NORTH))
        assert found.precision == 1
        assert found.recall == pytest.approx(2 / 3)
        assert found.f1 == pytest.approx(2 * (2 / 3) / (5 / 3))

    def test_marks_may_be_matched_and_are_not_counted(self) -> None:
        found = greedy_matching(tokens(EAST, NORTH, marks=(1,)), tokens(NORTH, EAST, marks=(1,)))
        assert (found.precision, found.recall) == (1, 1)
        alone = greedy_matching(tokens(EAST), tokens(NORTH, EAST, marks=(1,)))
        assert (alone.precision, alone.recall) == (1, 0)

    def test_what_is_turned_away_is_below_nothing(self) -> None:
        assert greedy_matching(tokens(EAST), tokens((-1.0, 0.0))) == (-1, -1, -1)
        found = greedy_matching(tokens(EAST, NORTH), tokens((-1.0, 0.0)))
        assert found == pytest.approx((-1 / 2, 0, 0))

    @given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
    @settings(deadline=None)
    def test_turned_round_precision_is_recall(self, seed: int, one: int, other: int) -> None:
        draw = np.random.default_rng(seed)
        said, wanted = (tokens(*map(tuple, draw.normal(size=(n, 4)))) for n in (one, other))
        there, back = greedy_matching(said, wanted), greedy_matching(wanted, said)
        assert there.precision == pytest.approx(back.recall)
        assert there.recall == pytest.approx(back.precision)
        assert there.f1 == pytest.approx(back.f1)
        assert min(there[:2]) - 1e-6 <= there.f1 <= max(there[:2]) + 1e-6 or min(there[:2]) < 0
        assert greedy_matching(said, said) == pytest.approx((1, 1, 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "roberta"
    path.mkdir()
    return tiny.roberta(path)


@real
@quiet
class TestTokenEncoder:
    def test_it_is_the_hidden_states_of_the_layer(self, folder: Path) -> None:
        torch: Any = pytest.importorskip("torch")
        transformers: Any = pytest.importorskip("transformers")
        text = "Ann met Bo in Rome."
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.AutoModel.from_pretrained(folder).eval()
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        for layer in (0, 1, 2):
            by_hand = states.hidden_states[layer][0]
            by_hand = (by_hand / by_hand.norm(dim=-1, keepdim=True)).numpy()
            found = TokenEncoder(folder, model_id="tiny", layer=layer).encode(f"  {text}\n")
            np.testing.assert_allclose(found.vectors, by_hand, atol=1e-6)
            assert found.own.tolist() == [False, *[True] * 6, False]
        last = TokenEncoder(folder, model_id="tiny").encode(text)
        np.testing.assert_allclose(last.vectors, by_hand, atol=1e-6)

    def test_roberta_reads_the_first_word_as_one_within_a_text(self, tmp_path: Path) -> None:
        """Its tokens hold the space before a word (Ġ); sentencepiece's models put one there."""
        tokenizers: Any = pytest.importorskip("tokenizers")
        transformers: Any = pytest.importorskip("transformers")
        known = {one: number for number, one in enumerate(["<s>", "<pad>", "</s>", *"Annmet", "Ġ"])}
        bare = tokenizers.Tokenizer(tokenizers.models.BPE(known, []))
        bare.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=bare, pad_token="<pad>", model_max_length=16
        ).save_pretrained(tmp_path)
        sizes = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}
        config = transformers.RobertaConfig(
            vocab_size=16, num_hidden_layers=1, max_position_embeddings=20, **sizes
        )
        transformers.RobertaModel(config).save_pretrained(tmp_path)
        found = TokenEncoder(tmp_path, model_id="tiny").encode("Ann")
        assert found.vectors.shape == (4, 8)

    @pytest.mark.parametrize("text", ["", " \n", "ring " * 5000, "half a pair \ud800", "\x00"])
    def test_odd_texts(self, folder: Path, text: str) -> None:
        found = TokenEncoder(folder, model_id="tiny").encode(text)
        assert found.own.any() == bool(text.strip())
        assert found.vectors.shape == (len(found.own), tiny.HIDDEN)
        assert len(found.own) <= 64, "cut to what the tokenizer takes"


@real
@quiet
class TestMatcher:
    def test_a_pair_is_computed_once_and_found_without_the_model(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Store.open(tmp_path / "mgl.sqlite") as store:
            match = open_matcher(f"{folder}:1", tmp_path, Source(), store)
            assert match.model_id.startswith("roberta@")
            assert match.model_id.endswith(":1")
            first = match("Ann met Bo.", "Bo met Ann.")
            assert 0 < first.f1 <= 1
            monkeypatch.setattr("mgl.retrieval.matching.TokenEncoder", None)
            again = open_matcher(f"{folder}:1", tmp_path, Source(), store)
            assert again("Ann met Bo.", "Bo met Ann.") == first
            with pytest.raises(TypeError):
                again("Bo met Ann.", "Ann met Bo.")

    def test_the_same_text_matches_wholly(self, folder: Path, tmp_path: Path) -> None:
        match = open_matcher(str(folder), tmp_path, Source())
        assert match.model_id.endswith(":last")
        assert match("Ann met Bo.", "Ann met Bo.") == Matching(1, 1, 1)
        assert match("", "Ann.") == match("Ann.", "") == Matching(0, 0, 0)

    def test_it_is_what_the_authors_package_says(self, folder: Path, tmp_path: Path) -> None:
        package: Any = pytest.importorskip("bert_score", reason="the oracle is not installed")
        match = open_matcher(f"{folder}:1", tmp_path, Source())
        said = ["Ann met Bo in Rome.", "The ring was lost at sea.", "yes"]
        wanted = ["Bo met Ann.", "Where was the ring?", "The ring was lost at sea, in Rome."]
        theirs = package.score(said, wanted, model_type=str(folder), num_layers=1)
        for place, pair in enumerate(zip(said, wanted, strict=True)):
            assert match(*pair) == pytest.approx([float(one[place]) for one in theirs], abs=1e-5)
