"""Benchmarks: scheduling throughput, memory, and the cost of events.

Contents: reading files of workloads in the manner of Kubernetes' scheduler_perf (`ops.py`,
`cases.py`), making their objects, running them (`op_executor.py`, read it first), measuring,
comparing, and drawing. The workloads of the package are in `workloads/`. Imports: what may
enter sim. Never: printing, or measuring what is not documented in
docs/benchmarks.md. Callers: cli, and users' scripts.
"""
