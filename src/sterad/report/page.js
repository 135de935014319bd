(() => {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("sterad-theme", root.dataset.theme); } catch (error) { /* browsers may deny local storage to a file */ }
  });

  // On a narrow screen the list of sections is a menu, closed until it is needed.
  const menu = document.getElementById("menu");
  const narrow = matchMedia("(max-width: 47.99rem)");
  const fold = () => { menu.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  const links = [...menu.querySelectorAll("a")];
  links.forEach((link) => link.addEventListener("click", () => { if (narrow.matches) menu.open = false; }));
  const mark = (key) => links.forEach((link) => {
    if (link.hash === `#${key}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
  const observer = new IntersectionObserver(
    (entries) => entries.forEach((entry) => { if (entry.isIntersecting) mark(entry.target.id); }),
    { rootMargin: "-15% 0px -80% 0px" },
  );
  document.querySelectorAll("main > section[id]").forEach((section) => observer.observe(section));

  // Numbers sort numerically, texts alphabetically; missing values are always last.
  const cellValue = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const compare = (left, right) => {
    const [a, b] = [Number(left), Number(right)];
    return Number.isNaN(a) || Number.isNaN(b) ? left.localeCompare(right) : a - b;
  };
  const sort = (table, column, direction) => {
    const body = table.tBodies[0];
    const pairs = [...body.rows].map((row) => [cellValue(row, column), row]);
    pairs.sort(([a], [b]) => (a === "") - (b === "") || direction * compare(a, b));
    body.append(...pairs.map(([, row]) => row));
    [...table.tHead.rows[0].cells].forEach((head, index) => {
      const sorted = direction > 0 ? "ascending" : "descending";
      head.setAttribute("aria-sort", index === column ? sorted : "none");
    });
  };
  document.querySelectorAll("table.sortable thead button").forEach((button) => {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const isNumber = head.dataset.kind === "number";
      const current = head.getAttribute("aria-sort");
      const ascending = current === "none" ? !isNumber : current === "descending";
      sort(head.closest("table"), head.cellIndex, ascending ? 1 : -1);
    });
  });
})();
