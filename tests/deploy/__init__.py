"""deploy/ keeps its promises: the image, the manifests, the dashboard and the alerts."""
