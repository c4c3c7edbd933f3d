// Edit: create, change and delete objects of `bayplan up` as YAML, checked by the rules of the API.

const NEW_POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: web\n    image: web\n    resources:\n      requests: {cpu: 500m, memory: 256Mi}\n";

class Edit {
  constructor(app) {
    this.app = app;
    /** The object whose deletion was asked for once. */
    this.asked = "";
    $("new-object").hidden = !app.data.can.edit;
    $("new-object").addEventListener("click", () => this.openForm(tr("New object"), NEW_POD));
  }

  /** The buttons of a pod or a node. */
  parts(kind, namespace, name) {
    if (!this.app.data.can.edit) return "";
    const object = { kind, namespace, name };
    const isAsked = this.asked === JSON.stringify(object); // the buttons are redrawn when the object changes
    return h("div", { class: "actions" },
      h("button", { type: "button", class: "plain", id: "edit-object", onclick: () => this.open(object) }, tr("Edit")),
      h("button", { type: "button", class: "plain danger", id: "delete-object", onclick: (event) => this.remove(object, event.currentTarget) }, isAsked ? tr("Delete {name}?", { name }) : tr("Delete")));
  }

  async open(object) {
    try {
      const { text } = await Live.post("edit", { do: "read", ...object });
      this.openForm(tr("Edit {name}", { name: object.name }), text);
    } catch (error) {
      notice(error.message);
    }
  }

  openForm(title, text) {
    const area = h("textarea", { id: "object-text", rows: 22, spellcheck: "false", "aria-label": tr("The object in YAML") });
    area.value = text;
    const said = h("p", { class: "note", id: "edit-said", role: "status" });
    const send = async (what) => {
      try {
        const answer = await Live.post("edit", { do: what, text: area.value });
        said.className = "note";
        said.textContent = answer.said;
      } catch (error) {
        said.className = "said";
        said.textContent = error.message;
      }
    };
    this.app.details.openPanel(tr("Object"), title, [area,
      h("div", { class: "actions" },
        h("button", { type: "button", class: "plain", id: "check-object", onclick: () => send("check") }, tr("Check")),
        h("button", { type: "button", class: "plain", id: "save-object", onclick: () => send("apply") }, tr("Save"))),
      said]);
    area.focus();
  }

  /** Deletes on the second press, so that one press alone does nothing. */
  async remove(object, button) {
    if (this.asked !== JSON.stringify(object)) {
      this.asked = JSON.stringify(object);
      button.textContent = tr("Delete {name}?", { name: object.name });
      return;
    }
    try {
      say((await Live.post("edit", { do: "delete", ...object })).said);
      this.app.details.close();
    } catch (error) {
      notice(error.message);
    }
  }
}
