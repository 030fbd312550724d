// The search also works in a folder, without a server. Sphinx would fetch each page that it finds, to
// quote from it, and a browser forbids this for files. So there the list has titles only.
if (location.protocol === 'file:') DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
