"""Checks of deploy/: the image, the manifests, the dashboard and the alerts."""
