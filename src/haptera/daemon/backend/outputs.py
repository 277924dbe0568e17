"""Files that modules, services, jobs and images leave behind, here or on a node."""

from dataclasses import dataclass

import msgspec

from haptera.core.state.table import EntityTable
from haptera.daemon.backend.queries import AGENT_WITHIN_S, AskAgent
from haptera.daemon.logs import Logs
from haptera.daemon.queue.job_logs import JobLogs
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.model.entity import EntityId
from haptera.model.errors import Code, HapteraError
from haptera.model.text import whole_number
from haptera.modules.image.store import ImageStore
from haptera.modules.netboot.strangers import read_strangers
from haptera.rest.unclaimed import UnclaimedView
from haptera.runtime.network.peer_messages import Answer, LogAsked, LogPlace, LogTold, Unable
from haptera.runtime.reading_threads import in_reading_thread


@dataclass(frozen=True, slots=True)
class ParentOutputs:
    """Those of nodes are asked of their agents."""

    table: EntityTable
    logs: Logs
    jobs: ParentQueue
    job_logs: JobLogs
    images: ImageStore
    ask_agent: AskAgent

    async def log(self, entity: EntityId, after: LogPlace | None) -> LogTold:
        """A part of a log, after a place, or the end of it; of a node, that of its console."""
        asked = LogAsked(entity, after=after)
        if entity.kind == "job":
            answer = await self._ask_holder(asked)
        elif entity.node is None:
            known = (row.id for row in self.table.of_cluster(entity.kind))
            answer = self.logs.answer(asked, known)
        elif entity.kind == "node":
            declared = [entity] if self.table.get(entity) is not None else []
            answer = self.logs.answer(asked, declared)
        else:
            answer = await self.ask_agent(entity.node, asked, AGENT_WITHIN_S)
        match answer:
            case LogTold():
                return answer
            case Unable(text):
                raise HapteraError(text)
            case _:
                raise HapteraError(
                    "the agent answered with something else", code=Code.VERSION_MISMATCH
                )

    async def _ask_holder(self, asked: LogAsked) -> Answer:
        """The answer of the last node that had a job; where that has no log, the copy kept here."""
        job = self.jobs.queue.job(whole_number(asked.entity.name) or 0)
        if job.token is None:
            raise HapteraError(f"{asked.entity} has not run yet", code=Code.NOT_FOUND)
        answer = await self.ask_agent(job.holder or "nobody", asked, AGENT_WITHIN_S)
        if isinstance(answer, Unable):
            return self.job_logs.told(job, asked.after) or answer
        return answer

    async def inventory(self, image: str) -> bytes | None:
        return await in_reading_thread(self.images.inventory, image)

    def strangers(self) -> list[UnclaimedView]:
        found = read_strangers(self.logs.directory)
        return [UnclaimedView(**msgspec.structs.asdict(one)) for one in found]
