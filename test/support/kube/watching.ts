import type { ServerResponse } from 'node:http';
import type { Asked } from '#test/support/kube/resources';
import {
  gone,
  type KubeObject,
  StatusError,
  type StoredObjects,
  type WatchEvent,
} from '#test/support/kube/stored-objects';

type Shown = (object: KubeObject) => KubeObject;

const BOOKMARK_MS = 1_000;

/** `key=value`, several with commas. */
const selects = (selector: string | null, { metadata }: KubeObject): boolean =>
  (selector ?? '')
    .split(',')
    .filter(term => term !== '')
    .every(term => metadata.labels?.[term.split('=')[0]!] === term.split('=')[1]);

const isAsked = (query: URLSearchParams, namespace: string | undefined, object: KubeObject): boolean =>
  (namespace === undefined || object.metadata.namespace === namespace) &&
  selects(query.get('labelSelector'), object) &&
  (query.get('fieldSelector') ?? `metadata.name=${object.metadata.name}`) === `metadata.name=${object.metadata.name}`;

const LABEL =
  /^([a-zA-Z0-9.-]+\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?(=([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?)?$/;
const FIELD = /^metadata\.(name|namespace)=[^,]*$/;

/** What cannot be asked for. Of sorts that an API server has and nobody asks for here, too. */
function requireSense(query: URLSearchParams): void {
  const labels = (query.get('labelSelector') ?? '').split(',').filter(term => term !== '');
  const sensible: Record<string, boolean> = {
    labelSelector: labels.every(term => LABEL.test(term)),
    fieldSelector: FIELD.test(query.get('fieldSelector') ?? 'metadata.name='),
    limit: /^\d*$/.test(query.get('limit') ?? ''),
    continue: /^(\d+ .+)?$/.test(query.get('continue') ?? ''),
  };
  for (const [name, isSensible] of Object.entries(sensible))
    if (!isSensible) throw new StatusError(400, 'BadRequest', `${name}: ${query.get(name)} is none`);
}

/** A page begins after the last name of the one before. */
export function listOf(stored: StoredObjects, { resource, namespace, query }: Asked, shown: Shown): object {
  requireSense(query);
  const [version, after] = (query.get('continue') ?? '').split(' ');
  const found = [...stored.of(resource.key)]
    .filter(([key, object]) => (!after || key > after) && isAsked(query, namespace, object))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const limit = Number(query.get('limit') ?? 0) || found.length;
  const page = found.slice(0, limit);
  const resourceVersion = version || String(stored.version);
  const more = found.length > page.length ? { continue: `${resourceVersion} ${page.at(-1)![0]}` } : {};
  return {
    apiVersion: `${resource.group}/${resource.version}`,
    kind: `${resource.kind}List`,
    metadata: { resourceVersion, ...more },
    items: page.map(([, object]) => shown(object)),
  };
}

/** Ends at its time, as a real one does; what is too old is told within the stream. */
export function serveWatch(stored: StoredObjects, asked: Asked, reply: ServerResponse, shown: Shown): void {
  const { resource, namespace, query } = asked;
  requireSense(query);
  const from = Number(query.get('resourceVersion') ?? Number.NaN);
  if (Number.isNaN(from)) throw new StatusError(400, 'BadRequest', 'a watch needs a resourceVersion here');
  reply.writeHead(200, { 'content-type': 'application/json' });
  reply.flushHeaders();
  const tell = ({ type, object }: WatchEvent) => reply.write(`${JSON.stringify({ type, object })}\n`);
  let end = (): void => {};
  try {
    end = stored.watch(resource.key, from, ({ type, object }) => {
      if (isAsked(query, namespace, object)) tell({ type, object: shown(object) });
    });
  } catch {
    tell({ type: 'ERROR', object: gone().body });
    return void reply.end();
  }
  const bookmark = (): void => {
    const metadata = { resourceVersion: String(stored.version), creationTimestamp: null };
    tell({
      type: 'BOOKMARK',
      object: { apiVersion: `${resource.group}/${resource.version}`, kind: resource.kind, metadata },
    });
  };
  const marks = query.get('allowWatchBookmarks') === 'true' ? setInterval(bookmark, BOOKMARK_MS) : undefined;
  const over = setTimeout(() => reply.end(), Number(query.get('timeoutSeconds') ?? 300) * 1_000);
  reply.once('close', () => {
    clearInterval(marks);
    clearTimeout(over);
    end();
  });
}
