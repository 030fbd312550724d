// The worker of the page: a classic script made from a Blob, because files may not start module workers.
import { Desk } from './desk.js';

if (typeof document === 'undefined') {
  const desk = new Desk((answer, buffers) => postMessage(answer, { transfer: buffers ?? [] }));
  addEventListener('message', event => { desk.handle(event.data); });
  postMessage({ kind: 'ready' });
}
