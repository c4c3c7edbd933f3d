// Lists: pending pods with reasons, pod groups with their members, all pods, and changes.

const QUEUE = [
  [ACTIVE, "Active", "is ready to be scheduled"],
  [BACKOFF, "Backoff", "was refused, and is retried after its backoff"],
  [UNSCHEDULABLE, "Unschedulable", "was refused, and waits for an event"],
  [GATED, "Gated", "is held by a scheduling gate or plugin"],
];
const EVENT_WORDS = ["was deleted", "is ready to be scheduled", "is retried after its backoff", "waits for an event", "is gated", "has a reserved node"];
const TABS = [["waiting", "Waiting"], ["groups", "Groups"], ["pods", "All pods"], ["log", "Changes"]];

class Lists {
  constructor(app) {
    this.app = app;
    this.tab = "waiting";
    this.only = NONE;
    this.key = "";
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
    this.tabs = TABS.filter(([name]) => name !== "groups" || this.app.data.groups.length);
    const tabs = this.tabs.map(([name, words]) => h("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "list", onclick: () => this.show(name),
    }, words, h("span", { class: "number" })));
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
    const key = [model.version, model.at, this.tab, this.only].join();
    if (key === this.key && !force) return;
    this.key = key;
    this.drawQueue();
    const items = this.items();
    this.list.show(items);
    this.drawTabs();
    const empty = $("no-rows");
    empty.hidden = items.length > 0;
    if (!items.length) fill(empty, ...this.emptyWords());
    $("list").setAttribute("aria-label", TABS.find(([name]) => name === this.tab)[1]);
  }

  makeQueue() {
    fill($("queue"), QUEUE.map(([state, word, meaning]) => h("button", {
      type: "button", class: `part s${state}`, title: `${word}: a pod that ${meaning}`,
      onclick: () => {
        this.only = this.only === state ? NONE : state;
        this.show("waiting");
      },
    }, h("span", { class: "number" }), h("span", { class: "word" }, word))));
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
    const numbers = { waiting: model.waitingCount, groups: data.groups.length, pods: model.state.length - model.counts[GONE], log: model.at };
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
    const items = [];
    for (let pod = 0; pod < model.state.length; pod += 1) {
      const state = model.state[pod];
      if (isWaiting(state) && (this.only === NONE || this.only === state)) items.push({ pod });
    }
    const rank = [9, 3, 2, 0, 4, 1];
    return items.sort((a, b) => rank[model.state[a.pod]] - rank[model.state[b.pod]] || a.pod - b.pod);
  }

  everything() {
    const { model } = this.app;
    if (this.allAt !== model.version) {
      this.allAt = model.version;
      this.all = [];
      for (let pod = 0; pod < model.state.length; pod += 1) if (model.state[pod] !== GONE) this.all.push({ pod });
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
    if (this.tab === "log") return [h("strong", {}, "Nothing has happened yet"), "This is the first state of the cluster."];
    if (this.tab === "pods") return [h("strong", {}, "No pods"), "The cluster is empty at this moment."];
    if (this.only !== NONE) {
      const [, word] = QUEUE.find(([state]) => state === this.only);
      return [h("strong", {}, `No pod is in ${word.toLowerCase()}`), "Press the number again to see all pending pods."];
    }
    return [h("strong", {}, "No pod is pending"), "Every pod that needs a node has one."];
  }

  makeRow(item) {
    if ("group" in item) return this.groupRow(this.app.data.groups[item.group]);
    return "event" in item ? this.eventRow(item.event) : this.podRow(item.pod);
  }

  /** A group: how many members have a node at this moment; where they are and why they wait, at the end of the run. */
  groupRow(group) {
    const { model } = this.app;
    const placed = group.pods.filter((pod) => model.state[pod] !== GONE && model.node[pod] !== NONE).length;
    const words = group.cause ? `waits: ${group.cause}` : group.place;
    return h("div", { class: "group", title: words },
      h("div", { class: "line" },
        h("span", { class: "name" }, group.name),
        h("span", { class: "space" }, group.namespace),
        h("span", { class: "state" }, `${placed} of ${group.pods.length}`)),
      h("div", { class: "why" }, words));
  }

  podRow(pod) {
    const { model, data } = this.app;
    const state = model.state[pod];
    const node = model.node[pod];
    const words = isWaiting(state) ? gist(model.message(pod)) || "not tried yet" : node !== NONE ? data.nodes[node] : "";
    return h("div", { title: isWaiting(state) ? model.message(pod) : data.podKey(pod) },
      h("div", { class: "line" },
        h("span", { class: "name" }, data.podName(pod)),
        h("span", { class: "space" }, data.namespace(pod)),
        h("span", { class: `state s${state}` }, STATE_WORDS[state])),
      h("div", { class: "why" }, words));
  }

  eventRow(at) {
    const { data } = this.app;
    const { what, which, value, t } = data.events;
    const state = what[at];
    let name, space = "", words, label = "";
    if (state === NODE || state === NODE_GONE) {
      name = data.nodes[state === NODE ? data.rows.node[which[at]] : which[at]];
      space = "node";
      words = state === NODE ? "came or changed" : "was removed";
    } else {
      name = data.podName(which[at]);
      space = data.namespace(which[at]);
      label = STATE_WORDS[state] || "changed";
      if (state === KIND) words = "its labels or requests changed";
      else if (isWaiting(state) || state === GONE) words = gist(data.texts[value[at]]) || EVENT_WORDS[state];
      else words = value[at] === NONE ? "" : `on ${data.nodes[value[at]]}`;
      if (state === GONE && data.preemptedFor.has(which[at])) words = `preempted for ${data.preemptedFor.get(which[at])}`;
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
    if (!("event" in item)) {
      app.openPod(item.pod);
      return;
    }
    const { what, which } = app.data.events;
    const state = what[item.event];
    if (state === NODE) app.openNode(app.data.rows.node[which[item.event]]);
    else if (state === NODE_GONE) app.openNode(which[item.event]);
    else app.openPod(which[item.event]);
  }
}
