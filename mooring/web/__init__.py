"""The page: a cluster, its queue and its decisions as people look at them in a browser.

Lives here: what the page shows (`history.py`, read it first; `accounts.py`), the report file (`report.py`), the live
page (`live.py`), and the page itself (`page/`: plain HTML, CSS and JavaScript that `assembly.py` joins). May enter:
scheduler, config, cluster, api. Must not happen: a decision, or a change of anything that is shown.
Called by: `cli`.
"""

from .history import History
from .report import write_report

__all__ = ["History", "write_report"]
