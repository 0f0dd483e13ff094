"""The inspector, live: what it gives without a key, and what a reader sees and does with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from mgl.api.inspector import INSPECTOR
from mgl.api.keys import OWNER
from tests.api.conftest import HORSE, Client, Serve, Served, Site, open_beside
from tests.cli.server import story
from tests.web.browser import led
from tests.web.tab import Tab
from tests.web.test_axe import FIND, check_axe

NAME = "<img src=x onerror=\"document.title='taken'\">"
NO_SERVER = "The server does not answer. Is `mgl up` still running?"
ASK_SLOWLY = """import('./source.js').then(async ({ whileSeen }) => {
  let asked = 0;
  whileSeen(5, () => (asked++, new Promise(() => {})), () => {});
  await new Promise((done) => setTimeout(done, 100));
  return asked;
})"""
COME = "document.dispatchEvent(new Event('visibilitychange'))"
DETAIL = "document.querySelector('#detail').textContent"
ATTACK = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


async def test_the_frame_is_open_and_all_data_want_the_key(serve: Serve) -> None:
    async with serve() as served, httpx.AsyncClient(base_url=served.root) as http:
        root = await http.get("/")
        assert (root.status_code, root.headers["location"]) == (307, "/inspect/")
        for name, kind in (
            ("", "text/html"),
            ("memory", "text/html"),
            ("runs", "text/html"),
            ("training", "text/html"),
            ("list.js", "text/javascript"),
            ("page.css", "text/css"),
        ):
            answer = await http.get(f"/inspect/{name}")
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith(kind)
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
            assert not {"<style", " style=", "<script>", " onload="} & {*answer.text.split(" ")}
        for name in ("../escape.py", "..%2fescape.py", "%2e%2e/page.py", "memory.html", "x.js"):
            assert (await http.get(f"/inspect/{name}")).status_code in (401, 404), name
        for each in INSPECTOR:
            path = each.path.format(memory="diary", key="k", training="n")
            assert (await http.request(each.method, path)).status_code == 401
        elsewhere = await http.get("/inspect/", headers={"Host": "evil.example"})
        assert elsewhere.status_code == 401


async def test_an_edit_leads_to_the_call_that_proposed_it(paper: Client) -> None:
    page = f"/api/memories/{(await paper.read(story(8)))['memory_id']}"
    edits = (await paper.get(f"{page}/log")).json()["edits"]
    edit = next(each for each in edits if each["op"] == "add_node")
    assert (edit["outcome"], edit["quote"]) == ("applied", "P0 met P1.")
    call = (await paper.get(f"{page}/calls/{edit['call_key']}")).json()
    assert call["outcome"] == "ok"
    assert "P0 met P1." in call["reply"]
    assert "P0 met P1." in call["messages"][-1]["content"]
    calls = (await paper.get(f"{page}/calls")).json()["calls"]
    assert call["key"] in {each["key"] for each in calls}
    assert (await paper.get(f"{page}/calls/none")).status_code == 404
    (memory,) = await paper.memories()
    assert (memory["calls"], memory["edits"]) == (len(calls), len(edits))


async def test_a_trace_says_what_an_answer_and_a_reply_were_made_of(
    served: Served, http: Client
) -> None:
    await tell(served)
    trace = "/api/memories/diary/trace"
    asked = {"question": "What is the horse called?"}
    answer = await http.ask("diary", **asked)
    await http.ask("diary", "Why did it rain?")
    traced = (await http.get(trace, params=asked)).json()
    assert [each["node_id"] for each in traced["retrieved"]] == answer["retrieved"]
    assert len(traced["calls"]) == answer["usage"]["calls"]
    assert HORSE in traced["calls"][0]["reply"]
    reply = await http.chat("I sold the cart")
    turn, own = reply["turn"], reply["reply"]
    traced = (await http.get(trace, params={"turn": own})).json()
    assert {turn, "L1"} <= {each["node_id"] for each in traced["retrieved"]}
    (called,) = traced["calls"]
    assert reply["content"] in called["reply"]
    assert "I sold the cart" in called["messages"][-1]["content"]
    for wanted in ({"turn": turn}, {"question": "Who?"}, {}, {"question": "", "turn": ""}):
        refused = await http.get(trace, params=wanted)
        assert refused.status_code == 404, refused.text


async def test_a_trace_of_a_document_has_its_passages(http: Client) -> None:
    asked = {"question": "Who met P2?"}
    answer = await http.ask((await http.read(story(8)))["memory_id"], **asked)
    source = f"/api/memories/{answer['memory_id']}"
    traced = (await http.get(f"{source}/trace", params=asked)).json()
    places = [f"{each['start']}-{each['end']}" for each in traced["retrieved"]]
    assert places == answer["retrieved"] != []
    assert traced["calls"]
    refused = await http.get(f"{source}/trace", params={"turn": "1"})
    assert refused.status_code == 404


async def tell(served: Served, name: str = "diary", memory: str = "gam") -> None:
    """Tell three sessions, so that the first two are topics, and wait for them."""
    said = (
        ("Ann", 1, HORSE),
        ("Ann", 1, f"I painted {ATTACK} today"),
        ("Ann", 9, "It rains"),
        ("Bo", 20, "Snow"),
    )
    turns = [
        {"speaker": who, "text": text, "time": f"2024-05-{day:02}T10:00", "session": str(day)}
        for who, day, text in said
    ]
    async with Client(served) as http:
        lines = "\n".join(map(json.dumps, turns))
        await http.post(f"/api/conversations/{name}/file", params={"memory": memory}, content=lines)
    memories = (await served.open_tenant(OWNER)).memories
    await memories.work(name, None, lambda talk: talk.settle())


@pytest.mark.browser
def test_a_reader_finds_asks_and_corrects_a_memory(site: Site, tab: Tab) -> None:
    site.do(tell, site.served)
    _enter(tab, site.root, site.key)
    tab.run("document.querySelector('tbody a').click()")
    tab.wait("location.pathname.endsWith('memory') && document.documentElement.dataset.ready")
    assert ATTACK in tab.run("document.querySelector('#text').textContent")
    assert tab.run("document.title") == "diary · mgl"
    assert tab.run("document.querySelectorAll('#text img, #text script').length") == 0
    tab.run("document.querySelector('#question').focus()")
    for sign in "What is the horse called?":
        tab.press(sign)
    tab.press("Enter", 13)
    assert tab.wait("document.querySelector('.chip')?.title") == HORSE
    assert tab.run("document.querySelector('.answer').textContent") == HORSE
    assert tab.run("[...CSS.highlights.get('passage')].join()") == HORSE
    _trace(tab)
    _correct(tab)
    _say(tab, "I sold the cart")
    _begin(tab, f"{site.root}/inspect/")


def _trace(tab: Tab) -> None:
    """Open what the answer was made of, and one of its calls."""
    tab.run("[...document.querySelectorAll('.asked[open] .trace summary')].at(-1).click()")
    tab.wait("!!document.querySelector('.asked[open] .retrieved li')")
    call = "[...document.querySelectorAll('.asked[open] .trace details')].at(0)"
    assert "talker@1+fake · 10 tokens read, 5 written" in tab.run(f"{call}.innerText")
    tab.run(f"{call}.firstChild.click()")
    assert HORSE in tab.wait(f"{call}.querySelector('.reply')?.textContent")
    for width, height in ((1440, 900), (390, 844)):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        tab.call("Emulation.setDeviceMetricsOverride", **size)
        side, length = ("Width", width) if width < 500 else ("Height", height)
        assert tab.run(f"document.documentElement.scroll{side}") == length
    tab.run("document.querySelector('.asked[open] .retrieved button').click()")
    assert tab.run("[...CSS.highlights.get('passage')].length") == 1


def _enter(tab: Tab, root: str, key: str) -> None:
    """By a link with the key, which is not read, by a wrong key, and by the right one."""
    tab.call("Page.navigate", url=f"{root}/inspect/#key={key}")
    tab.type_key("wrong")
    assert "key is not right" in tab.wait("document.querySelector('.wrong')?.textContent")
    tab.unlock(root, key)
    assert tab.wait("document.querySelector('tbody a')?.textContent") == "diary"
    assert key not in tab.run("location.href")
    assert "4 turns" in tab.run("document.querySelector('tbody').textContent")


@pytest.mark.browser
def test_a_reader_corrects_and_forgets_turns_of_the_transcript(
    site: Site, tab: Tab, axe: str
) -> None:
    """By the keyboard alone."""
    site.do(tell, site.served)
    tab.unlock(site.root, site.key)
    tab.show(f"{site.root}/inspect/memory?id=diary", size=(390, 844), dark=True)
    tab.run(f"{axe}; 0")
    tools = "document.querySelectorAll('.aside > button')"
    times = [each[:5] for each in tab.run(f"[...{tools}].map((e) => e.parentElement.textContent)")]
    assert times == ["10:00"] * 4
    tab.run(f"{tools}[0].focus()")
    for open_ in (True, False, True):
        tab.press(*(("Enter", 13) if open_ else ("Escape", 27)))
        assert tab.run("document.querySelector('.tools').hidden") is not open_
    tab.press("Tab", 9)
    tab.press("Enter", 13)
    assert tab.wait("document.querySelector('#words')?.value") == HORSE
    assert tab.run(FIND) == []
    tab.run("document.activeElement.setRangeText('Moon', 19, 23)")
    tab.press("Tab", 9)
    renewed(tab, "0, document.activeElement.click()")
    assert tab.run(f"{tools}.length") == 4
    lines = tab.run("[...document.querySelectorAll('#text p')].map((e) => e.textContent)")
    assert lines[0] == f"Ann: {HORSE[:-4]}Moon"  # where the old words stood
    assert "Moon" not in "".join(lines[1:])
    marked = tab.run("document.querySelector('.corrected').textContent").split(",")[0]
    today = "new Date().toLocaleDateString('en-GB', { dateStyle: 'medium' })"
    assert marked == f"corrected {tab.run(today)}"
    assert "forgotten" not in tab.run("document.querySelector('#text').textContent")
    check_axe(tab, axe)
    tab.run(f"{tools}[3].click()")
    tab.run("document.querySelectorAll('.tools:not([hidden]) button')[1].click()")
    said = tab.wait("document.querySelector('.tools:not([hidden]) p')?.textContent")
    assert said == "1 turn and what was made of it are deleted for good."
    renewed(tab, "document.activeElement.click()")
    assert tab.run("document.querySelector('#text').textContent").count("forgotten") == 1
    exported = site.do(site.http.get, "/api/memories/diary/export").json()
    assert exported["forgotten"] == ["L1", "L4"]
    said = [(turn["text"], turn["time"][:10]) for turn in exported["turns"]]
    assert (f"{HORSE[:-4]}Moon", "2024-05-01") in said
    assert HORSE not in json.dumps(exported)


@pytest.mark.browser
def test_a_reader_adds_files_cancels_a_job_and_renames_a_document(
    paper_site: Site, tab: Tab, axe: str, tmp_path: Path
) -> None:
    """Add both, read the document once more after it was refused, and give it another name."""
    site = paper_site
    book, chat = tmp_path / "b ü.txt", tmp_path / "talk.jsonl"
    book.write_text(story(8), encoding="utf-8")
    chat.write_text(json.dumps({"speaker": "Ann", "text": HORSE}))
    tab.unlock(site.root, site.key)
    tab.run(f"{axe}; 0")
    _choose_files(tab, [book, chat])
    rows = "document.querySelector('tbody')?.innerText ?? ''"
    tab.wait(f"({rows}).includes('talk') && ({rows}).includes('b ü.txt')")
    tab.wait("document.querySelectorAll('#jobs a').length == 2")
    assert "1 turn" in tab.run("document.querySelector('#jobs').innerText")
    assert tab.run(FIND) == []
    added = "[...document.querySelectorAll('#jobs a')].find((e) => e.innerText == 'b ü.txt')"
    tab.show(tab.run(f"{added}.href"))
    buttons = "[...document.querySelectorAll('header button')]"
    tab.run(f"{buttons}.find((e) => e.innerText == 'Rename…').click()")
    assert tab.run("document.activeElement.id") == "rename"
    check_axe(tab, axe)
    tab.run("document.activeElement.value = ' My book '")
    led(tab, "document.activeElement.form.requestSubmit()")
    assert tab.run("document.querySelector('h1').textContent") == "My book"
    listed = site.do(site.http.memories)
    assert {each["document"] for each in listed} == {"talk", "My book"}
    jobs = site.do(site.served.open_tenant, OWNER).jobs
    site.do(jobs._turn.acquire)  # so that the next one waits
    (tmp_path / "c.md").write_text("P1 met P2.")
    tab.show(f"{site.root}/inspect/")
    _choose_files(tab, [tmp_path / "c.md"])
    tab.wait("document.querySelector('#jobs').innerText.includes('waits for its turn')")
    tab.show(f"{site.root}/inspect/", size=(390, 844), dark=True)
    tab.run("document.querySelector('#jobs button').click()")
    tab.wait("document.querySelector('#jobs').innerText.includes('is cancelled')")
    assert jobs.list_all()[0].state == "cancelled"
    site.portal.call(jobs._turn.release)


def _choose_files(tab: Tab, paths: list[Path]) -> None:
    found = tab.call("Runtime.evaluate", expression="document.querySelector('#files')")
    files = [str(path) for path in paths]
    tab.call("DOM.setFileInputFiles", files=files, objectId=found["result"]["objectId"])
    tab.run("document.querySelector('#files').form.requestSubmit()")


@pytest.mark.browser
def test_a_page_that_cannot_be_had_says_why_and_is_tried_again(
    serve: Serve, tab: Tab, axe: str
) -> None:
    with open_beside(serve()) as site:
        tab.unlock(site.root, site.key)
        tab.call("Page.navigate", url=f"{site.root}/inspect/memory?id=diary")
        said = tab.wait("document.querySelector('dialog .wrong')?.textContent")
        assert "there is no memory 'diary'" in said
        check_axe(tab, axe)
        site.do(tell, site.served)
        tab.run("document.querySelector('dialog button').click()")
        tab.wait("document.title == 'diary · mgl'")
    tab.run("document.querySelector('#question').value = 'What?'")
    tab.run("document.querySelector('#send').click()")
    assert tab.wait("document.querySelector('.failed .answer')?.textContent") == NO_SERVER
    assert tab.run("document.querySelector('#question').value") == "What?"


@pytest.mark.browser
def test_a_reader_searches_all_that_was_said(site: Site, tab: Tab, axe: str) -> None:
    site.do(tell, site.served)
    site.do(tell, site.served, name="other")
    tab.unlock(site.root, site.key)
    tab.run("document.querySelector('#words').focus()")
    for sign in "horse":
        tab.press(sign)
    tab.press("Enter", 13)
    tab.wait("document.querySelectorAll('.hits li').length == 2")
    assert tab.run("document.querySelector('.hits li').innerText.split(/\\n+/)") == [
        "other gam · 1 May 2024, 10:00",
        f"Ann: {HORSE}",
    ]
    check_axe(tab, axe)
    led(tab, "location.reload()")
    tab.wait("document.querySelectorAll('.hits li').length == 2")
    tab.run("document.querySelector('.hits a').click()")
    tab.wait("location.pathname.endsWith('memory') && document.documentElement.dataset.ready")
    assert tab.run("[...CSS.highlights.get('passage')].join()") == HORSE


@pytest.mark.browser
def test_a_page_keeps_answers_until_what_they_repeat_is_deleted(site: Site, tab: Tab) -> None:
    """Ask, open the page once more, and there both traces and all rows of the log."""
    site.do(tell, site.served)
    site.do(site.http.chat, "I sold the cart")  # the reply is not made of L1
    tab.unlock(site.root, site.key)
    tab.show(f"{site.root}/inspect/memory?id=diary")
    tab.run("document.querySelector('#question').value = 'What is the horse called?'")
    tab.run("document.querySelector('#send').click()")
    assert tab.wait("document.querySelector('.chip')?.title") == HORSE
    tab.show(f"{site.root}/inspect/memory?id=diary")
    assert tab.run("document.querySelector('.answer')?.textContent") == HORSE
    tab.run("[...document.querySelectorAll('.asked[open] .trace summary')].at(-1).click()")
    tab.wait("!!document.querySelector('.asked[open] .retrieved li')")
    tab.run("[...document.querySelectorAll('.aside > button')].at(-1).click()")
    tab.run("[...document.querySelectorAll('.tools:not([hidden]) button')].at(-1).click()")
    assert HORSE in tab.wait(TRACED)
    tab.run("document.querySelector('#views [value=log]').click()")
    tab.wait("!!document.querySelector('#log-rows details')")
    _search_for(tab, "horse")
    tab.run("document.querySelectorAll('#log-rows details').forEach((each) => (each.open = true))")
    assert site.do(site.http.forget, "L1")["answers"] == ["What is the horse called?"]
    renewed(tab, f"{COME}; 0")
    tab.wait(f"{TRACED}?.includes('I sold the cart')")
    assert HORSE not in tab.run("document.body.innerText")
    wrong = tab.run("document.querySelector('#changed').textContent")
    assert wrong == ""


TRACED = "document.querySelector('.tools:not([hidden]) .retrieved')?.innerText"


def _search_for(tab: Tab, words: str) -> None:
    tab.run(f"document.querySelector('#search').value = {words!r}")
    tab.run("document.querySelector('#search').dispatchEvent(new Event('input'))")


@pytest.mark.browser
def test_news_comes_while_an_edge_is_open_and_something_is_searched(
    paper_site: Site, tab: Tab
) -> None:
    site = paper_site
    identity = site.do(site.http.read, story(8))["memory_id"]
    page = site.do(site.http.get, f"/api/memories/{identity}/page").json()
    tab.unlock(site.root, site.key)
    edge = quote(page["edges"][0]["id"])
    address = f"{site.root}/inspect/memory?id={identity}#edge={edge}"
    tab.show(address)
    title = tab.run("document.querySelector('#detail h2').textContent")
    _search_for(tab, "met")
    found = tab.run(FOUND)
    site.do(site.http.patch, f"/api/memories/{identity}", json={"name": "c.txt"})
    renewed(tab, f"{COME}; 0")
    shown = tab.run("document.querySelector('#detail h2').textContent")
    assert (shown, tab.run(FOUND)) == (title, found)
    assert found[1] > 0


FOUND = "[document.querySelector('#found').textContent, CSS.highlights.get('hits').size]"


@pytest.mark.browser
def test_a_page_in_sight_shows_what_is_new_where_the_reader_is(
    site: Site, tab: Tab, axe: str
) -> None:
    """It neither moves the text nor lets go of what is selected; out of sight it asks nothing."""
    site.do(tell, site.served)
    site.do(
        site.http.append, *(f"Day {number}: it rains, and nobody comes." for number in range(40))
    )
    tab.unlock(site.root, site.key)
    tab.show(f"{site.root}/inspect/memory?id=diary", size=(1440, 900))
    before = _read_on(tab)
    site.do(site.http.append, "Hail")
    site.do(site.http.patch, "/api/conversations/diary", json={"name": "journal"})
    _wait_hidden(tab)
    renewed(tab, COME)
    tab.wait("document.title == 'journal · mgl'")
    assert tab.run(READER) == before
    text = tab.run("document.querySelector('#text').textContent")
    assert "Hail" in text
    assert tab.run("window.isSamePage")
    check_axe(tab, axe)
    tab.run("document.querySelectorAll('.aside > button')[3].click()")
    tab.run("document.querySelector('.tools:not([hidden]) button').click()")
    tab.run("document.querySelector('#words').value = 'half a sentence'")
    site.do(site.http.append, "Sleet", name="journal")
    tab.run(f"{COME}; new Promise((done) => setTimeout(done, 500))")
    assert tab.run("document.querySelector('#words').value") == "half a sentence"
    assert "Sleet" not in tab.run("document.querySelector('#text').textContent")


READER = """(() => {
  const [text, words] = [document.querySelector('#text'), getSelection()];
  const detail = document.querySelector('#detail h2')?.textContent;
  const isThere = words.anchorNode.parentElement.isConnected;
  return [Math.round(text.scrollTop), `${words}`, isThere, detail];
})()"""
TO_PAGE = "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/page')).length"


def _read_on(tab: Tab) -> Any:
    """Go to the middle of the text, select words there, and open a node."""
    tab.run("window.isSamePage = true")
    tab.run("document.querySelector('#views [value=timeline]').click()")
    tab.run("document.querySelector('#timeline a').click()")
    tab.run("new Promise((done) => setTimeout(done, 300))")
    tab.run(
        """(() => {
          const text = document.querySelector('#text');
          text.scrollTop = text.scrollHeight / 2;
          const top = text.getBoundingClientRect().top;
          const all = [...text.querySelectorAll('p')];
          getSelection().selectAllChildren(all.find((e) => e.getBoundingClientRect().top > top));
        })()"""
    )
    reader = tab.run(READER)
    assert reader[0] > 100
    assert reader[1].startswith("user: Day")
    assert reader[3]
    return reader


def _wait_hidden(tab: Tab) -> None:
    """Out of sight nothing is asked, for longer than the page waits in sight."""
    hide = "Object.defineProperty(document, 'visibilityState', {configurable: true, value: '%s'})"
    tab.run(f"{hide % 'hidden'}; 0")
    asked = tab.run(TO_PAGE)
    tab.run(f"{COME}; new Promise((done) => setTimeout(done, 4500))")
    assert tab.run(TO_PAGE) == asked
    tab.run(f"{hide % 'visible'}; 0")


@pytest.mark.browser
def test_the_list_renews_itself_and_asks_once_at_a_time(site: Site, tab: Tab) -> None:
    site.do(tell, site.served)
    tab.unlock(site.root, site.key)
    tab.show(f"{site.root}/inspect/")
    assert tab.run(ASK_SLOWLY) == 1
    site.do(site.http.append, "Hail", name="other")
    tab.run(COME)
    rows = "document.querySelector('tbody').innerText.includes('other')"
    tab.wait(rows)


async def test_each_kind_that_is_offered_takes_a_file(http: Client) -> None:
    kinds = (await http.get("/api/kinds")).json()
    for kind in kinds["documents"]:
        await http.upload(f"P1 met {kind}.", f"{kind}.txt", memory=kind)
    for kind in kinds["conversations"]:
        said = json.dumps({"speaker": "Ann", "text": HORSE})
        path = f"/api/conversations/{kind}/file"
        taken = await http.post(path, params={"memory": kind}, content=said)
        assert taken.status_code == 201, taken.text


async def test_a_page_is_sent_once(served: Served, http: Client) -> None:
    """Answers leave it as it is; turns, corrections, deletions and names change it."""
    await tell(served)
    path = "/api/memories/diary/page"
    seen = await http.get(path)
    assert seen.json()["version"] == seen.headers["etag"].strip('"')
    tags = [seen.headers["etag"]]
    await http.ask("diary", "What is the horse called?")
    same = await http.get(path, headers={"If-None-Match": tags[0]})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tags[0])
    identity = seen.json()["memory_id"]
    for change in (
        http.post("/api/conversations/diary/turns", json={"turns": [{"text": "Hail"}]}),
        http.post("/api/memories/diary/turns/L2", json={"text": "It snows."}),
        http.post("/api/memories/diary/forget", json={"turns": ["L3"]}),
        http.patch("/api/memories/diary", json={"name": "journal"}),
    ):
        assert (await change).status_code in (200, 201)
        fresh = await http.get(
            f"/api/memories/{identity}/page", headers={"If-None-Match": tags[-1]}
        )
        assert fresh.status_code == 200
        tags.append(fresh.headers["etag"])
    assert len({*tags}) == len(tags)


@pytest.mark.browser
def test_the_list_is_sorted_filtered_and_shown_by_pages(site: Site, tab: Tab, axe: str) -> None:
    for number in range(52):
        site.do(site.http.append, name=f"talk {number}", memory="mnemis" if number == 7 else "gam")
    names = "[...document.querySelectorAll('tbody th')].map((each) => each.innerText)"
    total = "document.querySelector('output').textContent"
    tab.unlock(site.root, site.key)
    tab.show(f"{site.root}/inspect/", size=(1440, 900))
    assert tab.run(total) == "1–50 of 52 memories"
    age = "import('./plain.js').then(({ age }) => age('2020-05-01T12:00Z').textContent)"
    assert tab.run(age).endswith("years ago1 May 2020")
    assert tab.run(names)[::49] == ["talk 51", "talk 2"]
    tab.run("document.querySelector('.pages button:not(:disabled)').focus()")
    tab.press("Enter", 13)
    assert tab.run(names) == ["talk 1", "talk 0"]
    tab.run("document.querySelector('.sort').focus()")
    for first, way in (("talk 0", "ascending"), ("talk 51", "descending")):
        tab.press("Enter", 13)
        assert tab.run(names)[0] == first
        assert tab.run("document.querySelector('[aria-sort]').ariaSort") == way
    check_axe(tab, axe)
    kind = "document.querySelector('[aria-label=\"Kind of memory\"]')"
    tab.run(f"{kind}.value = 'mnemis'; {kind}.dispatchEvent(new Event('change'))")
    assert tab.run(names) == ["talk 7"]
    assert tab.run(total) == "1 of 52"
    tab.show(f"{site.root}/inspect/", size=(390, 844), dark=True)
    by = "document.querySelector('[aria-label=\"Sort by\"]')"
    tab.run(f"{by}.value = '0 1'; {by}.dispatchEvent(new Event('change'))")
    assert tab.run(names)[:3] == ["talk 0", "talk 1", "talk 2"]
    assert tab.run("document.documentElement.scrollWidth") == 390
    check_axe(tab, axe)


def renewed(tab: Tab, script: str) -> None:
    """Run what changes the memory, and wait until the page shows that; it is not loaded anew."""
    shown = "document.documentElement.dataset.version"
    tab.run(f"window.shownBefore = {shown}; {script}")
    tab.wait(f"window.shownBefore && window.shownBefore != {shown}")


def _say(tab: Tab, words: str) -> None:
    """Say something, and see it and the reply above, and in the text."""
    tab.run(f"document.querySelector('#question').value = {words!r}")
    tab.run("document.querySelector('#say').click()")
    tab.wait("!!document.querySelector('.asked[open] .ground')?.textContent")
    reply = tab.run("document.querySelector('.asked[open] .answer').textContent")
    assert tab.run("document.querySelector('.asked[open] h2').textContent") == words
    noted = tab.run("document.querySelector('.asked[open] .ground').textContent")
    assert "remembered as turn" in noted
    assert tab.run("document.querySelector('#said').textContent") == reply
    assert tab.run("document.activeElement.id") == "question"
    text = tab.run("document.querySelector('#text').textContent")
    assert text.index(words) < text.rindex(reply)
    shown = tab.run("[...CSS.highlights.get('passage')].join()")
    assert shown == f"assistant: {reply}"


def _begin(tab: Tab, root: str) -> None:
    """Begin a conversation from the list, where it stands from then on."""
    tab.show(root)
    tab.run("document.querySelector('#begin').value = 'trip ü?'")
    tab.run("document.querySelector('.begin').requestSubmit()")
    tab.wait("location.pathname.endsWith('memory') && document.documentElement.dataset.ready")
    assert tab.run("document.querySelector('#title').textContent") == "trip ü?"
    assert tab.run("!document.querySelector('#say').hidden")


def _correct(tab: Tab) -> None:
    """Open the topic from the timeline, change and freeze it, and find both in the log."""
    tab.run("document.querySelector('#views [value=timeline]').click()")
    tab.run("document.querySelector('#timeline a').click()")
    tab.run("[...document.querySelectorAll('.by-hand button')][0].click()")
    tab.wait("!!document.querySelector('#summary')")
    tab.run("document.querySelector('#summary').value = 'Star is a horse.'")
    tab.run("document.querySelector('#frozen').checked = true")
    tab.run("document.querySelector('.by-hand form').requestSubmit()")
    tab.wait(f"!document.querySelector('.by-hand form') && {DETAIL}.includes('Star is a horse.')")
    tab.run("document.querySelector('#views [value=log]').click()")
    tab.wait("document.querySelectorAll('#log-rows details').length > 3")
    log = tab.run("document.querySelector('#log-rows').textContent")
    assert "Star is a horse." in log
    assert "freeze" in log
    _undo(tab)
    tab.run("document.querySelector('.by-hand button').click()")
    tab.wait("!!document.querySelector('#merge')")
    assert tab.run("document.querySelector('#merge').options.length") == 2
    tab.run("document.querySelector('#frozen').checked = false")
    tab.run("document.querySelector('#merge').value = 't2'")
    tab.run("document.querySelector('.by-hand form').requestSubmit()")
    tab.wait(f"!document.querySelector('.by-hand form') && {DETAIL}.includes('Star is a horse. ')")
    tab.run("document.querySelector('#views [value=timeline]').click()")
    assert tab.run("document.querySelectorAll('#timeline a').length") == 1


def _undo(tab: Tab) -> None:
    """Take back a correction from the log, and that again; the topic is released for it."""
    rows = "[...document.querySelectorAll('#log-rows > li')]"
    for op, is_corrected in (
        ("freeze", True),
        ("rewrite", False),
        ("rewrite", True),
        ("unfreeze", True),
    ):
        row = f"{rows}.findLast((e) => e.querySelector('b').textContent == {op!r})"
        tab.run(f"{row}.querySelector('summary').click()")
        tab.wait(f"!!{row}.querySelector('.acts')")
        renewed(tab, f"[...{row}.querySelectorAll('.acts button')].at(-1).click()")
        assert ("Star is a horse." in tab.run(DETAIL)) is is_corrected
        tab.wait(f"{rows}.length > 3")


@pytest.mark.browser
def test_a_reader_merges_entities_and_forgets_the_turn_that_one_stands_on(
    site: Site, tab: Tab
) -> None:
    site.do(tell, site.served, memory="mnemis")
    first = (
        f"[...document.querySelectorAll('#text mark')].find((e) => {HORSE!r}.includes(e.innerText))"
    )
    tab.unlock(site.root, site.key)
    tab.show(f"{site.root}/inspect/memory?id=diary")
    tab.run(f"{first}.click()")
    for view in ("timeline", "graph"):
        tab.run(f"document.querySelector('#views [value={view}]').click()")
    tools = "document.querySelector('.by-hand').textContent"
    assert tab.run(tools) == "Merge…Forget this turn…"
    tab.run("document.querySelector('.by-hand button').click()")
    tab.run("document.querySelector('#merge').selectedIndex = 1")
    renewed(tab, "document.querySelector('.by-hand form').requestSubmit()")
    tab.run(f"{first}.click()")
    assert tab.run(tools) == "Forget this turn…"
    tab.run("document.querySelector('.by-hand button').click()")
    said = tab.wait("document.querySelector('.by-hand p')?.textContent")
    assert said == "1 turn and what was made of it are deleted for good."
    renewed(tab, "document.querySelector('.by-hand button').click()")
    assert HORSE not in tab.run("document.documentElement.textContent")
    tab.run("document.querySelector('#views [value=log]').click()")
    for op in ("merge", "forget"):
        row = "[...document.querySelectorAll('#log-rows > li')].findLast("
        row += f"(each) => each.querySelector('b')?.textContent == {op!r})"
        tab.wait(f"!!{row}")
        tab.run(f"{row}.querySelector('summary').click()")
        assert "cannot be undone" in tab.wait(f"{row}.querySelector('.acts')?.textContent")
    page = site.do(site.http.get, "/api/memories/diary/page").text
    assert HORSE not in page
    assert "I painted" in page


@pytest.mark.browser
def test_a_reader_deletes_memories_after_seeing_what_goes(paper_site: Site, tab: Tab) -> None:
    """Delete the document from the list, after thinking about it, and the other from its page."""
    site = paper_site
    site.do(tell, site.served, name=NAME)
    site.do(site.http.read, story(8))
    tab.unlock(site.root, site.key)
    tab.run("document.querySelector('[aria-label=\"Delete b.txt…\"]').click()")
    tab.wait("document.querySelectorAll('.deletion li').length > 2")
    said = tab.run("document.querySelector('.deletion').innerText")
    assert "Delete b.txt?" in said
    assert f"the document: {len(story(8))} characters" in said
    assert "1 memory: mindgraph (mem_" in said
    assert "0 questions, 0 answers, 1 model call" in said
    assert "job: " in said
    assert tab.run("document.activeElement.textContent") == "Cancel"
    tab.run("document.activeElement.click()")
    assert tab.wait("!document.querySelector('dialog')")
    assert tab.run("document.querySelectorAll('tbody tr').length") == 2
    tab.run("document.querySelector('[aria-label=\"Delete b.txt…\"]').click()")
    tab.wait("!document.querySelector('.deletion .danger').disabled")
    led(tab, "document.querySelector('.deletion .danger').click()")
    assert tab.run("document.querySelectorAll('tbody tr').length") == 1
    tab.run("document.querySelector('tbody a').click()")
    tab.wait("location.pathname.endsWith('memory') && document.documentElement.dataset.ready")
    tab.run("document.querySelector('header [aria-label^=Delete]').click()")
    tab.wait("document.querySelectorAll('.deletion li').length > 2")
    assert NAME in tab.run("document.querySelector('.deletion').innerText")
    assert "the conversation: 4 turns" in tab.run("document.querySelector('.deletion').innerText")
    tab.run("document.querySelector('.deletion .danger').click()")
    tab.wait("location.pathname.endsWith('inspect/') && document.documentElement.dataset.ready")
    assert "There is no memory yet" in tab.run("document.querySelector('main').innerText")
    assert tab.run("document.title") == "Memories · mgl"
    assert site.do(site.http.memories) == []
    assert site.do(site.http.get, "/api/jobs").json()["jobs"] == []


@pytest.mark.browser
def test_a_page_that_grows_large_is_drawn_as_a_large_one(site: Site, tab: Tab) -> None:
    """Though it was not large when it was loaded."""
    site.do(tell, site.served)
    tab.unlock(site.root, site.key)
    tab.show(f"{site.root}/inspect/memory?id=diary")
    small, large = tab.run(
        """Promise.all([import("./camera.js"), import("./state.js")]).then(([seen, held]) => {
            seen.camera.zoom = 0.02;
            const sizes = [seen.size()];
            held.drawable.push(...Array(2001).fill(held.drawable[0]));
            return [...sizes, seen.size()];
        })"""
    )
    assert large < small
