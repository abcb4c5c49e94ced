/** Who comes in as a service account of its cluster. COSI says no namespace, and v1alpha1 no name either: the access class does. */
import type { ServiceAccount } from '#backends/object-backend';
import { field } from '#cosi/life-parameters';
import { invalid } from '#platform/errors';

export const SERVICE_ACCOUNT_NAME = 'serviceAccountName';
export const SERVICE_ACCOUNT_NAMESPACE = 'serviceAccountNamespace';

const NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const NAMESPACE = /^(?=.{1,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

/** @param place what the caller's protocol calls the name */
export function serviceAccountOf(
  name: string,
  place: string,
  parameters: Readonly<Record<string, string>>,
): ServiceAccount {
  if (!NAME.test(name)) throw invalid(place, 'expected the name of a service account of Kubernetes');
  const namespace = parameters[SERVICE_ACCOUNT_NAMESPACE];
  if (namespace === undefined)
    throw invalid(field(SERVICE_ACCOUNT_NAMESPACE), 'required: COSI does not say in which namespace the account is');
  if (!NAMESPACE.test(namespace)) throw invalid(field(SERVICE_ACCOUNT_NAMESPACE), 'expected the name of a namespace');
  return { namespace, name };
}

/** Of an access with a key. */
export function refuseServiceAccount(parameters: Readonly<Record<string, string>>): void {
  for (const parameter of [SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_NAMESPACE])
    if (parameters[parameter] !== undefined)
      throw invalid(field(parameter), 'must come with a service account as the authentication type');
}
