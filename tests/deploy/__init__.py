"""deploy/ is held to what it promises: the image, the manifests, the dashboard and the alerts."""
