"""A NodePool of Karpenter that no type of the table meets: the error names the cause."""

from pathlib import Path

import pytest

from bayplan.errors import InputError
from tests.planning.test_pools import CSV, make_karpenter, read

ARCH, CPU, ZONE = (
    "kubernetes.io/arch",
    "karpenter.k8s.aws/instance-cpu",
    "topology.kubernetes.io/zone",
)


@pytest.mark.parametrize(
    ("requirements", "cause"),
    [
        pytest.param(
            [(ARCH, "In", ["arm64"]), (CPU, "Gt", ["2"])],
            f"m5.xlarge (on-demand) meets all but {ARCH} In arm64",
            id="types meet them one by one: the nearest is named",
        ),
        pytest.param(
            [(ZONE, "In", ["us-west-2a"])],
            f"none meets {ZONE} In us-west-2a",
            id="a zone of another region",
        ),
        pytest.param(
            [(ZONE, "In", ["a"]), (ZONE, "NotIn", ["a"])],
            "m5.large (on-demand) meets all but that no zone of it meets each",
            id="a zone that is asked for and refused",
        ),
    ],
)
def test_the_cause_is_named(
    requirements: list[tuple[str, str, list[str]]],
    cause: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("types.csv").write_text(CSV)

    with pytest.raises(InputError) as caught:
        read(make_karpenter(*requirements), table=True)

    assert str(caught.value).endswith(f"got none in types.csv that meets all; {cause}")
