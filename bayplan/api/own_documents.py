"""Own documents: the API version of the kinds that Bayplan reads and writes itself.

Timeline, WhatIf, Recording and every report of `-o json` and `-o yaml` carry it.
"""

GROUP = "bayplan.dev"
API_VERSION = f"{GROUP}/v1"
