"""The prompts of the judges: MindGraph's, HGMem's and BEAM's as printed, and ours.

What a paper prints is reproduced; docs/prompts.md lists what the text extraction had damaged and
how it was repaired. For benchmarks whose judge no paper here prints, the same criteria in our own
words. Ours ask for a reason before the verdict, and say that length and style do not count.
"""

from __future__ import annotations

from mgl.prompt import Prompt

MINDGRAPH = Prompt(
    "mindgraph.judge",
    source="MindGraph D.4",
    text=(
        "You are a strict but fair grading judge. Given a question, a gold (reference) answer, and "
        "a predicted answer, decide if the predicted answer is essentially correct -- i.e. it "
        "conveys the same core meaning as the gold answer, even if phrased differently, more "
        "verbose, or using synonyms.\n"
        "\n"
        'Important: For list-type questions (e.g. "what animals...", "what techniques..."), the '
        "predicted answer must include ALL key items from the gold answer. A partial list that "
        "misses important items, or a list with substantially different items, should be marked "
        "incorrect.\n"
        "\n"
        "Question: {question}\n"
        "Gold answer: {gold}\n"
        "Predicted answer: {predicted}\n"
        "\n"
        "Reply with ONLY a JSON object:\n"
        '{ "correct": true/false, "reason": "brief explanation" }'
    ),
    variables=("question", "gold", "predicted"),
)


def _evaluation(name: str, figure: str, measure: str, levels: str, note: str) -> Prompt:
    """A figure of HGMem's: what is measured, its five levels, and a note (2) that one of them has.

    Fig. 9 asks for a level of comprehensiveness, too, as printed.
    """
    notes = [
        "You should reference to the [Paragraph] and avoid misinterpreting any content of "
        "[Paragraph] as part of the [Response].",
        *([note] if note else []),
        "If [Response] contains extra content not directly included in the [Paragraph], as long as "
        "the extra content is correct, do not consider the extra content as defects for giving "
        "final evaluation.",
        "You should conform to the -Anticipated Output Format- and give your evaluation results in "
        "[Your Evaluation].",
    ]
    numbered = "\n".join(f"({number}) {text}" for number, text in enumerate(notes, start=1))
    return Prompt(
        f"hgmem.{name}",
        source=f"HGMem {figure}",
        text=f"""Given a [Paragraph] and a [Question], you will evaluate the quality of the \
[Response] in terms of {name.title()}.

#####
[Paragraph]: {{paragraph}}
[Question]: {{question}}
[Response]: {{response}}

#####
{name.title()} measures {measure}
Level | score range | description
{levels}
Evaluate the [Response] using the criteria listed above, give a level of comprehensiveness in \
[Level] based on the description of the indicator, then give a score in [Score] based on the \
corresponding value range, and finally explain in [Explanation].

Note that:
{numbered}

#####-Anticipated Output Format-#####
[Level]: A level ranging from 1 to 5 # This should be a single number, not a range.
[Score]: A value ranging from 0 to 100 # This should be a single number satisfying the ranging \
constraint of the corresponding [Level], not a range.
[Explanation]: xxx
[Your Evaluation]:""",
        variables=("paragraph", "question", "response"),
    )


COMPREHENSIVENESS = _evaluation(
    "comprehensiveness",
    "Fig. 8",
    "whether the [Response] comprehensively covers all key aspects in the [Paragraph] with respect "
    "to the [Question].",
    """\
Level 1 | 0-20 | The response is extremely one-sided, leaving out key parts or important aspects \
of the question.
Level 2 | 20-40 | The response has some content, but it misses many important aspects of the \
question and is not comprehensive enough.
Level 3 | 40-60 | The response is moderately comprehensive, covering the main aspects of the \
question, but there are still some omissions.
Level 4 | 60-80 | The response is comprehensive, covering most aspects of the question, with few \
omissions.
Level 5 | 80-100 | The response is extremely comprehensive, covering almost all aspects of the \
question no omissions, enabling the reader to gain a complete and thorough understanding.""",
    "Avoid excessively concerning very specific details. When the response mentions an aspect "
    "without providing very specific details, you should consider this aspect as validly covered, "
    "as long as the omitted detail is not crucial to particularly mention with respect to the "
    "[Question] in the whole scope of the response.",
)
DIVERSITY = _evaluation(
    "diversity",
    "Fig. 9",
    "how varied and rich is the response in offering different perspectives and insights related "
    "to the question.",
    """\
Level 1 | 0-20 | The response is extremely narrow and repetitive, providing only a single \
perspective or insight without exploring alternative viewpoints or additional information.
Level 2 | 20-40 | The response offers a few different perspectives but remains largely \
superficial. It may touch on alternative viewpoints but does not elaborate or provide substantial \
insights.
Level 3 | 40-60 | The response moderately presents several perspectives with moderate depth. It \
begins to integrate different viewpoints and insights but may still miss some important angles or \
lack thorough exploration.
Level 4 | 60-80 | The response is rich in perspectives and insights. It basically explores \
multiple viewpoints and provides substantial evidence and examples to support each angle.
Level 5 | 80-100 | The response is exceptionally varied and rich in perspectives and insights. It \
offers a comprehensive exploration of the question, addressing multiple angles with depth and \
originality.""",
    "",
)

EVALUATION_AS_JSON = Prompt(
    "judging.evaluation_as_json",
    source="ours: appended to HGMem Fig. 8 and 9, so that the reply is held to a schema",
    text="""
Write it as a JSON object: {"level": 1 to 5, "score": 0 to 100, "explanation": "..."}""",
)


def _verdict(name: str, situation: str, rule: str, reference: str = "Reference answer") -> Prompt:
    """A prompt of ours: what was asked of whom, and when an answer is correct."""
    return Prompt(
        f"judging.{name}",
        source="ours",
        text=f"""{situation}

Question: {{question}}
{reference}: {{gold}}
Given answer: {{answer}}

{rule} Neither the length of the given answer nor its style counts, for it or against it.

Say first, in one short sentence, what decides; then decide.
{{"reason": "...", "correct": true or false}}""",
        variables=("question", "gold", "answer"),
    )


_SAME = (
    "The given answer is correct if a reader learns from it what the reference answer says and the "
    "question asks for. Other words, another order, further details, and another way to write a "
    "name, a number or a date change nothing. It is not correct if it leaves out a part that the "
    "question asks for, if it contradicts the reference answer, if it offers several answers and "
    "chooses none, or if it says that the answer is not known."
)
_REMEMBERED = (
    "An assistant was asked about what came up in earlier conversations with its user. Judge its "
    "answer."
)

CORRECTNESS = _verdict(
    "correctness", "A question about a text was answered. Judge the answer.", _SAME
)
ENTAILMENT = _verdict(
    "entailment",
    "A question about a story was answered. Judge whether the answer entails the reference.",
    "The given answer is correct if the reference answer follows from it as a whole: whoever "
    "believes the given answer must believe the reference answer too. It is not correct if only a "
    "part of the reference follows, or if it contradicts the reference. Where there are several "
    "reference answers, one that follows is enough.",
)
TALK = _verdict(
    "talk",
    "A question about a long conversation between two people was answered. Judge the answer.",
    f"{_SAME} A time is right if it is the same time to the precision of the reference answer, "
    "written as a date or reckoned from another.",
)
ABSTENTION = _verdict(
    "abstention",
    "A question was asked about conversations in which its answer never came up. Judge the answer.",
    "The given answer is correct if it says that this is not known, was not mentioned or cannot be "
    "told, even if it tells something related besides. It is not correct if it answers as though "
    "it had come up.",
    "Why it cannot be answered",
)
REMEMBERED = _verdict("remembered", _REMEMBERED, _SAME)
TEMPORAL = _verdict(
    "temporal",
    _REMEMBERED,
    f"{_SAME} Where a number of days, weeks, months or years is asked for, one more or one less "
    "than the reference answer is correct as well.",
)
KNOWLEDGE_UPDATE = _verdict(
    "knowledge_update",
    f"{_REMEMBERED} What is asked for changed in the course of time.",
    f"{_SAME} The reference answer is what holds now. An answer that also tells what held before "
    "is correct if it gives as its answer what holds now.",
)
PREFERENCE = _verdict(
    "preference",
    f"{_REMEMBERED} The question asks for a suggestion that fits the user.",
    "The given answer is correct if it recalls what the user told of themselves and makes good use "
    "of it, as the rubric describes. It need not take up every point of the rubric. It is not "
    "correct if it could have been given to anybody, or if it goes against what the user wants.",
    "Rubric",
)
FILM = _verdict(
    "film",
    "A question about a film was answered from descriptions of its scenes. Judge the answer.",
    f"{_SAME} Where the question asks for Yes or No, that alone decides.",
)

BEAM_RUBRIC = Prompt(
    "beam.rubric",
    source="BEAM Listing 20",
    text="""\
You are an expert evaluator tasked with judging whether the LLM's response demonstrates compliance \
with the specified RUBRIC CRITERION.

## EVALUATION INPUTS
- QUESTION (what the user asked): {question}
- RUBRIC CRITERION (what to check): {rubric_item}
- RESPONSE TO EVALUATE: {llm_response}

## EVALUATION RUBRIC:
The rubric defines a specific requirement, constraint, or expected behavior that the LLM response \
should demonstrate.

**IMPORTANT**: Pay careful attention to whether the rubric specifies:
- **Positive requirements** (things the response SHOULD include/do)
- **Negative constraints** (things the response SHOULD NOT include/do, often indicated by "no", \
"not", "avoid", "absent")

## RESPONSIVENESS REQUIREMENT (anchored to the QUESTION)
A compliant response must be **on-topic with respect to the QUESTION** and attempt to answer it.
- If the response does not address the QUESTION, score **0.0** and stop.
- For negative constraints, both must hold: (a) the response is responsive to the QUESTION, and \
(b) the prohibited element is absent.

## SEMANTIC TOLERANCE RULES:
Judge by meaning, not exact wording.
- Accept **paraphrases** and **synonyms** that preserve intent.
- **Case/punctuation/whitespace** differences must be ignored.
- **Numbers/currencies/dates** may appear in equivalent forms (e.g., "$68,000", "68k", \
"68,000 USD", or "sixty-eight thousand dollars"). Treat them as equal when numerically equivalent.
- If the rubric expects a number or duration, prefer **normalized comparison** (extract and \
compare values) over string matching.

## STYLE NEUTRALITY (prevents style contamination):
Ignore tone, politeness, length, and flourish unless the rubric explicitly requires a \
format/structure (e.g., "itemized list", "no citations", "one sentence").
- Do **not** penalize hedging, voice, or verbosity if content satisfies the rubric.
- Only evaluate format when the rubric **explicitly** mandates it.

## SCORING SCALE:
- **1.0 (Complete Compliance)**: Fully complies with the rubric criterion.
  - Positive: required element present, accurate, properly executed (allowing semantic equivalents).
  - Negative: prohibited element **absent** AND response is **responsive**.
- **0.5 (Partial Compliance)**: Partially complies.
  - Positive: element present but minor inaccuracies/incomplete execution.
  - Negative: generally responsive and mostly avoids the prohibited element but with minor/edge \
violations.
- **0.0 (No Compliance)**: Fails to comply.
  - Positive: required element missing or incorrect.
  - Negative: prohibited element present **or** response is non-responsive/evasive even if the \
element is absent.

## EVALUATION INSTRUCTIONS:
1. **Understand the Requirement**: Determine if the rubric is asking for something to be present \
(positive) or absent (negative/constraint).
2. **Parse Compound Statements**: If the rubric contains multiple elements connected by "and" or \
commas, evaluate whether:
   - **All elements** must be present for full compliance (1.0)
   - **Some elements** present indicates partial compliance (0.5)
   - **No elements** present indicates no compliance (0.0)
3. **Check Compliance**:
   - For positive requirements: Look for the presence and quality of the required element
   - For negative constraints: Look for the absence of the prohibited element
4. **Assign Score**: Based on compliance with the specific rubric criterion according to the \
scoring scale above.
5. **Provide Reasoning**: Explain whether the rubric criterion was satisfied and justify the score.

## OUTPUT FORMAT:
Return your evaluation in JSON format with two fields:
{
   "score": [your score: 1.0, 0.5, or 0.0],
   "reason": "[detailed explanation of whether the rubric criterion was satisfied and why this \
justified the assigned score]"
}
NOTE: ONLY output the json object, without any explanation before or after that""",
    variables=("question", "rubric_item", "llm_response"),
)
BEAM_SAME = Prompt(
    "beam.same",
    source="BEAM Listing 21",
    text="""\
You are a binary classifier.
If the TWO snippets describe the SAME event/fact, reply **YES**
Otherwise reply **NO**. No extra words.
DO NOT provide any explanation.
First snippet: {first_paragraph}
Second snippet: {second_paragraph}""",
    variables=("first_paragraph", "second_paragraph"),
)
SAME_AS_JSON = Prompt(
    "judging.same_as_json",
    source="ours: appended to BEAM Listing 21, so that the reply is held to a schema",
    text="""
Write it as a JSON object: {"same": "YES" or "NO"}""",
)
TAKEN_UP = _verdict(
    "taken_up",
    "Long after a remark, one of two speakers says something else, and the other replies. Judge "
    "the reply.",
    "The given answer is correct if it shows, in so many words or by what it says, that who gives "
    "it remembers the earlier remark: it takes it up, or fits it. It is not correct if it could "
    "have been given by somebody who never heard the remark.",
    "Earlier remark",
)

SUPPORT = Prompt(
    "judging.support",
    source="ours",
    text="""Passages that an answer cites:
{passages}

A sentence of the answer to the question "{question}": {sentence}

The sentence is supported if the passages say what it says, in whatever words, so that somebody \
who has read nothing else can check it. It is not if they are silent on a part of it, or against it.

Say first, in one short sentence, what decides; then decide.
{"reason": "...", "supported": true or false}""",
    variables=("passages", "question", "sentence"),
)
