// Lists: pending pods by workload and reason, pod groups with their members, all pods, and changes.

const QUEUE = [
  [ACTIVE, "Active", "Active: a pod that is ready to be scheduled"],
  [BACKOFF, "Backoff", "Backoff: a pod that was refused, and is retried after its backoff"],
  [UNSCHEDULABLE, "Unschedulable", "Unschedulable: a pod that was refused, and waits for an event"],
  [GATED, "Gated", "Gated: a pod that is held by a scheduling gate or plugin"],
];
const EVENT_WORDS = ["was deleted", "is ready to be scheduled", "is retried after its backoff", "waits for an event", "is gated", "has a reserved node"];
const TABS = [["waiting", "Waiting"], ["diff", "Differences"], ["groups", "Groups"], ["pods", "All pods"], ["log", "Changes"]];

class Lists {
  constructor(app) {
    this.app = app;
    this.tab = "waiting";
    this.only = NONE;
    this.key = "";
    /** Keys of the groups of pending pods that are open. */
    this.opened = new Set();
    this.list = new LongList($("list"), 54, (item) => this.makeRow(item), (item) => this.open(item));
    $("tabs").addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const at = this.tabs.findIndex(([name]) => name === this.tab);
      this.show(this.tabs[(at + step + this.tabs.length) % this.tabs.length][0]);
      $(`tab-${this.tab}`).focus();
    });
    this.makeTabs();
    this.makeQueue();
  }

  /** The tabs; that of pod groups only where there are some. */
  makeTabs() {
    const { app } = this;
    this.tabs = TABS.filter(([name]) => (name !== "groups" || app.data.groups.length) && (name !== "diff" || app.isComparing));
    const tabs = this.tabs.map(([name, words]) => h("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "list", onclick: () => this.show(name),
    }, tr(words), h("span", { class: "number" })));
    fill($("tabs"), tabs);
  }

  show(tab) {
    this.choose(tab, tab === "waiting" ? this.only : NONE);
    this.update(true);
    this.app.address.write();
  }

  /** Chooses a tab, and a part of the queue or NONE for all of it, without drawing. */
  choose(tab, only) {
    this.tab = this.tabs.some(([name]) => name === tab) ? tab : "waiting";
    this.only = only;
    this.list.active = 0;
    $("list").scrollTop = 0;
  }

  update(force = false) {
    const { model } = this.app;
    const { filter } = this.app;
    const key = [model.version, model.at, this.tab, this.only, filter.key].join();
    if (key === this.key && !force) return;
    this.key = key;
    $("filters").hidden = this.tab !== "waiting" && this.tab !== "pods";
    $("filter-reason").hidden = this.tab !== "waiting";
    this.drawQueue();
    const items = this.items();
    this.list.show(items);
    this.drawTabs();
    const empty = $("no-rows");
    empty.hidden = items.length > 0;
    if (!items.length) fill(empty, ...this.emptyWords());
    $("list").setAttribute("aria-label", tr(TABS.find(([name]) => name === this.tab)[1]));
  }

  makeQueue() {
    fill($("queue"), QUEUE.map(([state, word, meaning]) => h("button", {
      type: "button", class: `part s${state}`, title: tr(meaning),
      onclick: () => {
        this.only = this.only === state ? NONE : state;
        this.show("waiting");
      },
    }, h("span", { class: "number" }), h("span", { class: "word" }, tr(word)))));
  }

  drawQueue() {
    const { counts } = this.app.model;
    QUEUE.forEach(([state], i) => {
      const part = $("queue").children[i];
      part.setAttribute("aria-pressed", this.only === state);
      part.firstChild.textContent = count(counts[state]);
    });
  }

  drawTabs() {
    const { model, data } = this.app;
    if (this.tabs.some(([name]) => name === "groups") !== data.groups.length > 0) {
      if (this.tab === "groups") this.tab = "waiting";
      this.makeTabs();
    }
    const numbers = { waiting: model.waitingCount, diff: this.app.compare.differences.length, groups: data.groups.length, pods: model.state.length - model.counts[GONE], log: model.at };
    for (const [name] of this.tabs) {
      const tab = $(`tab-${name}`);
      tab.setAttribute("aria-selected", name === this.tab);
      tab.tabIndex = name === this.tab ? 0 : -1;
      tab.querySelector(".number").textContent = count(numbers[name]);
    }
  }

  items() {
    const { model } = this.app;
    if (this.tab === "log") {
      const items = [];
      for (let at = model.at - 1; at >= 0; at -= 1) items.push({ event: at });
      return items;
    }
    if (this.tab === "pods") return this.everything();
    if (this.tab === "groups") return this.grouped();
    if (this.tab === "diff") return this.app.compare.differences;
    const pods = [];
    for (let pod = 0; pod < model.state.length; pod += 1) {
      const state = model.state[pod];
      if (isWaiting(state) && (this.only === NONE || this.only === state) && this.app.filter.matches(pod)) pods.push(pod);
    }
    const rank = [9, 3, 2, 0, 4, 1];
    pods.sort((a, b) => rank[model.state[a]] - rank[model.state[b]] || a - b);
    return groupWaiting(this.app, pods).flatMap((group) => this.waitingItems(group));
  }

  /** A group of pending pods, followed by them when it is open; one pod alone is no group. */
  waitingItems(group) {
    if (group.pods.length === 1) return [{ pod: group.pods[0] }];
    const isOpen = this.opened.has(group.key);
    return [{ waiting: group, isOpen }, ...(isOpen ? group.pods.map((pod) => ({ pod, isInner: true })) : [])];
  }

  everything() {
    const { model } = this.app;
    const key = `${model.version} ${this.app.filter.key}`;
    if (this.allAt !== key) {
      this.allAt = key;
      this.all = [];
      for (let pod = 0; pod < model.state.length; pod += 1) {
        if (model.state[pod] !== GONE && this.app.filter.matches(pod)) this.all.push({ pod });
      }
    }
    return this.all;
  }

  /** Each group, followed by its members. */
  grouped() {
    const { model, data } = this.app;
    return data.groups.flatMap((group, i) => [
      { group: i }, ...group.pods.filter((pod) => model.state[pod] !== GONE).map((pod) => ({ pod })),
    ]);
  }

  emptyWords() {
    const told = (head, rest) => [h("strong", {}, tr(head)), tr(rest)];
    if (this.tab === "log") return told("Nothing has happened yet", "This is the first state of the cluster.");
    if (this.app.filter.isOn) return told("No pod matches", "Clear the filter to see the others.");
    if (this.tab === "diff") return told("No differences", "Every pod has the same node in both runs at this moment.");
    if (this.tab === "pods") return told("No pods", "The cluster is empty at this moment.");
    if (this.only !== NONE) {
      const [, word] = QUEUE.find(([state]) => state === this.only);
      return [h("strong", {}, tr("No pod is in {part}", { part: tr(word).toLowerCase() })), tr("Press the number again to see all pending pods.")];
    }
    return told("No pod is pending", "Every pod that needs a node has one.");
  }

  makeRow(item) {
    if ("group" in item) return this.groupRow(this.app.data.groups[item.group]);
    if ("waiting" in item) return this.waitingRow(item.waiting, item.isOpen);
    if ("names" in item) return this.podRow(item.pod, false, this.app.compare.words(item.names));
    return "event" in item ? this.eventRow(item.event) : this.podRow(item.pod, item.isInner);
  }

  /** Pods of one workload that wait for the same reasons. */
  waitingRow(group, isOpen) {
    const { data } = this.app;
    const name = data.texts[group.workload].split("/").pop();
    const more = group.pods.length - 1;
    const number = name ? tr("{n} of {m} pods", { n: count(group.pods.length), m: count(workloadSize(this.app, group.namespace, group.workload)) }) : plural(group.pods.length, "pod");
    const words = reasonWords(data, group.text) || tr("not tried yet");
    const devices = group.devices.map((item, i) => (i % 2 ? amount(item, group.devices[i - 1]) : resourceName(item)));
    return h("div", { class: "group", title: words, "aria-expanded": isOpen },
      h("div", { class: "line" },
        h("span", { class: "fold", "aria-hidden": "true" }, isOpen ? "▾" : "▸"),
        h("span", { class: "name" }, name || tr("{pod} and {n} more", { pod: data.podName(group.pods[0]), n: count(more) })),
        h("span", { class: "space" }, data.texts[group.namespace]),
        h("span", { class: "state s3" }, number)),
      h("div", { class: "why" }, devices.length ? `${devices.join(" ")} · ${words}` : words));
  }

  /** A group: how many members have a node at this moment; where they are and why they wait, at the end of the run. */
  groupRow(group) {
    const { model } = this.app;
    const placed = group.pods.filter((pod) => model.state[pod] !== GONE && model.node[pod] !== NONE).length;
    const words = group.cause ? tr("waits: {cause}", { cause: group.cause }) : group.place;
    return h("div", { class: "group", title: words },
      h("div", { class: "line" },
        h("span", { class: "name" }, group.name),
        h("span", { class: "space" }, group.namespace),
        h("span", { class: "state" }, tr("{n} of {m}", { n: placed, m: group.pods.length }))),
      h("div", { class: "why" }, words));
  }

  podRow(pod, isInner = false, said = "") {
    const { model, data } = this.app;
    const state = model.state[pod];
    const node = model.node[pod];
    const words = isWaiting(state) ? reasonWords(data, model.text[pod]) || tr("not tried yet") : node !== NONE ? data.nodeName(node) : "";
    return h("div", { class: isInner ? "inner-pod" : null, title: isWaiting(state) ? model.message(pod) : data.podKey(pod) },
      h("div", { class: "line" },
        h("span", { class: "name" }, data.podName(pod)),
        h("span", { class: "space" }, data.namespace(pod)),
        h("span", { class: `state s${state}` }, tr(STATE_WORDS[state]))),
      h("div", { class: "why" }, said || words));
  }

  eventRow(at) {
    const { data } = this.app;
    const { what, which, value, t } = data.events;
    const state = what[at];
    let name, space = "", words, label = "";
    if (state === NODE || state === NODE_GONE) {
      name = data.nodeName(state === NODE ? data.rows.node[which[at]] : which[at]);
      space = tr("node");
      words = state === NODE ? tr("came or changed") : tr("was removed");
    } else {
      name = data.podName(which[at]);
      space = data.namespace(which[at]);
      label = tr(STATE_WORDS[state] || "changed");
      if (state === KIND) words = tr("its labels or requests changed");
      else if (isWaiting(state) || state === GONE) words = reasonWords(data, value[at]) || tr(EVENT_WORDS[state]);
      else words = value[at] === NONE ? "" : tr("on {node}", { node: data.nodeName(value[at]) });
      if (state === GONE && data.preemptedFor.has(which[at])) words = tr("preempted for {pod}", { pod: data.preemptedFor.get(which[at]) });
    }
    return h("div", { title: words },
      h("div", { class: "line" },
        h("span", { class: "name" }, name), h("span", { class: "space" }, space),
        label ? h("span", { class: `state s${state}` }, label) : ""),
      h("div", { class: "why" }, h("span", { class: "when" }, this.app.timeline.words(t[at])), words));
  }

  open(item) {
    const { app } = this;
    if ("group" in item) return;
    if ("waiting" in item) {
      const { key } = item.waiting;
      if (!this.opened.delete(key)) this.opened.add(key);
      this.update(true);
      return;
    }
    if (!("event" in item)) {
      app.openPod(item.pod);
      return;
    }
    const { what, which } = app.data.events;
    const state = what[item.event];
    app.timeline.goTo(item.event + 1);
    if (state === NODE) app.openNode(app.data.rows.node[which[item.event]]);
    else if (state === NODE_GONE) app.openNode(which[item.event]);
    else app.openPod(which[item.event]);
  }
}
