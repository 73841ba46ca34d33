"""How the service does, in the text format of Prometheus."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the latency buckets, in seconds."""


class Meter:
    """Counts requests and their times by route; for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._events: Counter[str] = Counter()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        bucket = next((place for place, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
        with self._lock:
            self._requests[method, route, status] += 1
            self._buckets[route][bucket] += 1
            self._seconds[route] += seconds

    def count(self, event: str, times: int = 1) -> None:
        """Count something that happened, under its name."""
        with self._lock:
            self._events[event] += times

    def text(self, gauges: Mapping[str, tuple[str, float]], labels: Mapping[str, str]) -> str:
        """Write everything down.

        Args:
            gauges: further values: name to a line of help, and the value.
            labels: what is served, as labels of ``hatchway_bundle_info``.
        """
        with self._lock:
            return "\n".join([*self._lines(gauges, labels), ""])

    def _lines(self, gauges: Mapping[str, tuple[str, float]], labels: Mapping[str, str]) -> Iterator[str]:
        yield from _head("hatchway_requests_total", "counter", "Requests answered.")
        for (method, route, status), count in sorted(self._requests.items()):
            yield f'hatchway_requests_total{{method="{method}",route="{_quoted(route)}",status="{status}"}} {count}'
        yield from _head("hatchway_request_seconds", "histogram", "Time from a request to the end of its answer.")
        for route, buckets in sorted(self._buckets.items()):
            below = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), buckets, strict=True):
                below += count
                yield f'hatchway_request_seconds_bucket{{route="{_quoted(route)}",le="{bound}"}} {below}'
            yield f'hatchway_request_seconds_sum{{route="{_quoted(route)}"}} {self._seconds[route]:.6f}'
            yield f'hatchway_request_seconds_count{{route="{_quoted(route)}"}} {below}'
        for event, count in sorted(self._events.items()):
            yield from _head(f"hatchway_{event}_total", "counter", event.replace("_", " ").capitalize() + ".")
            yield f"hatchway_{event}_total {count}"
        for name, (said, value) in gauges.items():
            yield from _head(f"hatchway_{name}", "gauge", said)
            yield f"hatchway_{name} {value:g}" if value != int(value) else f"hatchway_{name} {int(value)}"
        yield from _head("hatchway_bundle_info", "gauge", "What is being served.")
        shown = ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items())
        yield f"hatchway_bundle_info{{{shown}}} 1"


class Metered:
    """Tells a meter of every request, with the time until the last byte of its answer.

    Args:
        app: the application behind it.
        meter: what counts.
    """

    def __init__(self, app: ASGIApp, meter: Meter) -> None:
        self._app, self._meter = app, meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500
        begin = time.perf_counter()

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            endpoint = scope.get("endpoint")  # the path would be another line for every item
            route = getattr(endpoint, "__name__", "other")
            method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST") else "other"
            self._meter.answered(method, route, status, time.perf_counter() - begin)


def _head(name: str, kind: str, said: str) -> tuple[str, str]:
    return f"# HELP {name} {said}", f"# TYPE {name} {kind}"


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
