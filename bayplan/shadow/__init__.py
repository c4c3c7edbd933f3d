"""Shadow: a cluster watched alongside its scheduler; every decision is judged, and nothing is written.

Lives here: the account of judged decisions (`decision_account.py`), the run that follows a recording or a live cluster
(`shadow_run.py`), the evidence of differences, the cost of sampling and of waiting, and the connection to a live
cluster (`live_shadow.py`). The rules are those of `scheduler/`, the judge is that of `answers/`: no placement rule and
no second judge enters. Called by the commands `shadow` and `replay --judge`.
"""
