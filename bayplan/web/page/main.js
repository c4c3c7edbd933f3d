// Main: connects the parts of the page.

class App {
  constructor(tale) {
    this.data = new Data(tale);
    this.model = new Model(this.data, tale.base);
    this.model.seek(this.model.last);
    this.live = null;
    /** What the large part shows: the picture, the table of nodes, or that of pods. */
    this.view = "picture";
    this.isComparing = Boolean(tale.comparison);
    this.tiles = new Tiles(this);
    this.table = new Table(this);
    this.filter = new Filter(this);
    this.account = new Account(this);
    this.details = new Details(this);
    this.timeline = new Timeline(this);
    this.lists = new Lists(this);
    this.search = new Search(this);
    this.address = new Address(this);
    this.compare = new Compare(this, tale);
    this.choices = new Choices(this);
    this.exports = new Exports(this);
    this.ask = new Ask(this);
    this.edit = new Edit(this);
    this.setTheme(savedTheme());
    this.listen();
    this.timeline.draw();
    this.address.read();
    this.subtitle();
    document.body.classList.remove("unloaded");
  }

  refresh(force = false) {
    if (this.view === "picture") this.tiles.update(force);
    else this.table.update(force);
    this.compare.update();
    this.lists.update();
    this.details.update();
    drawSummary(this);
  }

  /** Handles new data of a live page. */
  grew() {
    this.model.grow();
    this.timeline.grew();
    this.choices.offerAgain();
    drawSummary(this);
  }

  subtitle() {
    const { sources, isLive, release } = this.data;
    const words = isLive ? tr("live") : sources.map((path) => path.split("/").pop()).join(", ");
    $("subtitle").textContent = [words, release && `Kubernetes ${release}`].filter(Boolean).join(" · ");
    $("subtitle").title = sources.join("\n");
    document.title = isLive ? tr("Bayplan, live") : words ? `Bayplan: ${words}` : "Bayplan";
  }

  openPod(pod) {
    this.details.openPod(pod);
  }

  openNode(node) {
    this.details.openNode(node);
  }

  listen() {
    document.addEventListener("keydown", (event) => this.onKey(event));
    $("copy-link").addEventListener("click", (event) => this.address.copy(event.currentTarget));
    chooseRadio($("language"), language);
    radios($("language"), (value) => {
      this.address.put("replaceState");
      chooseLanguage(value);
    });
    radios($("theme"), (value) => this.setTheme(value, true));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.setTheme(savedTheme()));
  }

  onKey(event) {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range";
    if (event.key === "Escape") this.details.close();
    else if (event.key === "/" && !isTyping) {
      event.preventDefault();
      $("query").focus();
      $("query").select();
    }
  }

  setTheme(choice, isChosen = false) {
    const isDark = choice === "dark" || (choice === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    chooseRadio($("theme"), choice);
    if (isChosen) remember("bayplan-theme", choice);
    this.tiles.setTheme(isDark ? "dark" : "light");
    this.compare.setTheme(isDark ? "dark" : "light");
    this.timeline.strip.draw();
  }
}

function savedTheme() {
  return recall("bayplan-theme") || "auto";
}

async function begin() {
  translatePage();
  let tale = JSON.parse($("data").textContent);
  if (!tale.isLive) {
    window.bayplan = new App(tale);
    return;
  }
  for (;;) {
    try {
      tale = await Live.ask("state", {});
      break;
    } catch (error) {
      notice(error instanceof TypeError ? tr("The server cannot be reached; retrying.") : error.message);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
  notice("");
  const app = new App(tale);
  app.live = new Live(app, tale.epoch);
  app.live.told = tale.events.first + tale.events.t.length;
  window.bayplan = app;
  app.live.follow();
  if (app.data.can.use) app.live.followUse();
}

begin();
