// Runs the scripts of a built search page as a browser would, for a page opened by the given
// protocol, and prints what was found and what was fetched:  node search.mjs SITE PROTOCOL WORD
import { readFileSync } from 'node:fs';
import vm from 'node:vm';

const [site, protocol, word] = process.argv.slice(2);
const element = () => ({
  children: [], dataset: {}, style: {}, classList: { add() {}, remove() {} }, setAttribute() {},
  appendChild(child) { this.children.push(child); return child; }, querySelectorAll: () => [],
});
const results = element();
const document = {
  documentElement: { dataset: { content_root: './' } }, body: element(), readyState: 'complete',
  createElement: element, getElementById: (id) => (id === 'search-results' ? results : null),
  querySelectorAll: () => [], querySelector: () => null, addEventListener() {},
};
const href = `${protocol}//search.html`;
const location = { protocol, search: `?q=${word}`, href, toString: () => href };
const fetched = [];
const tasks = [];
const context = vm.createContext({
  document, location, console, URLSearchParams, URL, history: { replaceState() {} },
  localStorage: { getItem: () => null, setItem() {}, removeItem() {} },
  setTimeout: (task, wait) => { if (wait < 100) tasks.push(task); },        // the dots have 500
  fetch: (url) => { fetched.push(url); return new Promise(() => {}); },
});
context.window = context;
const page = readFileSync(`${site}/search.html`, 'utf8');
for (const [, path] of page.matchAll(/<script src="([^"?]+)[^"]*"/g)) {
  if (/furo|live/.test(path)) continue;
  vm.runInContext(readFileSync(`${site}/${path}`, 'utf8'), context, path);
}
while (tasks.length) tasks.shift()();
const isList = (one) => one.children.some((item) => item.children[0]?.href);
const list = results.children.find(isList) ?? element();
const found = list.children.map((item) => item.children[0].href);
console.log(JSON.stringify({ fetched, found }));
