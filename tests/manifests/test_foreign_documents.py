"""Foreign documents: kustomizations, Helm and empty input are refused with the command that helps."""

from pathlib import Path

import pytest

from bayplan.errors import InputError
from bayplan.sim import read_manifests

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("k.yaml", "kind: Kustomization\nresources: [a]\n", "kubectl kustomize"),
        (
            "k.yaml",
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Component\n",
            "kubectl kustomize",
        ),
        ("kustomization.yaml", "resources: [a.yaml]\n", "kubectl kustomize"),
        ("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n", "helm template"),
        ("values.yaml", "replicaCount: 1\n", "values of a Helm chart"),
        ("a.yaml", "{{- if .Values.a }}\n" + POD + "{{- end }}\n", "helm template"),
        ("a.yaml", POD.replace("image: i", 'image: "{{ .Values.i }}"'), "helm template"),
        (
            "a.yaml",
            "{{$n := .Name}}\n" + POD,
            "got a template that is not rendered ({{$n := .Name}})",
        ),
        ("a.yaml", POD.replace("name: a", "name: {{ .Release.Name }}"), "helm template"),
        (
            "a.yaml",
            "a: 1\nb: 2\n",
            "expected apiVersion and kind; got a document with the fields a, b",
        ),
        (
            "a.yaml",
            "Name:         web-0\nNamespace:    default\nEvents:\n  Type  Reason\n",
            "expected manifests; got the output of kubectl describe: use kubectl get ... -o yaml",
        ),
        (
            "a.yaml",
            "$ kubectl describe pod web-0\nName:         web-0\nLabels:       a=b\n  c=d\nStatus: Pending\n",
            "expected manifests; got the output of kubectl describe",
        ),
        (
            "a.yaml",
            "NAMESPACE   NAME    READY   STATUS\ndefault     web-0   0/1     Pending\n",
            "expected manifests; got a table: use kubectl get ... -o yaml",
        ),
        (
            "a.json",
            '{"kind": "Policy", "apiVersion": "v1"}',
            "document 1: policy: apiVersion: expected a kind of v1; got Policy, which --config takes",
        ),
        ("a.yaml", "NAME    STATUS\nnode-1  Ready\n", "expected manifests; got a table"),
        ("a.yaml", "", "expected objects; got no document"),
        ("a.yaml", "# nothing\n---\n# more\n", "expected objects; got no document"),
        ("a.yaml", "apiVersion: v1\nkind: List\nitems: []\n", "expected objects; got none"),
        (
            "a.yaml",
            POD.replace("v1\nkind: Pod", "extensions/v1beta1\nkind: ReplicaSet"),
            "document 1: replicaset a: apiVersion: expected apps/v1; got extensions/v1beta1",
        ),
    ],
)
def test_refused_with_a_sentence(tmp_path: Path, name: str, text: str, expected: str) -> None:
    file = tmp_path / name
    file.write_text(text)

    with pytest.raises(InputError) as error:
        read_manifests([file])

    assert str(error.value).startswith(str(file))
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("name", "command"),
    [("kustomization.yaml", "kubectl kustomize"), ("Chart.yaml", "helm template")],
)
def test_folders_to_render_are_refused(tmp_path: Path, name: str, command: str) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / name).write_text("a: 1\n")

    with pytest.raises(InputError, match=command):
        read_manifests([tmp_path])


def test_one_empty_argument_among_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "empty.yaml").write_text("")

    with pytest.raises(InputError, match=r"empty\.yaml: expected objects; got no document"):
        read_manifests([tmp_path / "pod.yaml", tmp_path / "empty.yaml"])
    assert len(read_manifests([tmp_path]).objects) == 1  # an empty file of a folder is common


def test_actions_of_other_templates_are_no_helm(tmp_path: Path) -> None:
    annotated = POD.replace("{name: a}", '{name: a, annotations: {t: "{{ with secret \\"x\\" }}"}}')
    (tmp_path / "a.yaml").write_text(annotated)

    assert len(read_manifests([tmp_path / "a.yaml"]).objects) == 1
