"""The benchmark of `bayplan up`, with a few pods."""

from pathlib import Path

from benchmarks.up_bench import measure


def test_all_pods_are_seen_to_run(tmp_path: Path) -> None:
    found = measure(nodes=2, pods=12, clients=3, folder=tmp_path)

    assert found.pods == 12
    assert min(found.seconds, found.server_cpu_s, found.peak_mib) > 0
    assert list(found.latency_ms) == ["p50", "p90", "p99"]
