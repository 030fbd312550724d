/** A refusal, as a sentence for the reader: what must hold, what was given, what to do. */
export class Refusal extends Error {
  /** @param {string} sentence */
  constructor(sentence) {
    super(sentence);
    this.name = 'Refusal';
  }
}
