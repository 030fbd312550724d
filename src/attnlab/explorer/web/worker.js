// The worker of the page: a classic script made from a Blob, because files may not start module workers.
import { RequestHandler } from './request_handler.js';

if (typeof document === 'undefined') {
  const handler = new RequestHandler((answer, buffers) => postMessage(answer, { transfer: buffers ?? [] }));
  addEventListener('message', event => { handler.handle(event.data); });
  postMessage({ kind: 'ready' });
}
