"""Own documents: the API version of the kinds that Bayplan reads and writes itself.

Timeline, WhatIf, Recording and every report of `-o json` and `-o yaml` carry it.
"""

GROUP = "bayplan.dev"
API_VERSION = f"{GROUP}/v1"

KUBERNETES_VERSION = f"{GROUP}/kubernetes-version"
"""The annotation of namespaces with the version of the cluster that a snapshot or a recording was made of."""
