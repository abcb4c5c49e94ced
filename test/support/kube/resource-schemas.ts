import * as models from '@kubernetes/client-node';

interface ClientModel {
  getAttributeTypeMap(): { name: string; baseName: string; type: string }[];
}
type Validated = new (data: unknown) => { validate(): void };
interface Resource {
  apiVersion: string;
  kind: string;
}

/** Where the kinds of a group are validated: by the OpenAPI document of Kubernetes, or the definitions of the project that they are of. */
const PACKAGES: Record<string, string> = {
  'monitoring.coreos.com/v1': '@kubernetes-models/prometheus-operator',
  'cert-manager.io/v1': '@kubernetes-models/cert-manager',
};

/**
 * What an API server would refuse in it, or drop: fields that are missing, of another type or not among the choices, by the schemas of
 * kubernetes-models, which let others through; and fields that there are not, by the models of the client.
 */
export async function problemsOfResource(resource: Resource): Promise<string[]> {
  const { apiVersion, kind } = resource;
  const custom = PACKAGES[apiVersion];
  const kinds = (await import(`${custom ?? 'kubernetes-models'}/${apiVersion}`)) as Record<
    string,
    Validated | undefined
  >;
  const Kind = kinds[kind];
  if (!Kind) return [`${apiVersion} ${kind}: there is no such kind`];
  const problems = custom === undefined ? unknownIn(resource, `V1${kind}`, kind) : [];
  try {
    new Kind(resource).validate();
  } catch (error) {
    problems.push((error as Error).message);
  }
  return problems;
}

/** Fields that a model does not have; `type` as the client writes it. */
function unknownIn(value: unknown, type: string, path: string): string[] {
  const [, element] = /^Array<(.+)>$/.exec(type) ?? [];
  if (element !== undefined && Array.isArray(value))
    return value.flatMap((item, at) => unknownIn(item, element, `${path}[${at}]`));
  const [, entry] = /^\{ \[key: string\]: (.+); \}$/.exec(type) ?? [];
  if (entry !== undefined && isFields(value))
    return Object.entries(value).flatMap(([key, item]) => unknownIn(item, entry, `${path}.${key}`));
  const model = (models as unknown as Record<string, ClientModel | undefined>)[type];
  if (typeof model?.getAttributeTypeMap !== 'function' || !isFields(value)) return [];
  const known = new Map(model.getAttributeTypeMap().map(({ baseName, type }) => [baseName, type]));
  return Object.entries(value).flatMap(([key, item]) => {
    const of = known.get(key);
    return of === undefined ? [`${path}.${key}: there is no such field`] : unknownIn(item, of, `${path}.${key}`);
  });
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
