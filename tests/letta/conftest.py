"""Services whose way to the real Letta leads through a proxy that fails on demand."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.conftest import StartService
from tests.support.http_proxy import HttpFaultProxy
from tests.support.letta import RealLetta
from tests.support.ports import LOOPBACK
from tests.support.proxy import Endpoint
from tests.support.service import InProcessService
from tests.support.storage import Storage


@pytest.fixture
def way(letta: RealLetta) -> Iterator[HttpFaultProxy]:
    """The way to Letta."""
    port = urlsplit(letta.base_url).port
    assert port is not None
    with HttpFaultProxy(Endpoint.tcp(port)) as proxy:
        yield proxy


@pytest.fixture
def start_behind(
    way: HttpFaultProxy,
    letta: RealLetta,
    letta_instance: str,
    letta_embeddings: str,
    start_service: StartService,
) -> StartService:
    """Start services in this process, behind the proxy; a write waits for Letta half a second."""

    def start(*, storage: Storage | None = None, **settings: object) -> InProcessService:
        chosen = {
            **letta.settings(letta_instance),
            "letta_base_url": f"http://{LOOPBACK}:{way.port}",
            "embeddings_url": letta_embeddings,
            "index_wait_s": 0.5,
            **settings,
        }
        return start_service(storage=storage, **chosen)

    return start
