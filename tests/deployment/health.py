"""The image's health check, run as a plain process."""

import os
import subprocess
import sys

from tests.deployment.files import final_stage, only, read_dockerfile

NOBODY = "http://127.0.0.1:9"


def run_health_check(port: int) -> int:
    """Return its exit status for the service on `port`: 0 is healthy.

    The environment names a proxy where nobody listens: the check must not ask it.
    """
    program, *arguments = only("HEALTHCHECK", final_stage(read_dockerfile())).exec_form
    assert program == "python"
    environment = os.environ | {"LINEAGE_PORT": str(port), "http_proxy": NOBODY}
    run = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        stderr=subprocess.DEVNULL,
        timeout=30,
        check=False,
    )
    return run.returncode
