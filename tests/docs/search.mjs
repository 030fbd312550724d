// Runs the scripts of a built search page as a browser would, for a page opened by the given protocol, and prints what was found
// and what was fetched:  node search.mjs SITE PROTOCOL WORD
import { readFileSync } from 'node:fs';
import vm from 'node:vm';

const [site, protocol, word] = process.argv.slice(2);
const element = () => ({
  children: [], dataset: {}, style: {}, classList: { add() {}, remove() {} }, setAttribute() {},
  appendChild(child) { this.children.push(child); return child; }, querySelectorAll: () => [],
});
const results = element();
const document = {
  documentElement: { dataset: { content_root: './' } }, body: element(), createElement: element, readyState: 'complete',
  getElementById: (id) => (id === 'search-results' ? results : null), querySelectorAll: () => [], querySelector: () => null,
  addEventListener() {},
};
const location = { protocol, search: `?q=${word}`, href: `${protocol}//search.html`, toString() { return this.href; } };
const fetched = [];
const tasks = [];
const context = vm.createContext({
  document, location, console, URLSearchParams, URL, history: { replaceState() {} },
  localStorage: { getItem: () => null, setItem() {}, removeItem() {} },
  setTimeout: (task, wait) => { if (wait < 100) tasks.push(task); },          // the moving dots have 500
  fetch: (url) => { fetched.push(url); return new Promise(() => {}); },
});
context.window = context;
const page = readFileSync(`${site}/search.html`, 'utf8');
for (const [, path] of page.matchAll(/<script src="([^"?]+)[^"]*"/g))
  if (!/furo|live/.test(path)) vm.runInContext(readFileSync(`${site}/${path}`, 'utf8'), context, path);
while (tasks.length) tasks.shift()();
const list = results.children.find((one) => one.children.some((item) => item.children[0]?.href)) ?? element();
console.log(JSON.stringify({ fetched, found: list.children.map((item) => item.children[0].href) }));
