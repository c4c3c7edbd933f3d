"""Security rules: faults of the security contexts of pods and containers.

Mirrors ValidateSecurityContext and validatePodSpecSecurityContext of pkg/apis/core/validation/validation.go. Privileged
containers are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .field_causes import Part, Tree

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_IDS, _ID_RULE = (0, 2**31 - 1), "must be between 0 and 2147483647, inclusive"
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL_FORM = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_SYSCTL = re.compile(_SYSCTL_FORM)
_NET, _IPC = ("net.",), ("kernel.shm", "kernel.msg", "fs.mqueue.")
_WINDOWS = "cannot be set for a windows pod"
_NOT_ON_WINDOWS = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities"),
    *("readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount"),
    *("runAsUser", "runAsGroup"),
)
_NO_POD_ON_WINDOWS = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy"),
    *("sysctls", "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy"),
    "seLinuxChangePolicy",
)
_NO_SPEC_ON_WINDOWS = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")


def local_path_faults(text: str) -> tuple[str, ...]:
    """The faults of a path below a folder."""
    absolute = ("must be a relative path",) if text.startswith("/") else ()
    return (*absolute, *back_step_faults(text))


def token_time_faults(seconds: int) -> tuple[str, ...]:
    """The faults of the seconds for which a token of a service account is valid."""
    if 600 <= seconds <= 2**32:
        return ()
    limit = "less than 10 minutes" if seconds < 600 else "larger than 2^32 seconds"
    return (f"may not specify a duration {limit}",)


def back_step_faults(text: str) -> tuple[str, ...]:
    """The fault of a path that steps back."""
    return ("must not contain '..'",) if ".." in text.split("/") else ()


def check_container_security(container: Part, is_host_users: bool) -> None:
    """Check the security context of a container."""
    context = container.below("securityContext")
    for name in ("runAsUser", "runAsGroup"):
        context.limit(name, *_IDS, _ID_RULE)
    context.choice("procMount", "Default", "Unmasked")
    if is_host_users and context.get("procMount") == "Unmasked":
        context.invalid("procMount", "`hostUsers` must be false to use `Unmasked`")
    _check_seccomp(context)
    if context.get("allowPrivilegeEscalation") is False:
        both = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            context.invalid("", f"{both} `privileged` to true", _go_context(context.tree))
        if "CAP_SYS_ADMIN" in (context.below("capabilities").get("add") or ()):
            problem = f"{both} `capabilities.Add` CAP_SYS_ADMIN"
            context.invalid("", problem, _go_context(context.tree))
    _check_app_armor(context)


def _go_context(context: Tree) -> dict[str, Any]:
    """A security context as kube-apiserver prints it in a message: with all fields, in the names of its own type."""
    capabilities = context.get("capabilities")
    names = (
        *("Capabilities", "Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser"),
        *("RunAsGroup", "RunAsNonRoot", "ReadOnlyRootFilesystem", "AllowPrivilegeEscalation"),
        *("ProcMount", "SeccompProfile", "AppArmorProfile"),
    )
    found = {name: context.get(name[0].lower() + name[1:]) for name in names}
    found["SELinuxOptions"] = context.get("seLinuxOptions")
    if capabilities is not None:
        found["Capabilities"] = {
            "Add": capabilities.get("add"),
            "Drop": capabilities.get("drop"),
        }
    return found


def check_pod_security(spec: Part) -> None:
    """Check the security context of a pod, and the host's namespaces that it shares."""
    context = spec.below("securityContext")
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        context.limit(name, *_IDS, _ID_RULE)
    for name, group in context.items("supplementalGroups"):
        if not _IDS[0] <= group <= _IDS[1]:
            context.invalid(name, _ID_RULE, group)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        problem = "ShareProcessNamespace and HostPID cannot both be enabled"
        context.invalid("shareProcessNamespace", problem, True)
    _check_sysctls(context, spec)
    context.choice("fsGroupChangePolicy", "Always", "OnRootMismatch")
    _check_seccomp(context)
    _check_app_armor(context)
    context.choice("supplementalGroupsPolicy", "Merge", "Strict")
    context.choice("seLinuxChangePolicy", "MountOption", "Recursive")


def check_host_users(spec: Part) -> None:
    """Refuse what a pod with users of its own may not have."""
    if spec.get("hostUsers") is not False:
        return
    problem = "when `hostUsers` is false"
    for name, shown in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(name):
            spec.forbidden(shown, problem)
    for container in spec.each(*CONTAINERS):
        if container.get("volumeDevices"):
            container.forbidden("volumeDevices", problem)


def _check_seccomp(context: Part) -> None:
    if not context.has("seccompProfile"):
        return
    profile = context.below("seccompProfile")
    type_, file = profile.get("type") or "", profile.get("localhostProfile")
    if profile.needs("type", problem="type is required when seccompProfile is set"):
        profile.choice("type", *_PROFILES)
    if type_ == "Localhost":
        if file is None:
            profile.required("localhostProfile", "must be set when seccomp type is Localhost")
        else:
            profile.check("localhostProfile", local_path_faults)
    elif file is not None:
        problem = "can only be set when seccomp type is Localhost"
        shown = {"Type": type_, "LocalhostProfile": file}
        profile.invalid("localhostProfile", problem, shown)


def _check_app_armor(context: Part) -> None:
    if not context.has("appArmorProfile"):
        return
    profile = context.below("appArmorProfile")
    type_, file = profile.get("type") or "", profile.get("localhostProfile")
    if type_ == "Localhost":
        if file is not None and file.strip() != file:
            profile.invalid("localhostProfile", "must not be padded with whitespace")
        elif not file:
            profile.required("localhostProfile", "must be set when AppArmor type is Localhost")
    elif type_ in _PROFILES:
        if file is not None:
            problem = "can only be set when AppArmor type is Localhost"
            profile.invalid("localhostProfile", problem)
    elif profile.needs("type", problem="type is required when appArmorProfile is set"):
        profile.unsupported("type", _PROFILES)


def _check_sysctls(context: Part, spec: Part) -> None:
    names: set[str] = set()
    for sysctl in context.each("sysctls"):
        name = str(sysctl.get("name") or "")
        if not name:
            sysctl.required("name")
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            problem = f"must have at most 253 characters and match regex {_SYSCTL_FORM}"
            sysctl.invalid("name", problem)
        elif name in names:
            sysctl.duplicate("name", name)
        dotted = name.replace("/", ".")
        for field, starts in (("hostNetwork", _NET), ("hostIPC", _IPC)):
            if spec.get(field) and (
                dotted.startswith(starts) or (dotted == "kernel.sem" and field == "hostIPC")
            ):
                sysctl.invalid("name", f"may not be specified when '{field}' is true", name)
        names.add(name)


def check_system(spec: Part) -> None:
    """Check a pod's operating system, and refuse the fields that it excludes."""
    if not spec.has("os"):
        return
    name = spec.below("os").get("name") or ""
    if not name:
        spec.required("os.name")
    elif name not in ("linux", "windows"):
        spec.unsupported("os", ("linux", "windows"), name)
    elif name == "linux":
        only = ("windowsOptions",)
        _forbid(spec, only, only, "windows options cannot be set for a linux pod")
    else:
        _forbid(spec, _NO_POD_ON_WINDOWS, _NOT_ON_WINDOWS, _WINDOWS)
        for field in _NO_SPEC_ON_WINDOWS:
            if spec.get(field) or (
                field in ("hostUsers", "shareProcessNamespace") and spec.get(field) is False
            ):
                spec.forbidden(field, _WINDOWS)


def _forbid(spec: Part, of_pod: Sequence[str], of_container: Sequence[str], problem: str) -> None:
    """Refuse fields of security contexts."""
    context = spec.below("securityContext")
    for field in of_pod:
        if context.get(field) not in (None, []):
            context.forbidden(field, problem)
    for container in spec.each(*CONTAINERS):
        context = container.below("securityContext")
        for field in context.set_of(of_container):
            context.forbidden(field, problem)
