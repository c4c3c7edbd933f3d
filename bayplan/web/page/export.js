// Export: the tables as CSV or JSON, the tiles as a PNG picture. Files are made in the browser.

/** The rows of the table as objects with plain values. */
function plainRows(columns, rows) {
  return rows.map((row) => Object.assign({}, ...columns.map((column) => (column.raw ? column.raw(row) : { [column.name]: column.value(row) }))));
}

function toCsv(rows) {
  const names = rows.length ? Object.keys(rows[0]) : [];
  const cell = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`; // a spreadsheet would take it for a formula
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",") + "\r\n").join("");
}

function saveFile(name, content) {
  const link = h("a", { download: name, href: URL.createObjectURL(content) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

class Exports {
  constructor(app) {
    this.app = app;
    for (const form of ["csv", "json"]) $(`export-${form}`).addEventListener("click", () => this.saveTable(form));
    $("export-png").addEventListener("click", () => this.savePicture());
  }

  text(form) {
    const { table } = this.app;
    table.update(true);
    const rows = plainRows(table.shown, table.rows);
    return form === "csv" ? toCsv(rows) : `${JSON.stringify(rows, null, 1)}\n`;
  }

  saveTable(form) {
    const name = this.app.view === "pods" ? "pods" : "nodes";
    saveFile(`${name}.${form}`, new Blob([this.text(form)], { type: form === "csv" ? "text/csv" : "application/json" }));
    say(tr("{file} was saved.", { file: `${name}.${form}` }));
  }

  savePicture() {
    this.app.tiles.picture().toBlob((blob) => {
      saveFile("nodes.png", blob);
      say(tr("{file} was saved.", { file: "nodes.png" }));
    });
  }
}
