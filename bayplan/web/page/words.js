// Words: the texts of the page in the language of the reader. The English text is the key.

const LANGUAGES = { en: null, zh: CHINESE };

/** The language that was chosen here or in the address (`#lang=zh`), else that of the browser. */
function findLanguage() {
  const asked = new URLSearchParams(location.hash.slice(1)).get("lang") || recall("bayplan-language") || navigator.language || "en";
  return asked.toLowerCase().startsWith("zh") ? "zh" : "en";
}

let language = "en";

/** A text in the reader's language, with `{name}` replaced by values. */
function tr(text, values = {}) {
  const words = LANGUAGES[language];
  const found = (words && words[text]) || text;
  return found.replace(/\{(\w+)\}/g, (mark, name) => (name in values ? values[name] : mark));
}

/** Translates the fixed texts of the page, once, before anything else is shown. */
function translatePage() {
  language = findLanguage();
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  if (!LANGUAGES[language]) return;
  for (const element of document.body.querySelectorAll("*")) {
    for (const name of ["aria-label", "title", "placeholder"]) {
      if (element.hasAttribute(name)) element.setAttribute(name, tr(element.getAttribute(name)));
    }
    if (element.tagName === "SCRIPT") continue;
    for (const node of element.childNodes) {
      const text = node.nodeType === Node.TEXT_NODE ? node.textContent.trim() : "";
      if (text) node.textContent = node.textContent.replace(text, tr(text));
    }
  }
}

/** What the browser remembers under a name; a page from a file may have no storage. */
function recall(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(name, value);
    return true;
  } catch {
    return false;
  }
}

/** Changes the language: the page is loaded again, and its address has what it shows. */
function chooseLanguage(chosen) {
  if (chosen === language) return;
  const fields = new URLSearchParams(location.hash.slice(1));
  if (remember("bayplan-language", chosen)) fields.delete("lang");
  else fields.set("lang", chosen);
  history.replaceState(null, "", `#${fields}`);
  location.reload();
}
