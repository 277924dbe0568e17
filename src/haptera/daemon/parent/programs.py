"""The processes that a parent starts: modules, controllers, planners, and readers of sites."""

from collections.abc import Callable, Iterable
from pathlib import Path

from haptera.daemon.parent.modules import ParentModules
from haptera.daemon.samples.sampling import Sampling
from haptera.model.events import Event
from haptera.modules import BUNDLED
from haptera.runtime.processes.control import Source
from haptera.runtime.processes.controllers import Controllers
from haptera.runtime.processes.process import ModuleProcesses
from haptera.runtime.processes.secrets import SecretStore, Starter
from haptera.runtime.search.searcher import Searcher
from haptera.site.apply.site_process import readers


class Programs:
    """`source` is what controllers read and write. Needs a running loop."""

    def __init__(
        self,
        modules: ParentModules,
        log_dir: Path,
        secrets: SecretStore,
        source: Source,
        sampling: Sampling,
        deliver: Callable[[Iterable[Event]], None],
    ) -> None:
        settings, self._zygote = modules.settings, modules.zygote
        self.searcher = Searcher(self._zygote, deliver, log_dir)
        self.readers = readers(self._zygote, log_dir)
        self.processes = ModuleProcesses(
            self._zygote,
            sampling.beside(deliver),
            places={**BUNDLED, **{one.name: one for one in settings.own}},
            run_dir=modules.home,
            log_dir=log_dir,
            controllers=Controllers(settings.controllers, source),
            confine=modules.confine(),
            sampled=sampling.sampled,
        )
        self.starter = Starter(
            self.processes, secrets.find_at_parent, deliver, secrets.read_at_parent
        )
        sampling.ask(self.starter.call, self.processes.cancel)

    def close(self) -> None:
        """End all of them."""
        self.starter.close()
        self.processes.close()
        self.searcher.close()
        self._zygote.close()
