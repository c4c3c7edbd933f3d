// Summary: the figures at the top: numbers of nodes and pods, and the requested share of every resource.

function drawSummary(app) {
  const { model, data } = app;
  const live = model.liveNodes();
  const figures = [[tr("Nodes"), count(live.length), ""], [tr("Pods on nodes"), count(model.onNodes), ""], [tr("Waiting"), count(model.waitingCount), "", model.waitingCount ? "warn" : ""]];
  if (data.preemptedFor.size) figures.push([tr("Preempted"), count(model.preempted), ""]);
  data.resources.forEach((name, resource) => {
    const [used, all] = model.totals(resource);
    if (!all || name === PODS) return;
    const amounts = tr("{n} of {m}", { n: amount(used, name), m: amount(all, name) });
    figures.push([tr("{resource} requested", { resource: resourceName(name) }), percent(used / all), `${name}: ${amounts}`, used > all ? "warn" : ""]);
  });
  fill($("figures"), figures.map(([name, value, title, mood]) => h("div", { class: mood || null, title: title || null }, h("dt", {}, name), h("dd", {}, value))));
}
