// The search works in a folder, too, without a server. Sphinx would fetch each page that it finds, to quote from it, and a browser
// forbids that for files. So there the list has titles without quotations.
if (location.protocol === 'file:') DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
