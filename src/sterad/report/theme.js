try {
  const theme = localStorage.getItem("sterad-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch (error) { /* browsers may deny local storage to a file */ }
