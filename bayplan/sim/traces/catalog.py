"""Catalog: the published traces that can be imported, in the order in which they are listed."""

from . import (
    alibaba_2018,
    alibaba_2020,
    alibaba_2025,
    alibaba_2026,
    azure_packing,
    azure_vms,
    google_2019,
    openb,
)

TRACE_FORMATS = (
    openb.FORMAT,
    alibaba_2018.FORMAT,
    alibaba_2020.FORMAT,
    alibaba_2025.FORMAT,
    alibaba_2026.FORMAT,
    azure_packing.FORMAT,
    azure_vms.FORMAT,
    google_2019.FORMAT,
)
