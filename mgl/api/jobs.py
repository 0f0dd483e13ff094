"""Builds that run in the background and survive a restart: one file each, in the tenant's folder.

    job = await jobs.start(document, memory="mindgraph")
    async for state in jobs.follow(job.id): ...

``start`` returns once the document is stored and the job has its file. An unfinished job restarts
with the server and resumes, since the memory's log holds what its build has done. A cancelled job
stops for good; what it did stays. Deleting a document deletes its jobs; a job can be deleted alone.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError

from mgl.api.relay import relay_to
from mgl.errors import MglError
from mgl.lab import Lab
from mgl.lab.deleting import drop_unfinished_writes, hold_jobs
from mgl.llm.concurrency import StopSignal
from mgl.models.files import write_whole
from mgl.openai.errors import NotServed
from mgl.openai.faults import describe_fault, log_fault
from mgl.types import Document

MOST_KEPT: Final = 1000
FINISHED: Final = ("done", "failed", "cancelled")
DELETED: Final = "this job was deleted"


class Job(BaseModel):
    """A build: of what, how far it is, and what came of it."""

    id: str
    document_id: str
    document: str
    memory: str
    questions: list[str] = []
    state: Literal["waiting", "running", "done", "failed", "cancelled"] = "waiting"
    created: float
    progress: dict[str, Any] = {}
    memory_id: str | None = None
    error: str | None = None

    @property
    def is_finished(self) -> bool:
        return self.state in FINISHED


class Jobs:
    """The jobs of one lab, from one event loop; one is done at a time."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        self._folder = folder
        self._lab = lab
        self._jobs: dict[str, Job] = {}
        self._changed: dict[str, set[asyncio.Event]] = {}
        self._stops: dict[str, StopSignal] = {}
        self._turn = asyncio.Semaphore(1)
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def open(cls, folder: Path, lab: Lab) -> Jobs:
        """Read the jobs of a folder, and begin those again that are not finished."""
        jobs = cls(folder, lab)
        if folder.is_dir():
            with hold_jobs(folder):
                drop_unfinished_writes(folder)
        for path in folder.glob("*.json") if folder.is_dir() else ():
            try:
                job = Job.model_validate_json(path.read_bytes())
            except ValidationError:
                continue  # of another version: what it built is in the store
            if lab.has_document(job.document_id):
                jobs._jobs[job.id] = job
            else:  # it was deleted, and the one who did was interrupted
                path.unlink(missing_ok=True)
        jobs._jobs = dict(sorted(jobs._jobs.items(), key=lambda item: item[1].created))
        for job in jobs._jobs.values():
            if not job.is_finished:
                jobs._begin(job)
        return jobs

    async def start(self, document: Document, memory: str, questions: Sequence[str] = ()) -> Job:
        """Begin to build a memory of a document."""
        await asyncio.to_thread(self._lab.keep, document)
        job = Job(
            id=secrets.token_hex(8),
            document_id=document.id,
            document=document.name,
            memory=memory,
            questions=list(questions),
            created=time.time(),
        )
        self._jobs[job.id] = job
        self._write(job)
        self._drop_old()
        self._begin(job)
        return job

    def list_all(self) -> list[Job]:
        """All jobs, the newest first."""
        self.drop_deleted()
        return [*self._jobs.values()][::-1]

    def find(self, identity: str) -> Job:
        """The job with this id; NotServed if there is none."""
        self.drop_deleted()
        if identity not in self._jobs:
            raise NotServed(f"there is no job {identity!r}", hint="list the jobs for their ids")
        return self._jobs[identity]

    def cancel(self, identity: str) -> Job:
        """Stop a job for good, unless it is finished; NotServed if there is none."""
        job = self.find(identity)
        if not job.is_finished:
            self._change(job, {"state": "cancelled"})
            self._write(job)  # before anybody hears of it: a restart must not begin it again
            if identity in self._stops:
                self._stops[identity].ask()
        return job

    async def follow(self, identity: str) -> AsyncGenerator[dict[str, Any]]:
        """A job's state now, and each time that it changes, until it is finished."""
        changed = asyncio.Event()
        job = self.find(identity)
        self._changed.setdefault(identity, set()).add(changed)
        try:
            while True:
                changed.clear()
                told = job.model_copy()  # the job may end before its listener asks for more
                yield told.model_dump()
                if told.is_finished:
                    return
                await changed.wait()
        finally:
            self._changed[identity].discard(changed)

    async def delete(self, identity: str) -> Job:
        """Delete a job: stop it, and remove its file.

        Its document goes, too, unless a memory was begun of it or another job names it. What the
        build has done is in its memory, which is deleted by itself.
        """
        job = self.find(identity)
        self._forget(job)
        await asyncio.to_thread(self._remove_file, job)
        if all(other.document_id != job.document_id for other in self._jobs.values()):
            await asyncio.to_thread(self._lab.delete_unused, job.document_id)
        return job

    def drop_deleted(self) -> None:
        """Forget the jobs whose files were removed with their documents, be it by another
        process."""
        for job in [job for job in self._jobs.values() if not self._path(job).exists()]:
            self._forget(job)

    async def close(self) -> None:
        """Stop; what is not finished is begun again by ``open``."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, job: Job) -> None:
        task = asyncio.create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, job: Job) -> None:
        loop = asyncio.get_running_loop()

        def hear(event: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(self._change, job, {"progress": event})

        async with self._turn:
            if job.is_finished:
                return
            self._change(job, {"state": "running"})
            stop = self._stops[job.id] = StopSignal()
            try:
                with relay_to(hear):
                    built = await asyncio.to_thread(self._build, job, stop)
            except MglError as error:
                self._change(job, {"state": "failed", "error": str(error)})
            except Exception as error:
                log_fault(error, job.id)
                self._change(job, {"state": "failed", "error": describe_fault(job.id)})
            else:
                self._change(job, {"state": "done", "memory_id": built, "error": None})
            finally:
                del self._stops[job.id]
            self._write(job)

    def _build(self, job: Job, stop: StopSignal) -> str | None:
        """Build a job's memory and return its id; None if it was stopped."""
        document = self._lab.load(job.document_id)
        try:
            built = self._lab.build_stored(document, job.questions, memory=job.memory, stop=stop)
        except CancelledError:
            return None
        return built.memory_id

    def _change(self, job: Job, what: dict[str, Any]) -> None:
        if job.is_finished:
            return  # progress that was on its way
        for name, value in what.items():
            setattr(job, name, value)
        for changed in self._changed.get(job.id, ()):
            changed.set()

    def _write(self, job: Job) -> None:
        """Write a job's file, unless the job or its document was deleted."""
        with hold_jobs(self._folder):
            if job.id in self._jobs and self._lab.has_document(job.document_id):
                write_whole(self._path(job), job.model_dump_json().encode())

    def _remove_file(self, job: Job) -> None:
        with hold_jobs(self._folder):
            self._path(job).unlink(missing_ok=True)

    def _path(self, job: Job) -> Path:
        return self._folder / f"{job.id}.json"

    def _forget(self, job: Job) -> None:
        """Stop a job, and tell those who follow it that it was deleted."""
        self._change(job, {"state": "cancelled", "error": DELETED})
        if job.id in self._stops:
            self._stops[job.id].ask()
        del self._jobs[job.id]

    def _drop_old(self) -> None:
        finished = [job for job in self._jobs.values() if job.is_finished]
        for job in finished[: max(0, len(self._jobs) - MOST_KEPT)]:
            self._remove_file(job)
            del self._jobs[job.id]
