import { NativeSelect, Textarea, TextInput } from '@mantine/core';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { InputError } from '../api/problem';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { useTenant } from '../shell/tenant';

/** What makes a bucket, and what takes one over that the store has already. */
export function NewBucket() {
  const tenant = useTenant();
  const may = useMay();
  return (
    <>
      {may('operator') && (
        <Act
          primary
          label="Create a bucket"
          title="Create a bucket"
          verb="Create it"
          done="The bucket is being made"
          run={async form => {
            const { name, backend } = placeIn(form);
            const body = { name, backend, parameters: parametersIn(textOf(form, 'parameters') ?? '') };
            await call('POST', '/tenants/{tenant}/buckets/create', { params: { tenant }, body });
            return undefined;
          }}
        >
          <PlaceFields tenant={tenant} name="At the object store as well: small letters, digits, - and ." />
          <Textarea
            name="parameters"
            label="Parameters"
            description="As a bucket class has them, KEY=VALUE, one a line; empty: the defaults"
            placeholder="versioning=true"
            autosize
            minRows={2}
            autoComplete="off"
            spellCheck={false}
          />
        </Act>
      )}
      {may('admin', 'appliance') && (
        <Act
          label="Import"
          title="Import a bucket that exists already"
          explain="The tenant may use it from now on. Trivet never deletes or changes it; deleting it here only lets it go."
          verb="Import it"
          done="The bucket was imported"
          run={async form => {
            await call('POST', '/tenants/{tenant}/buckets', { params: { tenant }, body: placeIn(form) });
            return undefined;
          }}
        >
          <PlaceFields tenant={tenant} name="As the object store has it" />
        </Act>
      )}
    </>
  );
}

function PlaceFields({ tenant, name }: { tenant: string; name: string }) {
  const backends = useRead('/tenants/{tenant}/backends', { params: { tenant }, query: { limit: 200 } });
  // Those of volumes have pools.
  const names = backends.data?.data.items.filter(({ pools }) => pools === null).map(backend => backend.name) ?? [];
  return (
    <>
      <TextInput
        name="name"
        label="Name"
        description={name}
        required
        maxLength={255}
        autoComplete="off"
        data-autofocus
      />
      <NativeSelect name="backend" label="Backend" required data={names} />
    </>
  );
}

const placeIn = (form: FormData) => ({ name: textOf(form, 'name') ?? '', backend: textOf(form, 'backend') });

function parametersIn(text: string): Record<string, string> {
  const lines = text.split('\n').filter(line => line.trim() !== '');
  return Object.fromEntries(
    lines.map(line => {
      const at = line.indexOf('=');
      if (at < 1) throw new InputError('parameters', `expected KEY=VALUE in each line, and not ${line.trim()}`);
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}
