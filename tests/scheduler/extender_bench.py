"""A scheduler with in-memory extenders on three nodes."""

from typing import Any

from bayplan.errors import ApiError
from bayplan.testing.builders import make_node
from bayplan.testing.extenders import FakeExtender
from tests.rig.scenarios import Scenario

GPU = "example.com/gpu"
NODES = [make_node(name) for name in "abc"]
DEAD = ApiError('Post "http://x/filter": Connection refused')


class Bench(Scenario):
    """A scheduler with extenders that answer from memory: (configuration, answers) each."""

    def __init__(
        self,
        *objects: Any,
        extenders: list[tuple[dict[str, Any], FakeExtender]],
        **options: Any,
    ) -> None:
        urls = [f"http://extender-{i}" for i in range(len(extenders))]
        fakes = {url: fake for url, (_, fake) in zip(urls, extenders, strict=True)}
        configs = [
            {"urlPrefix": url, **config} for url, (config, _) in zip(urls, extenders, strict=True)
        ]
        super().__init__(
            *objects,
            extenders=configs,
            extender_transport=lambda config: fakes[config.url_prefix],
            **options,
        )

    def place(self, pod: Any) -> Any:
        """The first attempt; pods that extenders refuse are tried again soon, as any event brings them back."""
        self.add(pod)
        return next(attempt for attempt in self.run() if attempt.pod.name == pod.name)
