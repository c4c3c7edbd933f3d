"""Page data: the cluster of `bayplan up` as the source of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...apiserver import ApiServer
    from ...scheduler import Scheduler
    from ...sim.settings import Settings
    from ...web.live import PageSource
    from ...web.live_use import ReadUse


def page_source(
    server: ApiServer,
    scheduler: Scheduler | None,
    settings: Settings,
    read_use: ReadUse | None = None,
) -> PageSource:
    """The data of the page."""
    from ...answers.questions import answer_question
    from ...apiserver.object_editor import ObjectEditor
    from ...trials import TrialCluster
    from ...web.live import AnswerBody, PageSource

    cluster = server.plane.cluster

    def view() -> TrialCluster:
        objects = [obj for kind in cluster.kinds() for obj in cluster.list(kind)]
        return TrialCluster(objects, settings, server.clock)

    def begin_question() -> AnswerBody:
        objects = [obj for kind in cluster.kinds() for obj in cluster.list(kind)]
        return lambda body: answer_question(objects, settings, body)

    return PageSource(
        cluster,
        server.clock,
        lambda: scheduler,
        make_view=view,
        begin_question=begin_question,
        edit=ObjectEditor(server.registry).handle,
        read_use=read_use,
    )
