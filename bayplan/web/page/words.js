// Words: the texts of the page in the language of the reader. The English text is the key.

const TRANSLATIONS = {};

let words = null;

/** A text in the reader's language, with `{name}` replaced by values. */
function tr(text, values = {}) {
  const found = (words && words[text]) || text;
  return found.replace(/\{(\w+)\}/g, (mark, name) => (name in values ? values[name] : mark));
}
