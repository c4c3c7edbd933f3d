// Waiting: pending pods grouped by their workload and by what keeps them from having a node, as `bayplan simulate` does.

const NO_DEVICES = [];
const REASON_PREFIX = /^node\(s\) (had |were )?/;

/** Groups of `pods`, each with namespace, workload, pods, and the message of the last of them; pods without an owner
 *  also differ by the extended resources that they request. */
function groupWaiting(app, pods) {
  const { model, data } = app;
  const groups = new Map();
  for (const pod of pods) {
    const workload = data.kinds[model.kind[pod]][6];
    const devices = data.texts[workload] === "" ? data.devices(model.kind[pod]) : NO_DEVICES;
    const key = `${data.pods.namespace[pod]} ${workload} ${data.whyKey(model.text[pod])} ${devices}`;
    if (!groups.has(key)) groups.set(key, { key, workload, devices, namespace: data.pods.namespace[pod], pods: [] });
    groups.get(key).pods.push(pod);
    groups.get(key).text = model.text[pod];
  }
  return [...groups.values()];
}

/** The number of pods that a workload in a namespace has at this moment. */
function workloadSize({ model, data }, namespace, workload) {
  let number = 0;
  for (let pod = 0; pod < model.state.length; pod += 1) {
    const state = model.state[pod];
    if (state !== GONE && state !== FINISHED && data.pods.namespace[pod] === namespace && data.kinds[model.kind[pod]][6] === workload) number += 1;
  }
  return number;
}

/** `Insufficient cpu on 40 nodes, untolerated taint(s) on 6`: the reasons of a message, or the message. */
function reasonWords(data, text) {
  const refusals = data.refusals.get(text);
  if (!refusals) return data.texts[text];
  const parts = [];
  for (let i = 0; i < refusals.length; i += 2) {
    const reason = data.texts[refusals[i]].replace(REASON_PREFIX, "");
    parts.push(tr("{reason} on {n}", { reason, n: parts.length ? count(refusals[i + 1]) : plural(refusals[i + 1], "node") }));
  }
  return parts.join(", ");
}
