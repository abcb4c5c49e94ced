import * as models from '@kubernetes/client-node';

type Validate = ((data: unknown) => boolean) & { errors?: { instancePath: string; message?: string; keyword: string; params: object }[] };
interface Model {
  getAttributeTypeMap(): { name: string; baseName: string; type: string }[];
}
interface Resource {
  apiVersion: string;
  kind: string;
}

/** Where the schema of a kind is, as the OpenAPI document of Kubernetes or the project of a custom resource has it. */
const OF_GROUP: Record<string, [name: string, model?: string]> = {
  v1: ['kubernetes-models/_schemas/IoK8sApiCoreV1', 'V1'],
  'apps/v1': ['kubernetes-models/_schemas/IoK8sApiAppsV1', 'V1'],
  'batch/v1': ['kubernetes-models/_schemas/IoK8sApiBatchV1', 'V1'],
  'policy/v1': ['kubernetes-models/_schemas/IoK8sApiPolicyV1', 'V1'],
  'networking.k8s.io/v1': ['kubernetes-models/_schemas/IoK8sApiNetworkingV1', 'V1'],
  'rbac.authorization.k8s.io/v1': ['kubernetes-models/_schemas/IoK8sApiRbacV1', 'V1'],
  'admissionregistration.k8s.io/v1': ['kubernetes-models/_schemas/IoK8sApiAdmissionregistrationV1', 'V1'],
  'apiextensions.k8s.io/v1': [
    'kubernetes-models/_schemas/IoK8sApiextensionsApiserverPkgApisApiextensionsV1',
    'V1',
  ],
  'monitoring.coreos.com/v1': ['@kubernetes-models/prometheus-operator/_schemas/ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1'],
  'cert-manager.io/v1': ['@kubernetes-models/cert-manager/_schemas/ComGithubCertManagerCertManagerPkgApisCertmanagerV1'],
};

/**
 * What an API server would refuse in it, or drop: fields that are missing, of another type or not among the choices, by the schemas of
 * kubernetes-models, which let others through; and fields that there are not, by the models of the client.
 */
export async function problemsOfResource(resource: Resource): Promise<string[]> {
  const { apiVersion, kind } = resource;
  const [schemas, model] = OF_GROUP[apiVersion] ?? [];
  if (schemas === undefined) return [`${apiVersion} ${kind}: no schema is known`];
  const { validate } = (await import(`${schemas}${kind}`)) as { validate: Validate };
  const wrong = validate(resource)
    ? []
    : (validate.errors ?? []).map(error => `${error.instancePath}: ${error.keyword} ${JSON.stringify(error.params)}`);
  return [...wrong, ...(model === undefined ? [] : unknownIn(resource, `${model}${kind}`, kind))];
}

/** Fields that a model does not have; `type` as the client writes it. */
function unknownIn(value: unknown, type: string, path: string): string[] {
  const [, element] = /^Array<(.+)>$/.exec(type) ?? [];
  if (element !== undefined && Array.isArray(value))
    return value.flatMap((item, at) => unknownIn(item, element, `${path}[${at}]`));
  const [, entry] = /^\{ \[key: string\]: (.+); \}$/.exec(type) ?? [];
  if (entry !== undefined && isFields(value))
    return Object.entries(value).flatMap(([key, item]) => unknownIn(item, entry, `${path}.${key}`));
  const model = (models as unknown as Record<string, Model | undefined>)[type];
  if (typeof model?.getAttributeTypeMap !== 'function' || !isFields(value)) return [];
  const known = new Map(model.getAttributeTypeMap().map(({ baseName, type }) => [baseName, type]));
  return Object.entries(value).flatMap(([key, item]) => {
    const of = known.get(key);
    return of === undefined ? [`${path}.${key}: there is no such field`] : unknownIn(item, of, `${path}.${key}`);
  });
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
