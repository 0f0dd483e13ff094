from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgl.errors import ResourceError, UsageError
from mgl.models.profiles import load_profile
from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.models import Source, find_model
from mgl.retrieval.opening import open_embedder, open_reranker
from mgl.store import Store
from tests.openai.answering import Server, models, serving


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra were there; nothing of it is loaded before the first text."""
    monkeypatch.setattr("mgl.retrieval.computing.find_spec", lambda _name: object())


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "dims", "model_id"),
    [
        ("sentence-transformers/all-mpnet-base-v2", None, "all-mpnet-base-v2@78c0197b6159"),
        ("BAAI/bge-m3", 1024, "bge-m3@main"),
        ("qwen3-embedding-0.6b", 128, "qwen3-embedding-0.6b@main:128"),
        ("qwen3-embedding-0.6b:1024", None, "qwen3-embedding-0.6b@main"),
        ("Qwen/Qwen3-Embedding-0.6B:128", None, "qwen3-embedding-0.6b@main:128"),
    ],
)
def test_a_name_is_a_profiles_or_its_publishers(
    mgl_home: Path, name: str, dims: int | None, model_id: str
) -> None:
    embedder = open_embedder(name, mgl_home, dims=dims)
    assert embedder.model_id == model_id
    profile = load_profile(model_id.split("@")[0])
    assert profile.embedding is not None
    cut = int(model_id.partition(":")[2] or profile.embedding.dims)
    assert embedder.dims == (dims or cut) == cut
    embedder.close()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "model_id"),
    [
        ("ms-marco-minilm-l-6-v2", "ms-marco-minilm-l-6-v2@main"),
        ("BAAI/bge-reranker-v2-m3", "bge-reranker-v2-m3@main"),
        ("Qwen/Qwen3-Reranker-8B", "qwen3-reranker-8b@main"),
        ("all-minilm-l6-v2", "all-minilm-l6-v2@53aa51172d14 by late interaction"),
        ("identity", "identity"),
        ("similarity", "fake/words:64 by similarity, unfitted"),
    ],
)
def test_a_reranker_has_a_name(mgl_home: Path, name: str, model_id: str) -> None:
    assert open_reranker(name, mgl_home, embedder=WordEmbedder()).model_id == model_id


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("all-minilm", None),
        ("bge-reranker-v2-m3", None),
        ("all-minilm-l6-v2", 128),
        ("qwen3-embedding-0.6b:0", None),
        ("all-minilm-l6-v2:128", None),
        ("qwen3-embedding-0.6b:128", 64),
        ("qwen3-embedding-0.6b:", None),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_loaded(
    mgl_home: Path, name: str, dims: int | None
) -> None:
    with pytest.raises(UsageError):
        open_embedder(name, mgl_home, dims=dims)


def test_a_reranker_that_needs_another_model_says_so(mgl_home: Path) -> None:
    with pytest.raises(UsageError, match="similarity needs an embedding model"):
        open_reranker("similarity", mgl_home)


@pytest.fixture
def words() -> Iterator[Server]:
    def embeddings(body: dict[str, list[str]]) -> object:
        vectors = WordEmbedder().embed(body["input"]).tolist()
        return {"data": [{"index": at, "embedding": row} for at, row in enumerate(vectors)]}

    routes = {"/v1/models": models("text-embedding-x"), "/v1/embeddings": embeddings}
    with serving(routes) as running:
        yield running


def test_a_server_may_have_a_model_that_nobody_knows(
    mgl_home: Path, tmp_path: Path, words: Server
) -> None:
    source = Source(base_url=words.url)
    with pytest.raises(UsageError):
        open_embedder("text-embedding-x", mgl_home, source=source)
    with Store.open(tmp_path / "mgl.sqlite") as store:
        for _ in range(2):
            embedder = open_embedder(
                "text-embedding-x", mgl_home, dims=64, source=source, cache=store
            )
            assert embedder.model_id == "text-embedding-x+openai"
            assert embedder.embed(["Ann", "Bo"]) == pytest.approx(
                WordEmbedder().embed(["Ann", "Bo"]), abs=1e-6
            )
            embedder.close()
    assert len(words.bodies("/v1/embeddings")) == 1


def test_a_profile_of_ones_own_is_read(mgl_home: Path, words: Server) -> None:
    folder = mgl_home / "models"
    folder.mkdir()
    (folder / "mine.yaml").write_text(
        "name: mine\ndescription: a test\nlicence: MIT\nsource: https://example.org\n"
        "parameters: 1K\ncontext_tokens: 64\nengine: openai\ntask: embed\n"
        "embedding: {dims: 64, matryoshka: true, query_prefix: 'Q: '}\n"
        "weights: {format: safetensors, hub: {repo: example/text-embedding-x}}\n"
    )
    source = Source(base_url=words.url)
    embedder = open_embedder("mine", mgl_home, dims=8, source=source)
    assert embedder.model_id == "mine@main+openai:8"
    assert embedder.embed(["Ann"], task="query").shape == (1, 8)
    assert words.bodies("/v1/embeddings")[0]["input"] == ["Q: Ann"]
    embedder.close()


def model_folder(folder: Path, *, weights: bytes = b"x", **config: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def test_a_folder_is_known_by_its_weights(mgl_home: Path, tmp_path: Path) -> None:
    one = model_folder(tmp_path / "a" / "mine", hidden_size=48)
    same = model_folder(tmp_path / "b" / "mine", hidden_size=48)
    other = model_folder(tmp_path / "c" / "mine", hidden_size=48, weights=b"y")
    found = [find_model(path, "embed", Source(), mgl_home) for path in (one, str(same), other)]
    assert found[0].identity == found[1].identity != found[2].identity
    assert all(model.identity.startswith("mine@") for model in found)
    assert found[0].embedding is not None
    assert found[0].embedding.dims == 48


def test_a_folders_last_layer_says_how_long_its_vectors_are(mgl_home: Path, tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "mine", hidden_size=48)
    steps = [{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}, {"path": "3_Normalize"}]
    (folder / "modules.json").write_text(json.dumps(steps))
    for name, settings in (
        ("1_Pooling", {"word_embedding_dimension": 48}),
        ("2_Dense", {"in_features": 48, "out_features": 16}),
    ):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(settings))
    model = find_model(folder, "embed", Source(), mgl_home)
    assert model.embedding is not None
    assert model.embedding.dims == 16


def test_a_folder_without_a_model_is_refused(mgl_home: Path, tmp_path: Path) -> None:
    with pytest.raises(ResourceError):
        open_embedder(tmp_path, mgl_home)
    with pytest.raises(ResourceError):
        open_embedder(model_folder(tmp_path / "mine"), mgl_home)
    broken = model_folder(tmp_path / "broken")
    (broken / "config.json").write_text("{")
    with pytest.raises(ResourceError):
        open_reranker(broken, mgl_home)
