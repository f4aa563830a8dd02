"""An access log that cannot be written is told of by a metric, and fails no request."""

import re

from app.db.engine import open_engine
from tests.conftest import StartService
from tests.db.faults import refuse_inserts
from tests.support.client import Api, answer
from tests.support.tree import grow_tree, unique_checkpoint


def lost(api: Api) -> float:
    found = re.search(
        r"^lineage_access_records_lost_total (\S+)$", api.metrics().text, re.MULTILINE
    )
    assert found
    return float(found[1])


def test_the_metric_counts_the_records_of_writes_and_reads_that_were_lost(
    start_service: StartService,
) -> None:
    service = start_service()
    with Api(service.base_url) as api:
        tree = grow_tree(api, unique_checkpoint(), {"root": {}})
        before = lost(api)
        engine = open_engine(service.settings.database, connections=1)
        refuse_inserts(engine, "access_log")
        engine.dispose()

        tree.write("root", "first", "second")
        assert tree.own("root") == ["first", "second"]
        # Asking for the log writes down the reads that are waiting.
        assert answer(api.access_log(tree.checkpoint))["items"] == []

        assert lost(api) - before == 3
