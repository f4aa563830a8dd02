# The packages are installed in a stage of their own: pip and its leavings stay behind.
FROM python:3.13-slim AS build
WORKDIR /srv/letta-lineage
RUN python -m venv /venv
COPY requirements.lock ./
RUN /venv/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY app ./app
COPY migrations ./migrations
# Linked, not copied, into the environment: the migrations lie beside the package, as in a checkout.
RUN /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
 && /venv/bin/python -m compileall -q app migrations \
 && /venv/bin/python -m pip uninstall --yes --quiet pip

FROM python:3.13-slim
# A number, so that an orchestrator can see that it is not root. A new volume takes over the owner.
RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /data lineage \
 && install --directory --owner lineage --group lineage /data
COPY --from=build /venv /venv
COPY --from=build /srv/letta-lineage /srv/letta-lineage
WORKDIR /srv/letta-lineage
ENV PATH=/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    LINEAGE_HOST=0.0.0.0 \
    LINEAGE_PORT=8000 \
    LINEAGE_DATA_DIR=/data
USER 10001:10001
VOLUME /data
EXPOSE 8000
# Liveness, not readiness: a service that waits for its database must not be restarted for it.
# http.client, because it asks no proxy that the environment may name.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["python", "-I", "-c", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['LINEAGE_PORT']), timeout=4); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["letta-lineage"]
CMD ["serve"]
