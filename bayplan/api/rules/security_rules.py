"""Security rules: faults of the security contexts of pods and containers.

Mirrors ValidateSecurityContext and validatePodSpecSecurityContext of pkg/apis/core/validation/validation.go. Privileged
containers are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)

Tree = Mapping[str, Any]

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_ID_RULE = "must be between 0 and 2147483647, inclusive"
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


def local_path_causes(text: str, path: str) -> Iterator[Cause]:
    """Yield the faults of a path below a folder."""
    if text.startswith("/"):
        yield invalid_value(path, text, "must be a relative path")
    yield from back_step_causes(text, path)


def back_step_causes(text: str, path: str) -> Iterator[Cause]:
    """Yield the fault of a path that steps back."""
    if ".." in text.split("/"):
        yield invalid_value(path, text, "must not contain '..'")


def choice_causes(tree: Tree, field: str, words: Sequence[str], path: str) -> Iterator[Cause]:
    """Yield the fault of a field that has another word than these."""
    word = tree.get(field)
    if word is not None and word not in words:
        yield unsupported_value(f"{path}.{field}", str(word), words)


def container_security_causes(container: Tree, path: str, is_host_users: bool) -> Iterator[Cause]:
    """Yield the faults of the security context of a container."""
    context, path = container.get("securityContext"), f"{path}.securityContext"
    if context is None:
        return
    yield from _id_causes(context, ("runAsUser", "runAsGroup"), path)
    yield from choice_causes(context, "procMount", ("Default", "Unmasked"), path)
    if is_host_users and context.get("procMount") == "Unmasked":
        problem = "`hostUsers` must be false to use `Unmasked`"
        yield invalid_value(f"{path}.procMount", "Unmasked", problem)
    yield from _seccomp_causes(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        both = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            yield invalid_value(path, _go_context(context), f"{both} `privileged` to true")
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            problem = f"{both} `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid_value(path, _go_context(context), problem)
    yield from _app_armor_causes(context.get("appArmorProfile"), f"{path}.appArmorProfile")


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


def pod_security_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the security context of a pod, and of the host's namespaces that it shares."""
    context, where = spec.get("securityContext") or {}, f"{path}.securityContext"
    yield from _id_causes(context, ("fsGroup", "runAsUser", "runAsGroup"), where)
    for i, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group < 2**31:
            yield invalid_value(f"{where}.supplementalGroups[{i}]", group, _ID_RULE)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        problem = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid_value(f"{where}.shareProcessNamespace", True, problem)
    yield from _sysctl_causes(context, spec, f"{where}.sysctls")
    yield from choice_causes(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), where)
    yield from _seccomp_causes(context.get("seccompProfile"), f"{where}.seccompProfile")
    yield from _app_armor_causes(context.get("appArmorProfile"), f"{where}.appArmorProfile")
    yield from choice_causes(context, "supplementalGroupsPolicy", ("Merge", "Strict"), where)
    yield from choice_causes(context, "seLinuxChangePolicy", ("MountOption", "Recursive"), where)


def host_user_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield what a pod with users of its own may not have."""
    if spec.get("hostUsers") is not False:
        return
    problem = "when `hostUsers` is false"
    if spec.get("hostNetwork"):
        yield forbidden_field(f"{path}.hostNetwork", problem)
    for name in ("hostPID", "hostIPC"):
        if spec.get(name):
            yield forbidden_field(f"{path}.{name[0].upper()}{name[1:]}", problem)
    for part in CONTAINERS:
        for i, container in enumerate(spec.get(part) or ()):
            if container.get("volumeDevices"):
                yield forbidden_field(f"{path}.{part}[{i}].volumeDevices", problem)


def _id_causes(context: Tree, fields: Sequence[str], path: str) -> Iterator[Cause]:
    for field in fields:
        number = context.get(field)
        if number is not None and not 0 <= number < 2**31:
            yield invalid_value(f"{path}.{field}", number, _ID_RULE)


def _seccomp_causes(profile: Tree | None, path: str) -> Iterator[Cause]:
    if profile is None:
        return
    type_, file = profile.get("type") or "", profile.get("localhostProfile")
    if not type_:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    elif type_ not in _PROFILES:
        yield unsupported_value(f"{path}.type", type_, _PROFILES)
    if type_ == "Localhost":
        if file is None:
            problem = "must be set when seccomp type is Localhost"
            yield required(f"{path}.localhostProfile", problem)
        else:
            yield from local_path_causes(file, f"{path}.localhostProfile")
    elif file is not None:
        problem = "can only be set when seccomp type is Localhost"
        shown = {"Type": type_, "LocalhostProfile": file}
        yield invalid_value(f"{path}.localhostProfile", shown, problem)


def _app_armor_causes(profile: Tree | None, path: str) -> Iterator[Cause]:
    if profile is None:
        return
    type_, file = profile.get("type") or "", profile.get("localhostProfile")
    where = f"{path}.localhostProfile"
    if type_ == "Localhost":
        if file is not None and file.strip() != file:
            yield invalid_value(where, file, "must not be padded with whitespace")
        elif not file:
            yield required(where, "must be set when AppArmor type is Localhost")
    elif type_ in _PROFILES:
        if file is not None:
            yield invalid_value(where, file, "can only be set when AppArmor type is Localhost")
    elif not type_:
        yield required(f"{path}.type", "type is required when appArmorProfile is set")
    else:
        yield unsupported_value(f"{path}.type", type_, _PROFILES)


def _sysctl_causes(context: Tree, spec: Tree, path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for i, sysctl in enumerate(context.get("sysctls") or ()):
        name, where = str(sysctl.get("name") or ""), f"{path}[{i}].name"
        if not name:
            yield required(where)
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            problem = f"must have at most 253 characters and match regex {_SYSCTL_FORM}"
            yield invalid_value(where, name, problem)
        elif name in names:
            yield duplicate(where, name)
        dotted = name.replace("/", ".")
        for field, starts in (("hostNetwork", _NET), ("hostIPC", _IPC)):
            if spec.get(field) and (
                dotted.startswith(starts) or (dotted == "kernel.sem" and field == "hostIPC")
            ):
                yield invalid_value(where, name, f"may not be specified when '{field}' is true")
        names.add(name)


def system_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of a pod's operating system, and the fields that it excludes."""
    if spec.get("os") is None:
        return
    name = spec["os"].get("name") or ""
    if not name:
        yield required(f"{path}.os.name")
    elif name not in ("linux", "windows"):
        yield unsupported_value(f"{path}.os", name, ("linux", "windows"))
    elif name == "linux":
        yield from _forbidden(
            spec,
            ("windowsOptions",),
            ("windowsOptions",),
            path,
            "windows options cannot be set for a linux pod",
        )
    else:
        yield from _forbidden(spec, _NO_POD_ON_WINDOWS, _NOT_ON_WINDOWS, path, _WINDOWS)
        for field in _NO_SPEC_ON_WINDOWS:
            if spec.get(field) not in (None, False) or (
                field in ("hostUsers", "shareProcessNamespace") and spec.get(field) is False
            ):
                yield forbidden_field(f"{path}.{field}", _WINDOWS)


def _forbidden(
    spec: Tree, of_pod: Sequence[str], of_container: Sequence[str], path: str, problem: str
) -> Iterator[Cause]:
    """Yield the fields of security contexts that are set and must not be."""
    for field in of_pod:
        if (spec.get("securityContext") or {}).get(field) not in (None, []):
            yield forbidden_field(f"{path}.securityContext.{field}", problem)
    for part in CONTAINERS:
        for i, container in enumerate(spec.get(part) or ()):
            for field in of_container:
                if (container.get("securityContext") or {}).get(field) is not None:
                    yield forbidden_field(f"{path}.{part}[{i}].securityContext.{field}", problem)
