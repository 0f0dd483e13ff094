"""Rows of human labels, and evaluation on what an adapter learnt from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.errors import InputError
from mgl.evaluation.runs.plan import check_leaks
from mgl.models.adapters import hash_question, write_adapter
from mgl.training.corpora import collect
from mgl.training.data import (
    WRITTEN,
    Dialogue,
    Example,
    Pair,
    Preference,
    read_rows,
    split,
    write_rows,
)
from mgl.training.fitting import FitSettings, Fitted
from mgl.training.records import Base, Trained, Training, keep_training
from tests.cli.conftest import Mgl
from tests.evaluation.small_data import WRITERS

PARAGRAPHS = [["Ann", ["Ann met Bo.", " They left."]], ["Bo", ["Bo sold a ring."]], ["Cy", ["."]]]
HOTPOT = {
    "question": "Who sold what?",
    "supporting_facts": [["Ann", 0], ["Bo", 0]],
    "context": PARAGRAPHS,
}
MUSIQUE = {
    "question": "What did the man whom Ann met sell?",
    "paragraphs": [
        {"title": title, "paragraph_text": "".join(said), "is_supporting": title == "Bo"}
        for title, said in PARAGRAPHS
    ],
}
TIAGE = {"1": [["Hi!", "-1"], ["I have a dog.", "0"], ["I work in a bank.", "1"]]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, place in (("locomo", "locomo"), ("longmemeval-s", "longmemeval")):
        WRITERS[name](tmp_path / place)
    for name, value in {
        "multihop/hotpotqa_train100.json": [HOTPOT],
        "multihop/musique_train100.json": [MUSIQUE],
        "tiage/train.json": TIAGE,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(value))
    return tmp_path


def test_gold_evidence_becomes_pairs_with_source_and_licence(folder: Path) -> None:
    rows = collect(["locomo", "longmemeval-s", "hotpotqa", "musique"], folder)
    said = [(row.question, row.positive) for row in rows if isinstance(row, Pair)]
    assert said == [
        ("Where does Ann live?", "Ann: Ann lives in Oslo."),
        ("Where did Bo go?", "Bo: Bo met Ann in Rome."),
        ("Where was it sunny?", "user: It was sunny in Rome."),
        ("Who sold what?", "Ann: Ann met Bo. They left."),
        ("Who sold what?", "Bo: Bo sold a ring."),
        ("What did the man whom Ann met sell?", "Bo: Bo sold a ring."),
    ]
    assert {row.corpus: row.licence for row in rows} == {
        "locomo": "CC BY-NC 4.0",
        "longmemeval-s": "MIT",
        "hotpotqa": "CC BY-SA 4.0",
        "musique": "CC BY 4.0",
    }
    assert all("Cy: ." in row.negatives for row in rows[3:] if isinstance(row, Pair))


def test_support_is_asked_of_a_passage_that_says_the_answer_and_of_one_that_does_not(
    tmp_path: Path,
) -> None:
    said = [["Ann", ["Ann met Bo in Oslo."]], ["Bo", ["Bo sold a ring."]], ["Cy", ["Cy sold."]]]
    facts = [["Ann", 0], ["Bo", 0]]
    asked = {"supporting_facts": facts, "context": said}
    rows = [
        {**asked, "question": "Who sold what?", "answer": "a ring"},
        {**asked, "question": "Did Bo sell it?", "answer": "yes"},
        {**asked, "question": "Where did Ann meet Bo?", "answer": "Oslo"},
    ]
    (tmp_path / "multihop").mkdir()
    (tmp_path / "multihop" / "hotpotqa_train100.json").write_text(json.dumps(rows))
    found = [row for row in collect(["hotpotqa-support"], tmp_path) if isinstance(row, Example)]
    assert [row.completion for row in found] == ["Yes", "No", "Yes", "No"], "none of a yes"
    shown = [row.prompt[1][1] for row in found]
    assert "Bo: Bo sold a ring.\n\nQuestion: Who sold what?\nProposed answer: a ring" in shown[0]
    assert "Cy: Cy sold.\n\nQuestion: Who sold what?\nProposed answer: a ring" in shown[1]


def test_labels_of_shifts_become_dialogues(folder: Path) -> None:
    (row,) = collect(["tiage"], folder)
    assert isinstance(row, Dialogue)
    assert (row.lines, row.shifts) == (("Hi!", "I have a dog.", "I work in a bank."), (2,))


def test_a_held_out_source_gives_no_row(folder: Path) -> None:
    assert collect(["locomo"], folder, hold_out={"c"}) == []


def test_the_command_writes_rows_that_are_read_again(mgl: Mgl, folder: Path) -> None:
    out = folder / "rows.jsonl"
    told = mgl(
        "train", "data", "--corpus", "hotpotqa,musique", "--data", folder, "--out", out, "--json"
    )
    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["by_corpus"] == {"hotpotqa": 2, "musique": 1}
    assert read_rows(out, Pair) == collect(["hotpotqa", "musique"], folder)
    with pytest.raises(InputError, match=r"line 1, is no dialogue"):
        read_rows(out, Dialogue)


def test_what_a_model_is_to_write_is_kept_with_its_lineage(tmp_path: Path) -> None:
    prompt = (("system", "You are brief."), ("user", "Who sold “it”?\n\u2028Say."))
    asked = [
        Example(prompt, '{"who": "Bo"}', "{}", f"source {n}", "log", "own", ("a", "b"))
        for n in range(20)
    ]
    better = [Preference(prompt, "Bo", "Ann", "", "source", "log", "own")]
    write_rows(asked, tmp_path / "asked")
    write_rows(better, tmp_path / "better")
    assert read_rows(tmp_path / "asked", Example) == asked
    assert read_rows(tmp_path / "better", Preference) == better
    train, development = split(asked)
    assert train
    assert development
    assert not {row.source for row in train} & {row.source for row in development}
    with pytest.raises(InputError, match="line 1, is no preference"):
        read_rows(tmp_path / "asked", Preference)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("data", "--corpus", "locmo", "--out", "x"), "there is no corpus called 'locmo'"),
        (("data", "--corpus", "tiage-dev", "--out", "x"), "is not there"),
        (("retriever", "mine"), "there is nothing to learn from"),
        (("retriever", "../mine", "--rows", "x"), "cannot be an adapter's name"),
        (("retriever", "mine", "--rows", "none.jsonl"), "none.jsonl cannot be read"),
    ],
)
def test_what_cannot_be_trained_is_one_line(
    mgl: Mgl, folder: Path, arguments: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGL_DATA", str(folder))
    result = mgl("train", *arguments)
    assert result.exit_code in (2, 3)
    assert told in result.stderr
    assert result.stderr.count("\n") == 2


MANIFEST = {"kind": "retriever", "base": "all-minilm-l6-v2", "licence": "MIT"}


def test_a_language_model_is_refused_where_it_learnt(
    mgl: Mgl, folder: Path, mgl_home: Path
) -> None:
    from mgl.benchmarks.locomo import LOCOMO

    learnt = {"sources": [LOCOMO.read(folder / "locomo").sources["c"]().id]}
    written = {**MANIFEST, "kind": "builder", "base": "smollm2-135m", **learnt}
    write_adapter("mine", mgl_home, written, [])
    run = ("eval", "run", "locomo", "--memory", "turns", "--data", folder / "locomo")
    refused = mgl(*run, "--adapter", "mine", "--model", "smollm2-135m", "--out", folder / "run")
    assert refused.exit_code == 2
    assert "mine was trained on c, which this run measures" in refused.stderr


@pytest.mark.parametrize("by", ["source", "question"])
@pytest.mark.parametrize(
    ("kind", "using"),
    [
        ("retriever", ("--memory", "turns", "--embedder", "mine")),
        ("reranker", ("--memory", "gam", "--reranker", "mine")),
        ("boundary", ("--memory", "gam", "--set", "boundaries=mine")),
    ],
)
def test_evaluation_refuses_what_an_adapter_learnt_from(
    mgl: Mgl, folder: Path, mgl_home: Path, by: str, kind: str, using: tuple[str, ...]
) -> None:
    from mgl.benchmarks.locomo import LOCOMO

    dataset = LOCOMO.read(folder / "locomo")
    source = dataset.sources["c"]().id
    learnt = {"sources": [source]}
    if by == "question":
        learnt = {"questions": [hash_question("where does ann  LIVE?")]}
    adapter = write_adapter("mine", mgl_home, {**MANIFEST, **learnt, "kind": kind}, [])
    refused = mgl(
        *("eval", "run", "locomo", "--retrieve-only", *using, "--data", folder / "locomo")
    )
    assert refused.exit_code == 2
    assert "mine was trained on c, which this run measures" in refused.stderr
    (note,) = check_leaks([adapter], dataset.items, dataset, allow=True)
    assert "was trained on c: its scores are no test" in note


def test_one_that_was_adapted_to_a_text_is_marked_and_others_are_not(
    folder: Path, mgl_home: Path
) -> None:
    from mgl.benchmarks.locomo import LOCOMO

    dataset = LOCOMO.read(folder / "locomo")
    own = {"adapted_to": [dataset.sources["c"]().id]}
    adapter = write_adapter("mine", mgl_home, {**MANIFEST, **own}, [])
    (note,) = check_leaks([adapter], dataset.items, dataset)
    assert note == f"{adapter.identity} was adapted to the text of c"
    other = write_adapter("other", mgl_home, {**MANIFEST, "sources": ["elsewhere"]}, [])
    assert check_leaks([other], dataset.items, dataset) == ()


def test_questions_that_a_model_wrote_adapt_and_labels_of_the_same_text_are_learnt(
    tmp_path: Path,
) -> None:
    for name in ("model.safetensors", "lora"):
        (tmp_path / name).touch()
    trained = Trained(Fitted([], []), {}, [tmp_path / "lora"])
    rows = [
        Pair("Who sold a ring?", "Bo sold a ring.", (), "a book", WRITTEN, "the user's"),
        Pair("Who met Bo?", "Ann met Bo.", (), "a book", "musique", "CC BY 4.0"),
        Pair("Who left?", "They left.", (), "a diary", WRITTEN, "the user's"),
    ]
    training = Training("mine", FitSettings(), tmp_path)
    base = Base("b", tmp_path)
    adapter = keep_training(training, "retriever", rows, lambda _: trained, base)
    assert adapter.manifest.sources == ("a book",)
    assert adapter.manifest.adapted_to == ("a book", "a diary")
    assert adapter.manifest.questions == (hash_question("Who met Bo?"),)
