// An audit of what a page shows: contrast (WCAG AA), names of controls, references, and what the Tab key reaches.
(() => {
  const problems = [];
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest(".unseen, .skip");
  const parse = (text) => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const lightness = ([r, g, b]) => {
    const part = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
      if (a > 0.99) return [r, g, b];
    }
    return [255, 255, 255];
  };
  for (const element of document.body.querySelectorAll("*")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!hasText || !isShown(element) || element.tagName === "OPTION") continue;
    const style = getComputedStyle(element);
    const [low, high] = [lightness(parse(style.color)), lightness(behind(element))].sort((a, b) => a - b);
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < (isLarge ? 3 : 4.5)) problems.push(`contrast ${contrast.toFixed(2)}: ${element.textContent.trim().slice(0, 40)}`);
  }
  const nameOf = (element) => element.getAttribute("aria-label") || (element.getAttribute("aria-labelledby") && document.getElementById(element.getAttribute("aria-labelledby"))?.textContent)
    || (element.labels && [...element.labels].flatMap((label) => [...label.childNodes]).filter((node) => node.nodeType === 3).map((node) => node.textContent.trim()).join("")) || (element.tagName === "SELECT" ? "" : element.textContent.trim()) || element.title;
  for (const element of document.querySelectorAll("button, input, select, textarea, a[href], [role=listbox], [role=grid], [role=dialog], [role=group], [role=radiogroup], [role=tablist], [role=img], canvas:not([aria-hidden])")) {
    if (isShown(element) && !nameOf(element)) problems.push(`no name: ${element.outerHTML.slice(0, 80)}`);
  }
  for (const name of ["aria-controls", "aria-activedescendant", "aria-labelledby"]) {
    for (const element of document.querySelectorAll(`[${name}]`)) {
      if (isShown(element) && !document.getElementById(element.getAttribute(name))) problems.push(`${name} names nothing: ${element.id}`);
    }
  }
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) problems.push(`two elements are ${id}`);
  for (const element of document.querySelectorAll("[tabindex]")) if (element.tabIndex > 0) problems.push(`order of focus: ${element.id}`);
  return problems;
})()
