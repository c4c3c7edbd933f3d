// Ask: what would follow from a change to a live cluster. Nothing is changed; arrows show which pods would move.

const LIKE_THIS = 3;
const MOST_CHANGES = 500;
const MOST_NEW = 200;

const stallsOf = (answer) => (answer.drains || []).flatMap((drain) => drain.stalls);

class Ask {
  constructor(app) {
    this.app = app;
    const button = $("try-config");
    button.hidden = !app.data.can.ask;
    button.addEventListener("click", () => this.openConfiguration());
  }

  /** The questions about a node. */
  nodeParts(node) {
    if (!this.app.data.can.ask) return "";
    const name = this.app.data.nodes[node];
    const number = h("input", { type: "number", id: "like-number", min: 1, max: 1000, value: LIKE_THIS, "aria-label": tr("How many nodes") });
    return h("div", { class: "actions", role: "group", "aria-label": tr("What would follow") },
      h("button", { type: "button", class: "plain", id: "ask-drain", onclick: () => this.ask({ ask: "drain", node: name }, tr("Drain {node}", { node: name })) }, tr("What if it is drained?")),
      number,
      h("button", { type: "button", class: "plain", id: "ask-add", onclick: () => this.ask({ ask: "add-nodes", node: name, number: Number(number.value) }, tr("Add {n} nodes like {node}", { n: number.value, node: name })) }, tr("more like this?")));
  }

  openConfiguration() {
    const text = h("textarea", { id: "config-text", rows: 16, spellcheck: "false", "aria-label": tr("KubeSchedulerConfiguration in YAML") });
    text.value = this.lastText || "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: default-scheduler\n  pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy: {type: MostAllocated}\n";
    this.app.details.openPanel(tr("Question"), tr("Try a configuration"), [
      h("p", { class: "note" }, tr("Pods of controllers are placed anew in a copy of the cluster, with the configuration in use and with this one. Nothing is changed.")),
      text,
      h("div", { class: "actions" }, h("button", { type: "button", class: "plain", id: "config-ask", onclick: () => {
        this.lastText = text.value;
        this.ask({ ask: "configuration", text: text.value }, tr("Try a configuration"));
      } }, tr("Try")))]);
    text.focus();
  }

  async ask(question, title) {
    const { details } = this.app;
    const busy = details.openPanel(tr("Question"), title, [h("p", { class: "note" }, tr("Asking…"))]);
    let parts, moves = [], added = [];
    try {
      const answer = await Live.post("ask", question);
      if (details.panel !== busy) return; // something else was opened meanwhile
      parts = this.answerParts(answer);
      if (question.ask === "drain" && stallsOf(answer).some((stall) => stall.refused)) parts.push(this.forceParts(question, title));
      added = answer.nodes.added.slice(0, MOST_NEW);
      const number = (name) => {
        const known = name ? this.app.data.nodes.indexOf(name) : NONE;
        return known === NONE && added.includes(name) ? FIRST_NEW - added.indexOf(name) : known;
      };
      moves = answer.pods.map(({ was, now }) => [number(was.node), number(now.node)]);
    } catch (error) {
      if (details.panel !== busy) return;
      parts = [h("p", { class: "said", role: "alert" }, error.message)];
    }
    details.openPanel(tr("Question"), title, parts);
    this.app.tiles.setArrows(moves, added);
  }

  /** Why a drain does not get to its end. */
  stallParts(answer) {
    return stallsOf(answer).map((stall) => h("p", { class: "said", role: "alert" }, stall.cause));
  }

  /** The same question with the flags that kubectl drain wants. */
  forceParts(question, title) {
    const forced = { ...question, force: true, deleteEmptydirData: true };
    return h("div", { class: "actions" }, h("button", { type: "button", class: "plain", id: "ask-forced", onclick: () => this.ask(forced, title) },
      tr("With {flags}?", { flags: "--force --delete-emptydir-data" })));
  }

  answerParts(answer) {
    const { data, model } = this.app;
    const where = ({ state, node }) => (node ? data.shortName(node) : tr(state));
    const lines = answer.pods.slice(0, MOST_CHANGES).map((change) => {
      const key = `${change.namespace}/${change.name}`;
      const pod = model.podNamed(key);
      return h("li", {},
        pod === NONE ? h("span", { class: "name" }, key) : h("button", { type: "button", class: "link", onclick: () => this.app.openPod(pod) }, key),
        h("div", { class: change.now.node ? "move" : "move warn" }, `${where(change.was)} → ${where(change.now)}`),
        change.why ? h("div", { class: "note" }, change.why) : "");
    });
    const more = answer.pods.length - lines.length;
    return [
      h("p", { class: "note" }, tr("Nothing was changed in the cluster.")),
      h("p", { class: "summary" }, answer.headline),
      answer.nodes.added.length ? h("p", { class: "note" }, tr("New nodes: {names}", { names: answer.nodes.added.join(", ") })) : "",
      ...answer.notes.map((note) => h("p", { class: "note" }, note)),
      ...this.stallParts(answer),
      h("h3", {}, tr("Pods that move ({n})", { n: count(answer.pods.length) })),
      answer.pods.length ? h("ul", { class: "moves" }, lines) : h("p", { class: "none" }, tr("No pod moves.")),
      more > 0 ? h("p", { class: "note" }, tr("and {n} more", { n: count(more) })) : "",
    ];
  }
}
