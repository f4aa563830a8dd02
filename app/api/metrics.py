"""The service's metrics, in a registry of its own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """One set of metrics an application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "lineage_requests",
            "Requests answered",
            ["operation", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "lineage_request_seconds",
            "Seconds from a request's head to its answer's end",
            ["operation"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.accesses_lost = Counter(
            "lineage_access_records_lost",
            "Access records that could not be written",
            registry=self.registry,
        )
        self.indexing_failures = Counter(
            "lineage_indexing_failures",
            "Batches of entries that the archive did not take",
            registry=self.registry,
        )
        self.archive_lag = Gauge(
            "lineage_archive_lag",
            "What Letta has not been told yet",
            ["kind"],
            registry=self.registry,
        )
        answered = ["mode", "ranked_by"]
        self.search_rounds = Histogram(
            "lineage_search_rounds",
            "Windows of Letta's ranking asked for by a search",
            answered,
            buckets=(0, 1, 2, 3, 4, 6, 8),
            registry=self.registry,
        )
        self.search_window = Histogram(
            "lineage_search_window",
            "Passages in the widest window of a search; everything counts as infinity",
            answered,
            buckets=(0, 200, 400, 800, 1600, 3200, 6400, 12800),
            registry=self.registry,
        )
        self.search_letta_seconds = Histogram(
            "lineage_search_letta_seconds",
            "Seconds of a search that were spent in Letta",
            answered,
            buckets=SECONDS,
            registry=self.registry,
        )
        self.cache_bytes = Gauge(
            "lineage_cache_bytes", "Bytes of entries and vectors in memory", registry=self.registry
        )
