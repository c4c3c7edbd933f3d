"""Extender order: their order, and the resources they manage instead of the scheduler.

Mirrors buildExtenders of pkg/scheduler/scheduler.go and NewHTTPExtender of
pkg/scheduler/extender.go.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import structs

from ..errors import ConfigError
from .plugin_args import NodeResourcesFitArgs
from .types import Extender, Profile, SchedulerConfiguration

FIT = "NodeResourcesFit"
_PEM = re.compile(rb"-----BEGIN ([^\n-]+)-----\r?\n.+?-----END \1-----", re.DOTALL)


def extender_order(extenders: Iterable[Extender]) -> tuple[Extender, ...]:
    """Return the extenders in call order: ignorable ones come last."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def with_ignored_resources(config: SchedulerConfiguration) -> SchedulerConfiguration:
    """Return `config` with NodeResourcesFit ignoring the resources that only extenders manage.

    These resources replace those the file lists. Raises ConfigError when an extender cannot be
    built, or when there is no NodeResourcesFit.
    """
    for extender in config.extenders:
        _check_certificates(extender)
    ignored = tuple(
        resource.name
        for extender in config.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return config
    profiles = tuple(_with_ignored(profile, ignored) for profile in config.profiles)
    return structs.replace(config, profiles=profiles)


def _with_ignored(profile: Profile, ignored: tuple[str, ...]) -> Profile:
    args = profile.plugin_config.get(FIT)
    if not isinstance(args, NodeResourcesFitArgs):
        raise ConfigError(
            "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
        )
    changed = structs.replace(args, ignored_resources=ignored)
    return structs.replace(profile, plugin_config={**profile.plugin_config, FIT: changed})


def _check_certificates(extender: Extender) -> None:
    """Raise unless the extender's certificate settings can be used."""
    tls = extender.tls_config
    if tls is None:
        return
    if tls.insecure and (tls.ca_data or tls.ca_file):
        fault = "specifying a root certificates file with the insecure flag is not allowed"
        raise ConfigError(f"couldn't build extenders: {fault}")
    authorities = tls.ca_data or _content(tls.ca_file)
    certificate = tls.cert_data or _content(tls.cert_file)
    key = tls.key_data or _content(tls.key_file)
    if authorities and not _PEM.search(authorities):
        fault = "unable to load root certificates: unable to parse bytes as PEM block"
        raise ConfigError(f"couldn't build extenders: {fault}")
    if certificate and key and not _PEM.search(certificate):
        fault = "tls: failed to find any PEM data in certificate input"
        raise ConfigError(f"couldn't build extenders: {fault}")


def _content(path: str) -> bytes:
    """Return the content of a file, empty if no file is named."""
    try:
        return Path(path).read_bytes() if path else b""
    except OSError as error:
        fault = (error.strerror or "").lower()
        raise ConfigError(f"couldn't build extenders: open {path}: {fault}") from error
