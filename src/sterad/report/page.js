(() => {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("sterad-theme", root.dataset.theme); } catch (error) { /* as above */ }
  });

  // Numbers by size and texts by the alphabet; what is absent stays at the end either way.
  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const compare = (one, other) => {
    const [a, b] = [Number(one), Number(other)];
    return Number.isNaN(a) || Number.isNaN(b) ? one.localeCompare(other) : a - b;
  };
  const sort = (table, column, direction) => {
    const body = table.tBodies[0];
    const pairs = [...body.rows].map((row) => [value(row, column), row]);
    pairs.sort(([a], [b]) => (a === "") - (b === "") || direction * compare(a, b));
    body.append(...pairs.map(([, row]) => row));
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const sorted = direction > 0 ? "ascending" : "descending";
      head.setAttribute("aria-sort", place === column ? sorted : "none");
    });
  };
  document.querySelectorAll("table.sortable thead button").forEach((button) => {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const numbers = head.dataset.kind === "number";
      const now = head.getAttribute("aria-sort");
      const up = now === "none" ? !numbers : now === "descending";
      sort(head.closest("table"), head.cellIndex, up ? 1 : -1);
    });
  });
})();
