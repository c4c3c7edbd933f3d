// Account: every plugin's result for a pod: the verdict table, and bars for the scores.

const WHEN = {
  then: "as it was when the pod was last tried",
  end: "as it is at the end of the run",
  now: "as it is now",
  like: "for a new pod like this one",
};
const MOST_NAMED = 5;
const FOR_GOOD = "UnschedulableAndUnresolvable";

class Account {
  constructor(app) {
    this.app = app;
  }

  parts(pod, account) {
    if (!account) return [this.absence(pod)];
    if (account.error) return [h("h3", {}, tr("Verdict")), h("p", { class: "said" }, account.error)];
    const parts = [];
    if (account.scores) parts.push(...this.scores(account));
    if (account.remedies && account.remedies.length) parts.push(...this.remedies(account.remedies));
    parts.push(...this.verdict(account));
    const waits = Object.entries(account.waitsFor || {});
    if (waits.length) {
      parts.push(h("h3", {}, tr("Waits for")));
      parts.push(h("dl", { class: "facts" }, waits.flatMap(([plugin, events]) => [h("dt", {}, plugin), h("dd", {}, events.join(", "))])));
    }
    if (account.postFilter) parts.push(h("p", { class: "note" }, `PostFilter: ${account.postFilter}`));
    if (account.hasExtenders) parts.push(h("p", { class: "note" }, tr("Extenders were not called for this.")));
    const skipped = new Set([...account.skipped.filter, ...account.skipped.score]);
    if (skipped.size) parts.push(h("p", { class: "note" }, tr("Without effect on this pod: {plugins}.", { plugins: [...skipped].join(", ") })));
    return parts;
  }

  absence(pod) {
    const { app } = this;
    const state = app.model.state[pod];
    let words = "";
    if (app.live) words = app.live.isAsking ? tr("Asking the scheduler…") : "";
    else if (isOnNode(state) || state === FINISHED) words = tr("Scores of pods that found a node are in the report when the run was made with --explain.");
    return words ? h("p", { class: "note" }, words) : "";
  }

  /** What would let the pod run: a row for the nodes that need the same, as `bayplan explain` shows it. */
  remedies(remedies) {
    const { tiles, details, data } = this.app;
    const lines = remedies.map((remedy) => {
      const mark = () => tiles.mark(new Set(remedy.nodes));
      const nodes = remedy.nodes.slice(0, MOST_NAMED).map((node) => h("div", {}, details.nodeLink(node)));
      const more = remedy.nodes.length - MOST_NAMED;
      return h("tr", { onmouseenter: mark, onmouseleave: () => tiles.mark(null), "aria-label": remedy.nodes.map((node) => data.nodes[node]).join(", ") },
        h("th", { scope: "row" }, nodes, more > 0 ? tr("and {n} more", { n: count(more) }) : ""),
        h("td", {}, h("ul", {}, remedy.lines.map(([text, kind]) => h("li", { class: kind }, text)))));
    });
    return [h("h3", {}, tr("What would let it run")), h("table", { class: "remedies" }, h("tbody", {}, lines))];
  }

  verdict(account) {
    const refused = account.refusals.reduce((sum, refusal) => sum + refusal.count, 0);
    const parts = [h("h3", {}, tr("Verdict")),
      h("p", { class: "note" }, tr("{n} of {m} can take it, {when}.", { n: count(account.feasible), m: plural(account.evaluated, "node"), when: tr(WHEN[account.when]) }))];
    if (account.preFilter) parts.push(h("p", { class: "said" }, `PreFilter: ${account.preFilter}`));
    else if (account.narrowed !== null && account.narrowed !== undefined) {
      parts.push(h("p", { class: "note" }, tr("PreFilter left {n} to look at.", { n: plural(account.narrowed, "node") })));
    }
    if (!refused) return parts;
    const lines = account.refusals.map((refusal) => this.refusalLine(refusal, account.evaluated));
    parts.push(h("table", { class: "verdicts" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "figure" }, tr("Nodes")), h("th", { scope: "col" }, tr("Refused by, and why")))),
      h("tbody", {}, lines)));
    return parts;
  }

  refusalLine(refusal, evaluated) {
    const { tiles, data } = this.app;
    const nodes = expand(refusal.nodes);
    const mark = () => tiles.mark(new Set(nodes));
    const unmark = () => tiles.mark(null);
    const few = nodes.slice(0, 3).map((node) => data.nodeName(node)).join(", ");
    const rest = nodes.length > 3 ? ` ${tr("and {n} more", { n: count(nodes.length - 3) })}` : "";
    return h("tr", { tabindex: "0", onmouseenter: mark, onmouseleave: unmark, onfocus: mark, onblur: unmark, "aria-label": tr("{n} refused by {plugin}: {reason}", { n: plural(refusal.count, "node"), plugin: refusal.plugin, reason: refusal.reason }) },
      h("td", { class: "figure" }, count(refusal.count)),
      h("td", {},
        h("div", { class: "line" }, h("strong", {}, refusal.plugin || tr("not evaluated")),
          refusal.code === FOR_GOOD ? h("span", { class: "tag", title: tr("Preemption on these nodes cannot help") }, tr("no preemption")) : ""),
        h("div", {}, refusal.reason),
        meter(refusal.count / Math.max(1, evaluated), "refused"),
        h("div", { class: "which" }, few + rest)));
  }

  scores(account) {
    const { scores } = account;
    const { app } = this;
    const shown = scores.plugins.filter((plugin) => !plugin.isLevel && plugin.points.some((points) => points > 0));
    const level = scores.plugins.filter((plugin) => plugin.isLevel && plugin.points[0] > 0);
    const sums = scores.nodes.map((_, n) => shown.reduce((sum, plugin) => sum + plugin.points[n], 0));
    const most = Math.max(1, ...sums);
    const legend = h("ul", { class: "keys" }, shown.map((plugin, i) => h("li", {}, h("span", { class: `key c${i % 8}` }), `${plugin.plugin} ×${plugin.weight}`)));
    const lines = scores.nodes.map((node, n) => {
      const isWinner = node === scores.winner && node !== NONE;
      const bar = h("span", { class: "stack", "aria-hidden": "true" });
      shown.forEach((plugin, i) => {
        const part = h("span", { class: `c${i % 8}`, title: `${plugin.plugin}: ${plugin.points[n]} (raw ${plugin.raw[n]})` });
        part.style.width = `${(plugin.points[n] / most) * 100}%`;
        bar.append(part);
      });
      const spoken = shown.map((plugin) => `${plugin.plugin} ${plugin.points[n]}`).join(", ");
      return h("tr", { class: isWinner ? "winner" : "", "aria-label": `${app.data.nodes[node]}: ${scores.totals[n]}; ${spoken}` },
        h("th", { scope: "row" }, app.details.nodeLink(node), isWinner ? h("span", { class: "tag good" }, tr("chosen")) : "",
          scores.alike[n] ? h("div", { class: "which" }, tr("and {n} equal", { n: count(scores.alike[n]) })) : ""),
        h("td", { class: "bar" }, bar),
        h("td", { class: "figure" }, count(scores.totals[n])));
    });
    const parts = [h("h3", {}, tr("Scores")), account.when === "like" ? h("p", { class: "note" }, tr("Scores of the nodes {when}.", { when: tr(WHEN.like) })) : "", legend, h("table", { class: "scores" }, h("tbody", {}, lines))];
    const told = scores.alike.reduce((sum, more) => sum + more + 1, 0);
    if (scores.of > told) parts.push(h("p", { class: "note" }, tr("The best {n} of {m} that can take it.", { n: count(told), m: plural(scores.of, "node") })));
    if (level.length) parts.push(h("p", { class: "note" }, tr("The same for all, and not in the bars: {plugins}.", { plugins: level.map((plugin) => `${plugin.plugin} ${plugin.points[0]}`).join(", ") })));
    return parts;
  }
}

/** The numbers of ranges given as first and last. */
function expand(ranges) {
  const numbers = [];
  for (let i = 0; i < ranges.length; i += 2) for (let n = ranges[i]; n <= ranges[i + 1]; n += 1) numbers.push(n);
  return numbers;
}
