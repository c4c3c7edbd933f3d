// Format: readable numbers, amounts and times.

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
const COUNT = new Intl.NumberFormat("en");

function isBytes(resource) {
  return ["memory", "ephemeral-storage", "storage"].includes(resource) || resource.startsWith("hugepages-");
}

function count(number) {
  return COUNT.format(number);
}

/** A number of things; a translation has one form for all numbers. */
function plural(number, one, many) {
  const word = tr(one);
  return `${count(number)} ${word !== one || number === 1 ? word : many || one + "s"}`;
}

/** An amount of a resource: cpu is given in thousandths, memory in bytes. */
function amount(value, resource) {
  if (resource === "cpu") {
    if (Math.abs(value) < 1000 && value !== 0) return `${value}m`;
    return count(value < 100000 ? Math.round(value / 10) / 100 : Math.round(value / 1000));
  }
  if (!isBytes(resource)) return count(value);
  let step = 0;
  while (Math.abs(value) >= 1024 && step < BINARY.length - 1) {
    value /= 1024;
    step += 1;
  }
  const digits = value >= 100 || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)} ${BINARY[step]}`.trim();
}

/** A share in whole percent, never rounded up, as the commands show it (`percent` of cli/render/tables.py). */
function percent(share) {
  const hundredths = share * 100 + 1e-12; // a quotient may be a little less than the number that it stands for
  if (share > 0 && hundredths < 1) return "<1%";
  return `${Math.floor(hundredths)}%`;
}

/** A label's key with its distinctive part first. */
function labelName(key) {
  const [domain, name] = key.split(/\/(.*)/);
  return name === undefined ? key : `${name} (${domain})`;
}

/** Seconds since the start as +1:02:03, with fractions where they matter. */
function elapsed(seconds) {
  const whole = Math.floor(seconds);
  const part = seconds - whole;
  const h = Math.floor(whole / 3600);
  const m = Math.floor((whole % 3600) / 60);
  const s = whole % 60;
  const two = (n) => String(n).padStart(2, "0");
  const fraction = part > 0.0005 && whole < 600 ? part.toFixed(3).slice(1).replace(/0+$/, "") : "";
  return `+${h}:${two(m)}:${two(s)}${fraction}`;
}

function clockTime(date) {
  return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** Compares names so that node-2 comes before node-10. */
const byName = new Intl.Collator("en", { numeric: true }).compare;
