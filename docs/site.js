// The theme builds these elements after the page has loaded. Wide tables can then be scrolled with the keyboard, and a screen
// reader tells the navigations apart.
function improve() {
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((region) => { region.tabIndex = 0; });
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav, place) => nav.setAttribute("aria-label", `Code ${place + 1}`));
  document.querySelector(".md-nav--primary[aria-label=Navigation]")?.setAttribute("aria-label", "Pages");
}
new MutationObserver(improve).observe(document.documentElement, { childList: true, subtree: true });
improve();
