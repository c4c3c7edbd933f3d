// Elements: builds parts of the page. All cluster data enters the page here, and always as text.

const $ = (id) => document.getElementById(id);

/** An element with attributes, listeners (`onclick`) and children: strings become text nodes, never markup. */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== "") element.append(child);
  }
  return element;
}

function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== ""));
  return element;
}

/** A bar of length 0 to 1; its class sets the colour. */
function meter(share, name) {
  const bar = h("span", { class: name });
  bar.style.width = `${Math.max(0, Math.min(share, 1)) * 100}%`;
  return h("span", { class: "meter", "aria-hidden": "true" }, bar);
}

function chip(key, value, isWarning = false) {
  const text = value === null || value === "" ? key : `${key}=${value}`;
  return h("span", { class: isWarning ? "chip warn" : "chip", title: text }, text);
}

/** Makes buttons of an element a choice: click and arrow keys. */
function radios(element, onChoice) {
  const buttons = [...element.children];
  element.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) onChoice(button.dataset.value);
  });
  element.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = buttons.findIndex((button) => button.getAttribute("aria-checked") === "true");
    const next = buttons[(at + step + buttons.length) % buttons.length];
    onChoice(next.dataset.value);
    next.focus();
  });
}

function chooseRadio(element, value) {
  for (const button of element.children) {
    const isIt = button.dataset.value === value;
    button.setAttribute("aria-checked", isIt);
    button.tabIndex = isIt ? 0 : -1;
  }
}

/** Announces a text to screen readers. */
function say(text) {
  $("said").textContent = text;
}

/** Calls `work` at most once per frame. */
function perFrame(work) {
  let asked = 0;
  return () => {
    if (asked) return;
    asked = requestAnimationFrame(() => {
      asked = 0;
      work();
    });
  };
}

/** A virtual list: only visible rows are elements. Rows have equal height. */
class LongList {
  /** `holder` scrolls and has the focus; it is the list itself unless that is a part of a grid, below its head. */
  constructor(element, rowHeight, makeRow, onOpen, holder = element) {
    this.holder = holder;
    this.rowRole = holder === element ? "option" : "row";
    this.element = element;
    this.rowHeight = rowHeight;
    this.makeRow = makeRow;
    this.onOpen = onOpen;
    this.items = [];
    this.active = 0;
    this.pressed = NONE;
    this.inner = h("div", { class: "inner" });
    element.replaceChildren(this.inner);
    this.draw = perFrame(() => this.drawNow());
    holder.addEventListener("scroll", this.draw, { passive: true });
    holder.addEventListener("keydown", (event) => { if (event.target === holder) this.onKey(event); });
    holder.addEventListener("focus", this.draw);
    element.addEventListener("mousedown", (event) => { this.pressed = this.rowAt(event); });
    element.addEventListener("mouseup", (event) => this.onRelease(event));
    element.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (event.detail === 0 && row) this.open(Number(row.dataset.at)); // not by a mouse
    });
    new ResizeObserver(this.draw).observe(holder);
  }

  show(items) {
    this.items = items;
    this.active = Math.min(this.active, Math.max(0, items.length - 1));
    this.drawNow();
  }

  drawNow() {
    const { element, holder, rowHeight, items } = this;
    const first = Math.max(0, Math.floor(holder.scrollTop / rowHeight) - 3);
    const last = Math.min(items.length, first + Math.ceil(holder.clientHeight / rowHeight) + 6);
    this.inner.style.height = `${items.length * rowHeight}px`;
    const rows = [];
    for (let i = first; i < last; i += 1) {
      const row = this.makeRow(items[i], i);
      row.id = `${element.id}-${i}`;
      row.dataset.at = i;
      row.setAttribute("role", this.rowRole);
      if (this.rowRole === "row") row.setAttribute("aria-rowindex", i + 2); // the first is the head
      else {
        row.setAttribute("aria-setsize", items.length);
        row.setAttribute("aria-posinset", i + 1);
      }
      row.setAttribute("aria-selected", i === this.active);
      row.classList.add("row");
      row.style.transform = `translateY(${i * rowHeight}px)`;
      rows.push(row);
    }
    this.inner.replaceChildren(...rows);
    const isDrawn = this.active >= first && this.active < last;
    if (isDrawn) this.holder.setAttribute("aria-activedescendant", `${element.id}-${this.active}`);
    else this.holder.removeAttribute("aria-activedescendant");
  }

  /** The row at a screen position; NONE: no row. */
  rowAt(event) {
    const at = Math.floor((event.clientY - this.inner.getBoundingClientRect().top) / this.rowHeight);
    return at >= 0 && at < this.items.length ? at : NONE;
  }

  /** Rows may be rebuilt while the button is down, and then there is no click event: use the position. */
  onRelease(event) {
    const at = this.rowAt(event);
    if (event.button === 0 && at !== NONE && at === this.pressed) this.open(at);
    this.pressed = NONE;
  }

  open(at) {
    this.active = at;
    this.onOpen(this.items[at]);
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.holder.clientHeight / this.rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.items.length, End: this.items.length };
    if (event.key in steps && this.items.length) {
      this.active = Math.max(0, Math.min(this.items.length - 1, this.active + steps[event.key]));
      this.reveal();
      event.preventDefault();
    } else if ((event.key === "Enter" || event.key === " ") && this.items.length) {
      this.onOpen(this.items[this.active]);
      event.preventDefault();
    }
  }

  reveal() {
    const { element, holder, rowHeight, active } = this;
    const top = active * rowHeight, head = holder === element ? 0 : element.offsetTop;
    if (top < holder.scrollTop) holder.scrollTop = top;
    else if (top + rowHeight + head > holder.scrollTop + holder.clientHeight) {
      holder.scrollTop = top + rowHeight + head - holder.clientHeight;
    }
    this.drawNow();
  }
}
