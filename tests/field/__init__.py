"""Field: every question about real material, published manifests and dumps of a real control plane.

Contents: a corpus of our own with the traits of real objects (`corpus/`, its dump was recorded from kube-apiserver,
kube-controller-manager and kube-scheduler v1.36.4), the questions, and mutations of the corpus. `python -m tests.field`
asks every question about every project and prints a table.
"""
