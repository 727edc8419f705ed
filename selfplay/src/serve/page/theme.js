// A classic script: it sets the theme before the first paint.
(() => {
  try {
    const theme = localStorage.getItem('theme');
    if (theme) document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is blocked: the theme is the system's.
  }
})();
