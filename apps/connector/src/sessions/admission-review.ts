import type { IncomingMessage } from 'node:http';
import type { UserInfo } from './access-reviews.js';
import { CREATOR_ANNOTATION, type SessionRequest } from './resources.js';

/**
 * Two of what Kubernetes takes: 256 KiB of annotations, 256 names and who owns which field. An update that is refused for its size would
 * keep an object that waits for a finalizer for ever. Whoever reaches the webhook can send one, and 16 are read at once.
 */
const MAX_BODY = 1024 * 1024;

/** What admission is about; nothing else of a review is kept while Kubernetes is asked. */
export interface Review {
  uid: string;
  operation: string;
  namespace: string | undefined;
  user: UserInfo;
  /** VolumeSnapshots. */
  names: readonly string[];
  hasAnnotations: boolean;
  /** The annotation of the creator, as it is to be and as it was. */
  creator: { now: string | undefined; before: string | undefined };
}

interface AdmissionReview {
  request?: {
    uid: unknown;
    operation: unknown;
    namespace?: unknown;
    userInfo?: Record<string, unknown>;
    object: Partial<SessionRequest> | null;
    oldObject: Partial<SessionRequest> | null;
  };
}

/** admission.k8s.io/v1. What is not one: its HTTP status. */
export async function readReview(request: IncomingMessage): Promise<Review | 400 | 413> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY) return 413;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += (chunk as Buffer).length;
    if (size > MAX_BODY) return 413;
    chunks.push(chunk as Buffer);
  }
  try {
    return pick(JSON.parse(Buffer.concat(chunks).toString('utf8')));
  } catch {
    return 400;
  }
}

function pick({ request }: AdmissionReview): Review | 400 {
  const user = userOf(request?.userInfo);
  if (!request || !user || typeof request.uid !== 'string') return 400;
  const { uid, operation, namespace, object, oldObject } = request;
  const annotation = (of: Partial<SessionRequest> | null) => of?.metadata?.annotations?.[CREATOR_ANNOTATION];
  return {
    uid,
    operation: String(operation),
    namespace: typeof namespace === 'string' && namespace !== '' ? namespace : undefined,
    user,
    names: namesOf(object),
    hasAnnotations: Boolean(object?.metadata?.annotations),
    creator: { now: annotation(object), before: annotation(oldObject) },
  };
}

/** Before the schema was looked at: what is no list of names is for the API server to refuse. */
const namesOf = (object: Partial<SessionRequest> | null): string[] => strings(object?.spec?.snapshots) ?? [];

function userOf({ username, uid, groups, extra }: Record<string, unknown> = {}): UserInfo | undefined {
  if (typeof username !== 'string') return undefined;
  const more = Object.entries((extra as object | undefined) ?? {}).map(([name, values]) => [name, strings(values)]);
  return {
    username,
    ...(typeof uid === 'string' ? { uid } : {}),
    ...(groups ? { groups: strings(groups) ?? [] } : {}),
    ...(extra ? { extra: Object.fromEntries(more.filter(([, values]) => values)) } : {}),
  };
}

const strings = (values: unknown): string[] | undefined =>
  Array.isArray(values) ? values.map(value => (typeof value === 'string' ? value : '')) : undefined;
