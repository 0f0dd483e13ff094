"""The prompts that HGMem's paper prints: Fig. 4–7 (Appendices D and E).

They keep its wording, and its delimiter format, which ``delimiters`` reads. docs/prompts.md lists
what the text extraction had damaged and how it was repaired.
"""

from __future__ import annotations

from mgl.prompt import Prompt

EVOLVE = Prompt(
    "hgmem.evolve",
    source="HGMem Fig. 4",
    text="""You are an intelligent assistant responsible for resolving the [Main Query] through \
analyzing supportive information from external knowledge sources and making necessary treatment. \
Your current [Memory] records the existing memory points describing what you have already known \
with respect to the [Main Query].

At present, in order to ultimately resolve the [Main Query], one or several auxiliary subqueries \
have been raised, i.e. those in [Current Subqueries]. Correspondingly, [Retrieved Info] that \
contains possibly useful content retrieved by either [Main Query] or [Current Subqueries] in the \
form of a csv table.

-Goal-
Given the [Retrieved Info], your task is to extract useful information worth memorizing for \
dealing with the [Main Query] by adding new memory points and/or editing the existing memory points.

-Steps-
1. Based on your existing [Memory], identify useful content worth memorizing from the [Retrieved \
Info] to better deal with the [Main Query], then reorganize your [Memory] using one or more of the \
following prescribed operations.
- (1) **Insert New Memory Point(s)**. The Insertion operation should be evoked when some aspects \
of the identified information are suitable to be inserted into your memory as one or multiple \
additional points.
- (2) **Update Existing Memory Point(s)**. The Update operation should be evoked when some aspects \
of the identified information are closely related to existing memory points so that they are \
suitable to be absorbed into one or multiple existing memory points.

For each inserted or updated memory point, use **{record_delimiter}** as the delimiter to format \
as (point{tuple_delimiter}<related_object_1>{object_delimiter}<related_object_2>{object_delimiter}\
<related_object_3>{tuple_delimiter}<point_description>)

2. Output in {language} as two separate lists of inserted and updated memory points as the \
**Example of Anticipated Output Format**.
- For memory insertion, just give the newly-inserted memory points in [Inserted Memory Points]. \
When finished, output {completion_delimiter}.
If there's no meaningful memory points to insert that can bring new information besides current \
[Memory], just output <None> in [Inserted Memory Points].
- For memory update, indicate the indices of existing memory points to be updated and give the \
newly-updated memory point(s) in [Updated Memory Points]. When finished, output \
{completion_delimiter}.
If there's no existing memory points, just output <None> in [Updated Memory Points].
The [Main Query], [Memory], [Current Subqueries] and [Retrieved Info] are given as below. Please \
output your results as the **Example of Anticipated Output Format**.

#####-Example of Anticipated Output Format-#####
[Inserted Memory Points]:
(point{tuple_delimiter}Alex{object_delimiter}Jordan{object_delimiter}Cruz{tuple_delimiter}Alex and \
Jordan's shared commitment to discovery highlights their camaraderie and rebellion against Cruz's \
control, creating a bond based on innovation and mutual goals. Cruz represents an opposing force \
with a 'narrowing vision' of control, contrasting with the desire for discovery and innovation \
expressed by Alex and Jordan.){record_delimiter}
(point{tuple_delimiter}Sam Rivera{object_delimiter}Alex{tuple_delimiter}The collaboration between \
Sam and Alex represents two facets of humanity's response to the unknown intelligence, both driven \
by their emotional experiences and their acknowledgment of the historical significance of their \
actions during this first contact situation.){record_delimiter}
{completion_delimiter}

[Updated Memory Points]:
0,(point{tuple_delimiter}Steve Jobs{object_delimiter}San Francisco, California{object_delimiter}\
Paul{object_delimiter}Clara Jobs{object_delimiter}{tuple_delimiter}Steve Jobs was born on February \
24, 1955, in San Francisco, California, and was adopted by Paul and Clara Jobs. He grew up in \
Mountain View, California, in what would later become Silicon Valley.){record_delimiter}
2,(point{tuple_delimiter}Pricing Strategy{object_delimiter}Premium Pricing{object_delimiter}\
Freemium Model{object_delimiter}Tiered Pricing Structures{tuple_delimiter}Apple's pricing strategy \
has evolved from a focus on premium, high-end products with a "cult following" to a more \
diversified approach that includes both premium and more affordable options like freemium model. \
This shift has involved strategies like price skimming for new releases, tiered pricing structures \
with various models at different price points, and even some instances of underpricing to attract \
new users.){record_delimiter}
{completion_delimiter}

#####-Real Data-#####
[Main Query]: {main_query}

[Memory]:
{memory}

[Current Subqueries]:
{cur_subqueries}

[Retrieved Info]:
{retrieved_info}
#####
Note that:
1. The so-called useful information are those that could enrich the query-specific knowledge or \
potentially bring insights to better deal with the [Main Query].
2. For each memory point, you should comprehensively organize and summarize its description from \
the whole context of the [Retrieved Info], rather than just repeat original contents from the \
given csv table.
3. A memory point can involve multiple closely associated objects so that it can describe \
higher-level relationships among multiple mutually-connected objects.
4. Meanwhile, avoid forcibly merging everything into a single point. If several distinct objects \
are not strongly associated, output as separate memory points.
5. Avoid forcibly inserting or updating existing memory points if not necessary.
6. It is encouraged to directly use the existing entity terms listed in the [Retrieved Info] for \
manipulating memory points. If necessary, you can also introduce new entity terms besides those \
already explicitly listed.

Output:""",
    variables=(
        "tuple_delimiter",
        "object_delimiter",
        "record_delimiter",
        "completion_delimiter",
        "language",
        "main_query",
        "memory",
        "cur_subqueries",
        "retrieved_info",
    ),
)

MERGE = Prompt(
    "hgmem.merge",
    source="HGMem Fig. 5",
    text="""For resolving the [Main Query], you have consolidated some memory points in your \
[Memory] recording the relevant information you have known. Based on current [Memory], your task \
is to conduct memory reorganization that merges multiple memory points into new ones when they are \
more suitable to constitute a semantically/logically cohesive unit as a whole.

Specifically, you need to specify the indices of original memory points to merge. Then, for each \
newly merged point, provide updated descriptions that could build essentially higher-order \
associations while preserving their original information necessary for dealing with the [Main \
Query].

Format each reorganized memory point as <indices>{tuple_delimiter}<new description>

Output in [Points_to_Merge] using {language} as the **Example of Anticipated Output Format**.

#####-Example of Anticipated Output Format-#####
[Points_to_Merge]:
(1,2{tuple_delimiter}<new_description>){record_delimiter}
(2,4,5{tuple_delimiter}<new_description>){record_delimiter}
{completion_delimiter}

#####-Real Data-#####
[Main Query]: {main_query}

[Memory]:
{memory}
#####
Note that, after reorganization,
(1) Each new memory point should encapsulate a semantically/logically cohesive unit that \
highlights unique and essential association among the involved entities of original memory points.
(2) Each memory point aims to cover distinct aspects, minimizing overlap across different memory \
points.
(3) Memory redundancy is reduced by eliminating duplicate content across different memory points.
(4) If an original point itself is more suitable to be kept as a separate point, just leave it \
unchanged and do not output it.
(5) If a memory point has included objects significantly more than other points and encapsulated \
comprehensive content, it should not be further merged.
(6) Avoid forcibly merging. If there is no suitable points to merge, output <None> in \
[Points_to_Merge] without any other thing.
(7) Principally, new memory points should primarily reuse original entities and preserve original \
details as much as possible.

Output:""",
    variables=(
        "tuple_delimiter",
        "record_delimiter",
        "completion_delimiter",
        "language",
        "main_query",
        "memory",
    ),
)

CONCERNS = Prompt(
    "hgmem.concerns",
    source="HGMem Fig. 6",
    text="""You are an intelligent assistant responsible for dealing with the [Main Query] by \
making appropriate operations as specified.
With respect to the [Main Query], you have consolidated some memory points in your [Memory] \
describing what you have already known regarding the [Main Query].
Each memory point can be seen as a specific aspect relevant to the [Main Query], providing \
necessary details or insights from its perspective.

-Goal-
Your task is to analyze the [Main Query] and [Memory], then determine whether current [Memory] has \
been sufficient to comprehensively resolve the [Main Query]. If not sufficient, you need to \
indicate what you want to further investigate.

-Procedures-
Step 1.
Make appropriate judgement following the logic branches below.
Case 1: If the [Memory] has been sufficient to completely resolve the [Main Query], output <None> \
in [Concerns].
Case 2: If the [Memory] is not sufficient, determine current situation should be attributed to \
which of the following subcases.
Case 2.1: There are some specific memory points which you want to further investigate more details \
about.
Case 2.2: There are unexplored aspects that go beyond the scope of current [Memory] (i.e. not \
related to any of the existing memory points).

Step 2.
Output as **Example of Anticipated Output Format**.
Specifically, give your judgement in [Judgement] using corresponding case index (1, 2.1 or 2.2).
Then, generate several concerns that aim at exploring details or aspects not addressed by current \
[Memory] to better resolve the [Main Query]
When case 2.1, generate up to {num_concerns} concerns, each of which targets at a specific memory \
point. For each concern, specify the index of its corresponding memory point.
When case 2.2, generate up to {num_concerns} concerns that probe meaningful information not yet \
covered by current [Memory]

#####-Example of Anticipated Output Format for Case 1-#####
[Judgement]: 1
[Concerns]: <None>

#####-Example of Anticipated Output Format for Case 2.1-#####
[Judgement]: 2.1
[Concerns]:
0{tuple_delimiter}your_concern_1{record_delimiter}
2{tuple_delimiter}your_concern_2{record_delimiter}
2{tuple_delimiter}your_concern_3{record_delimiter}
{completion_delimiter}

#####-Example of Anticipated Output Format for Case 2.2-#####
[Judgement]: 2.2
[Concerns]:
your_concern_1{record_delimiter}
your_concern_2{record_delimiter}
your_concern_3{record_delimiter}
{completion_delimiter}

#####-Real Data-#####
[Main Query]: {query}

[Memory]:
{memory}
#####
* Note that:
(1) Your concern should be concise and suggest what further details or aspect you subsequently \
will seek for.
(2) Only output the judgement, concerns, and the indices of corresponding memory points without \
any other content.
(3) If current [Memory] has covered most relevant perspectives, generate fewer concerns to avoid \
redundancy.
(4) Your generated concerns should be separated by "{record_delimiter}".
#####
Output:""",
    variables=(
        "tuple_delimiter",
        "record_delimiter",
        "completion_delimiter",
        "num_concerns",
        "query",
        "memory",
    ),
)

SUBQUERY = Prompt(
    "hgmem.subquery",
    source="HGMem Fig. 7",
    text="""You are an assistant responsible for dealing with the [Main Query].
Although you have had some relevant information in your [Memory], your current [Memory] is still \
not sufficient to comprehensively resolve the [Main Query] due to the concern given in [Concern].
Therefore, you need to generate a subquery that aims at either retrieving more evidences or \
investigating unexplored aspects in [Subquery] to better deal with the [Main Query] ultimately.

[Previous Subqueries] records a series of previous subqueries that have been raised before.

#####-Anticipated Output Format-#####
[Subquery]: xxx

#####-Real Data-#####
[Main Query]: {query}

[Memory]:
{memory}
#####
[Concern]:
{concern}

[Previous Subqueries]:
{history_subqueries}
#####
* Note that:
(1) Your generated subquery should be concise and address the concerns in your [Concern].
(2) You should avoid generating a subquery that is overly similar to any one of the [Previous \
Subqueries] or [Main Query].
(3) Only output your subquery without any other redundant content such as markup strings.
#####
Output:""",
    variables=("query", "memory", "concern", "history_subqueries"),
)
