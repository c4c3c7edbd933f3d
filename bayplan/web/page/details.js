// Details: one pod or one node, in place of the lists. Escape goes back.

const MEASURED = ["cpu", "memory"];

class Details {
  constructor(app) {
    this.app = app;
    this.pod = NONE;
    this.node = NONE;
    this.key = "";
    this.back = null;
    /** A form or an answer instead of a pod or a node: its parts; null: none. */
    this.panel = null;
    /** Accounts from the server, by pod number. */
    this.asked = new Map();
    this.listen();
  }

  /** Nothing is redrawn while a button is pressed: there would be no click. */
  listen() {
    $("details").addEventListener("pointerdown", () => { this.isPressed = true; });
    for (const name of ["pointerup", "pointercancel"]) {
      window.addEventListener(name, () => {
        this.isPressed = false;
        if (this.isStale) setTimeout(() => this.update(true)); // after the click
      });
    }
  }

  get isOpen() {
    return this.pod !== NONE || this.node !== NONE || this.panel !== null;
  }

  openPod(pod) {
    this.begin();
    this.pod = pod;
    this.node = NONE;
    this.asked.delete(pod);
    this.update(true);
    this.askServer(pod);
    $("details-title").focus();
    this.app.address.write();
  }

  openNode(node) {
    this.begin();
    this.node = node;
    this.pod = NONE;
    this.update(true);
    $("details-title").focus();
    this.app.address.write();
  }

  /** Shows a form or an answer; returns it, to be compared with `panel` later. */
  openPanel(what, name, parts) {
    this.begin();
    this.pod = this.node = NONE;
    this.panel = [this.heading(what, name, ""), ...parts];
    fill($("details"), this.panel);
    $("details-title").focus();
    this.app.tiles.select(NONE);
    return this.panel;
  }

  begin() {
    if (!this.isOpen) this.back = document.activeElement;
    this.panel = null;
    this.app.edit.asked = "";
    this.app.tiles.setArrows([]);
    $("overview").hidden = true;
    $("details").hidden = false;
    $("details").scrollTop = 0;
  }

  close() {
    if (!this.isOpen) return;
    this.pod = this.node = NONE;
    this.panel = null;
    this.app.tiles.setArrows([]);
    $("overview").hidden = false;
    $("details").hidden = true;
    this.app.tiles.mark(null);
    this.app.tiles.select(NONE);
    this.app.lists.update(true);
    const back = this.back && this.back.isConnected && this.back !== document.body ? this.back : $("list");
    back.focus();
    this.app.address.write();
  }

  /** Redraws when something shown has changed. */
  update(force = false) {
    this.isStale = this.isPressed;
    if (!this.isOpen || this.panel || this.isPressed) return;
    const { model } = this.app;
    const key = this.pod !== NONE
      ? ["pod", this.pod, model.state[this.pod], model.node[this.pod], model.text[this.pod], model.kind[this.pod], this.asked.has(this.pod)].join()
      : ["node", this.node, model.row[this.node], model.podsOn(this.node).join()].join();
    if (key === this.key && !force) return;
    this.key = key;
    const focusable = () => [...$("details").querySelectorAll("h2, button, [tabindex='0']")];
    const held = focusable().indexOf(document.activeElement);
    const parts = this.pod !== NONE ? this.podParts(this.pod) : this.nodeParts(this.node);
    fill($("details"), parts);
    if (held >= 0) (focusable()[held] || $("details-title")).focus();
    this.app.tiles.select(this.pod !== NONE ? model.node[this.pod] : this.node);
  }

  heading(what, name, state) {
    return h("header", {},
      h("button", { type: "button", class: "back", onclick: () => this.close(), title: tr("Back (Escape)") }, tr("← Back")),
      h("div", { class: "what" }, what),
      h("h2", { id: "details-title", tabindex: "-1" }, name),
      state);
  }

  podParts(pod) {
    const { model, data } = this.app;
    const state = model.state[pod], node = model.node[pod];
    const kind = data.kind(model.kind[pod]);
    const message = model.message(pod);
    const parts = [
      this.heading(tr("Pod in {namespace}", { namespace: data.namespace(pod) }), data.podName(pod), h("span", { class: `state s${state}` }, tr(STATE_WORDS[state]))),
    ];
    if (state === GONE) {
      const by = data.preemptedFor.get(pod);
      const isYetToCome = !this.hasBeen(pod);
      parts.push(h("p", { class: "said" }, isYetToCome ? tr("It does not exist yet at this moment.") : by ? tr("It was preempted to make room for {pod}.", { pod: by }) : message || tr("It no longer exists at this moment.")));
    } else if (node !== NONE) {
      parts.push(h("p", { class: "place" }, tr("on "), this.nodeLink(node)));
    }
    if (message && state !== GONE) parts.push(h("p", { class: "said" }, message));
    parts.push(this.facts(pod, kind));
    if (state !== GONE) parts.push(this.app.edit.parts("Pod", data.namespace(pod), data.podName(pod)));
    parts.push(...this.app.account.parts(pod, this.accountOf(pod)));
    parts.push(this.chips(tr("Labels"), kind.labels, tr("The pod has no labels.")));
    if (kind.selector.length) parts.push(this.chips(tr("Node selector"), kind.selector, ""));
    return parts;
  }

  hasBeen(pod) {
    const { model, data } = this.app;
    if (model.keyframes[0].state[pod]) return true;
    const { what, which } = data.events;
    for (let at = 0; at < model.at; at += 1) if (which[at] === pod && what[at] < NODE && what[at] !== KIND) return true;
    return false;
  }

  facts(pod, kind) {
    const { data } = this.app;
    const attempt = data.attempts.get(pod);
    const facts = [[tr("Requests"), kind.requests.length ? kind.requests.map(([name, value]) => `${resourceName(name)} ${amount(value, name)}`).join(", ") : tr("none")]];
    const use = data.use.get(pod);
    if (!use && data.useProblem) facts.push([tr("Measured use"), data.useProblem]);
    if (use) facts.push([tr("Measured use"), Object.entries(use).map(([name, value]) => `${resourceName(name)} ${amount(value, name)}`).join(", ")]);
    if (kind.priority) facts.push([tr("Priority"), count(kind.priority)]);
    if (kind.owner) facts.push([tr("Owner"), kind.owner]);
    if (kind.scheduler !== "default-scheduler") facts.push([tr("Scheduler"), kind.scheduler]);
    if (attempt && attempt.number) {
      facts.push([tr("Attempts"), count(attempt.number)]);
      facts.push([tr("Last attempt"), tr("{n} of {m} could take it", { n: count(attempt.feasible), m: plural(attempt.evaluated, "node") })]);
      if (attempt.score !== null) facts.push([tr("Score"), count(attempt.score)]);
    }
    return h("dl", { class: "facts" }, facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  }

  accountOf(pod) {
    if (this.asked.has(pod)) return this.asked.get(pod);
    const number = this.app.data.accountOf.get(pod);
    return number === undefined ? null : this.app.data.accounts[number];
  }

  async askServer(pod) {
    if (!this.app.live) return;
    const account = await this.app.live.judge(pod);
    if (account) this.asked.set(pod, account);
    if (this.pod === pod) this.update(true);
  }

  nodeLink(node) {
    const { data, model } = this.app;
    const name = node === NONE ? tr("a deleted node") : data.nodeName(node);
    if (node === NONE || !model.isThere(node)) return name;
    return h("button", { type: "button", class: "link", onclick: () => this.app.openNode(node) }, name);
  }

  nodeParts(node) {
    const { model, data } = this.app;
    const row = model.row[node];
    if (row === NONE) {
      return [this.heading(tr("Node"), data.nodes[node], ""), h("p", { class: "said" }, tr("It does not exist at this moment."))];
    }
    const flags = data.rows.flags[row];
    const words = [flags & 1 ? tr("cordoned") : "", flags & 2 ? tr("not ready") : ""].filter(Boolean).join(", ");
    const taints = data.taints(row).map((taint) => [taint, null]);
    const pods = model.podsOn(node);
    return [
      this.heading(tr("Node"), data.nodes[node], words ? h("span", { class: "state warn" }, words) : ""),
      this.usage(node, row),
      this.app.ask.nodeParts(node),
      this.app.edit.parts("Node", "", data.nodes[node]),
      taints.length ? this.chips(tr("Taints"), taints, "", true) : "",
      h("h3", {}, tr("Pods ({n})", { n: count(pods.length) })),
      pods.length ? h("ul", { class: "pods" }, pods.map((pod) => this.podItem(pod))) : h("p", { class: "none" }, tr("No pod is on it.")),
      this.chips(tr("Labels"), data.labels(row), tr("The node has no labels.")),
    ];
  }

  usage(node, row) {
    const { model, data } = this.app;
    const lines = [];
    data.resources.forEach((name, resource) => {
      const all = data.allocatable(row, resource), used = model.used[resource][node];
      if (!all && !used) return;
      const share = all > 0 ? used / all : 1;
      lines.push(h("tr", {},
        h("th", { scope: "row" }, resourceName(name)),
        h("td", { class: "bar" }, meter(share, share > 1 ? "full over" : "full")),
        h("td", { class: "figure" }, all > 0 ? percent(share) : "–"),
        h("td", { class: "amounts" }, tr("{n} of {m}", { n: amount(used, name), m: amount(all, name) })),
        this.measured(node, name)));
    });
    return h("table", { class: "usage" }, h("caption", { class: "unseen" }, tr("Requested of each resource")), h("tbody", {}, lines));
  }

  /** The measured use of a node's pods; pods that were not measured count with their requests. */
  measured(node, name) {
    const { model, data } = this.app;
    if (!data.use.size || !MEASURED.includes(name)) return "";
    const used = model.podsOn(node).map((pod) => {
      const requests = data.kind(model.kind[pod]).requests.find(([resource]) => resource === name);
      const use = data.use.get(pod);
      return use && use[name] !== undefined ? use[name] : requests ? requests[1] : 0;
    });
    return h("td", { class: "amounts" }, tr("{n} in use", { n: amount(used.reduce((sum, value) => sum + value, 0), name) }));
  }

  podItem(pod) {
    const { model, data } = this.app;
    const requests = data.kind(model.kind[pod]).requests.filter(([name]) => name !== PODS);
    return h("li", {}, h("button", { type: "button", class: "pod", onclick: () => this.app.openPod(pod) },
      h("span", { class: "name" }, data.podName(pod)),
      h("span", { class: "space" }, data.namespace(pod)),
      model.state[pod] === TERMINATING ? h("span", { class: `state s${TERMINATING}` }, tr("terminating")) : "",
      h("span", { class: "asks" }, requests.map(([name, value]) => `${amount(value, name)} ${resourceName(name)}`).join(" · "))));
  }

  chips(title, pairs, empty, isWarning = false) {
    return h("section", { class: "labels" }, h("h3", {}, title),
      pairs.length ? h("div", { class: "chips" }, pairs.map(([key, value]) => chip(key, value, isWarning))) : h("p", { class: "none" }, empty));
  }
}
