"""Kube: a real cluster behind its API server.

What lives here: the connection (`credentials.py`, `connection.py`), reading (`reflector.py`: list
and watch; `cluster_reader.py` and `cluster_watch.py` for read-only commands), writing (`sender.py`,
`post_pipeline.py`, `event_recorder.py`), the lease (`leader.py`), and access reviews (`reviews.py`), all of it
asyncio; and `kube_cluster.py`, which the scheduler reads and writes on its own thread. What may enter:
api, framework, cluster/objects. What must not happen: a decision, or a change of the
scheduler's data outside of the scheduler's thread. Who calls it: the scheduler's driver for
Kubernetes, and the command.
"""
