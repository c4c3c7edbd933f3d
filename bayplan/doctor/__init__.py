"""Doctor: reads a cluster once and lists the reasons why answers may differ from its scheduler.

Lives here: the facts of a cluster (`cluster_facts.py`, read by `live_facts.py`), and the checks that make findings of
them. Checks are functions of facts, without I/O. Called by the command `doctor` and, for the findings that cost no
request, by every question about a live cluster.
"""
