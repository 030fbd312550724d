// What the page offers to others.

interface Window {
  attnlab: {
    run(spec: import('./types.js').Spec): Promise<import('./types.js').RunResult>,
    version: number,
    viewers: import('./viewer.js').Viewer[],
  };
}
