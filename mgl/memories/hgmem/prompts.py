"""The prompts of HGMem: those of Fig. 4–7 as printed, and the same for JSON.

``…_JSON`` are made of the printed ones: the same words, but for an output that ``proposals`` reads.
The paper prints no prompt for the answer: that one is the baselines' (``mgl.memories.calls``).
"""

from __future__ import annotations

from mgl.memories.hgmem.printed import CONCERNS, EVOLVE, MERGE, SUBQUERY
from mgl.prompt import Prompt


def _for_json(printed: Prompt, name: str, what: str, *changes: tuple[str, str, str]) -> Prompt:
    """A printed prompt with the passages from one text up to another put in other words."""
    text = printed.text
    for first, upto, instead in changes:
        start = text.index(first)
        text = text[:start] + instead + text[text.index(upto, start) :]
    variables = tuple(each for each in printed.variables if "{" + each + "}" in text)
    return Prompt(name, f"ours, after {printed.source}: {what}", text, variables)


def _evolve(name: str, what: str, *, update: str) -> Prompt:
    """``update`` is the form of an updated point; "" where none is updated."""
    lists = "a list of inserted memory points"
    form = '"inserted": [{"objects": ["...", "..."], "description": "..."}, ...]'
    how = """\
- For memory insertion, just give the newly-inserted memory points in "inserted", each with its \
related objects, two or more, and its description. If there's no meaningful memory points to \
insert that can bring new information besides current [Memory], the list is empty.
"""
    operations = [] if update else [("- (2) **Update", "\nFor each inserted", "")]
    if update:
        lists = "two separate lists of inserted and updated memory points"
        form += f', "updated": [{update}, ...]'
        objects = ", its related objects" if '"objects"' in update else ""
        how += f"""\
- For memory update, indicate the indices of existing memory points to be updated and give the \
newly-updated memory point(s) in "updated", each with its index{objects} and its description. If \
there's no existing memory points to update, the list is empty.
"""
    output = f"2. Output in {{language}} as a JSON object with {lists}:\n{{{form}}}\n{how}\n"
    return _for_json(
        EVOLVE,
        name,
        what,
        *operations,
        ("For each inserted", "The [Main Query], [Memory], [Current", output),
        (" Please output your results", "\n\n#####-Example", ""),
        ("#####-Example", "#####-Real Data", ""),
    )


EVOLVE_JSON = _evolve(
    "hgmem.evolve_json",
    "an update names no objects, which stay as they are (§3.5)",
    update='{"point": index, "description": "..."}',
)
INSERT_JSON = _evolve("hgmem.insert_json", "where there is nothing to update", update="")
REPLACE_JSON = _evolve(
    "hgmem.replace_json",
    "an update names objects too, as printed there",
    update='{"point": index, "objects": ["...", "..."], "description": "..."}',
)
MERGE_JSON = _for_json(
    MERGE,
    "hgmem.merge_json",
    "only the output is JSON",
    (
        "Format each",
        "#####-Real Data",
        """Output using {language} as a JSON object with the reorganized memory points, each with \
the indices of the points it is made of, two or more, and its new description.
{"merges": [{"points": [index, index], "description": "..."}, ...]}

""",
    ),
    ("output <None>", ".\n(7)", "the list is empty"),
)
CONCERNS_JSON = _for_json(
    CONCERNS,
    "hgmem.concerns_json",
    "only the output is JSON",
    ("output <None>", "\nCase 2", "give no concerns."),
    (
        "Output as **Example",
        "using corresponding case",
        """Output a JSON object of the form of its case:
Case 1: {"judgement": "1"}
Case 2.1: {"judgement": "2.1", "concerns": [{"point": index, "concern": "..."}, ...]}
Case 2.2: {"judgement": "2.2", "concerns": [{"concern": "..."}, ...]}
Specifically, give your judgement in "judgement" """,
    ),
    ("#####-Example", "#####-Real Data", ""),
    ("(4) Your generated", "#####\nOutput", ""),
)
SUBQUERY_JSON = _for_json(
    SUBQUERY,
    "hgmem.subquery_json",
    "only the output is JSON",
    ("in [Subquery] to", "to better", ""),
    ("#####-Anticipated", "#####-Real Data", 'Output a JSON object: {"subquery": "..."}\n\n'),
)
