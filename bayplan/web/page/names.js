// Names: long names in short form. What most node names end with is shown once, and resources go without their domain.

/** The longest suffix, from a dot on, that most of the names have; empty when names could be confused without it. */
function commonSuffix(names) {
  const counts = new Map();
  for (const name of names) {
    for (let at = name.indexOf("."); at > 0; at = name.indexOf(".", at + 1)) {
      if (!/[a-z]/.test(name[at + 1] || "")) continue;
      const suffix = name.slice(at);
      counts.set(suffix, (counts.get(suffix) || 0) + 1);
    }
  }
  let longest = "";
  for (const [suffix, number] of counts) if (2 * number > names.length && suffix.length > longest.length) longest = suffix;
  const known = new Set(names);
  const isShort = (name) => name.endsWith(longest) && known.has(name.slice(0, -longest.length));
  return longest && !names.some(isShort) ? longest : "";
}

const RESOURCE_NAMES = { cpu: "CPU", memory: "Memory", pods: "Pods", "ephemeral-storage": "Disk" };
/** Names of resources without a domain, where no two of them would be the same. */
const shortResources = new Map();

function nameResources(resources) {
  const last = (name) => name.split("/").pop();
  const counts = new Map();
  for (const name of resources) counts.set(last(name), (counts.get(last(name)) || 0) + 1);
  for (const name of resources) shortResources.set(name, counts.get(last(name)) > 1 ? name : last(name));
}

function resourceName(resource) {
  return tr(RESOURCE_NAMES[resource] || shortResources.get(resource) || resource);
}
