"""A peer for tests: one call for each part that it reads, and it finds parts that share a word."""

import json
import os
import time
import urllib.request
import uuid
from pathlib import Path


class Adapter:
    def __init__(self, settings):
        self._settings = settings
        self._notes = []

    def _call(self, path, **body):
        request = urllib.request.Request(
            f"{self._settings['base_url']}/{path}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self._settings['key']}"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def _ask(self, text):
        messages = [{"role": "user", "content": text}]
        said = self._call("chat/completions", model=self._settings["model"], messages=messages)
        return said["choices"][0]["message"]["content"]

    def read(self, units):
        for unit in units:
            print("this goes to the log")
            if "explode" in unit["text"]:
                raise KeyError("relations")
            if "die" in unit["text"].split():
                os._exit(1)
            try:
                note = self._ask(f"[{uuid.uuid4()} {time.time():.0f}] Note: {unit['text']}")
            except urllib.error.URLError:
                note = ""  # as packages do that swallow what goes wrong
            self._notes.append((unit["place"], unit["text"], note))

    def finish(self):
        text = "\n".join(text for _, text, _ in self._notes)
        Path(self._settings["folder"], "store.txt").write_text(text)
        return {"notes": len(self._notes), "empty": sum(not note for *_, note in self._notes)}

    def retrieve(self, question):
        if self._settings["embedder"]:
            said = self._call("embeddings", model=self._settings["embedder"], input=question)
            assert len(said["data"][0]["embedding"]) == self._settings["dims"]
        words = set(question.lower().strip("?").split())
        found = [each for each in self._notes if words & set(each[1].lower().strip(".").split())]
        return [{"text": text, "kind": "note", "units": [place]} for place, text, _ in found]

    def answer(self, question):
        seen = sorted(set(os.environ) & {"MGL_API_KEY", "HOME"})
        return {"text": self._ask(f"Native: {question} {seen}"), "trace": ["asked once"]}
