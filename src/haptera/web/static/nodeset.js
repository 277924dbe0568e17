// Node-sets as the parent folds them: commas between terms, each bracket a dimension of numbers.

export function expand(text) {
  return terms(text).flatMap((term) => {
    let names = [""];
    for (const piece of term.match(/\[[^\]]*\]|[^[\]]+/g) ?? []) {
      const ways = piece.startsWith("[") ? piece.slice(1, -1).split(",").flatMap(range) : [piece];
      names = names.flatMap((name) => ways.map((way) => name + way));
    }
    return names;
  });
}

function terms(text) {
  return text.match(/(?:\[[^\]]*\]|[^,[\]])+/g) ?? [];
}

// 08-12 keeps its zeros; 1-9/2 is every second.
function range(text) {
  const [, first, last = first, by = "1"] = /^(\d+)(?:-(\d+)(?:\/(\d+))?)?$/.exec(text) ?? [];
  if (first === undefined) return [text];
  const found = [];
  for (let one = Number(first); one <= Number(last); one += Number(by)) {
    found.push(String(one).padStart(first.startsWith("0") ? first.length : 0, "0"));
  }
  return found;
}
