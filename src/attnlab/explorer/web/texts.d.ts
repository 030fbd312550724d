// What join.py gives for an import that is no module: the text of a file, or the joined script of a module.

declare module '*.css' {
  const text: string;
  export default text;
}

declare module '*.js?script' {
  const text: string;
  export default text;
}
