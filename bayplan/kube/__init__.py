"""Kube: a real cluster behind its API server.

Contents: the connection (`credentials.py`, `connection.py`), reading (`reflector.py`: list and watch;
`cluster_reader.py` and `live_cluster.py` for read-only commands), writing (`sender.py`, `post_pipeline.py`,
`event_recorder.py`), the lease (`leader.py`), and access reviews (`reviews.py`), all of it asyncio; and
`kube_cluster.py`, which the scheduler reads and writes on its own thread. Imports: api, framework, cluster/objects.
Never: a decision, or a change of the scheduler's data outside of the scheduler's thread. Callers: the scheduler's
driver for Kubernetes, and the command.
"""
