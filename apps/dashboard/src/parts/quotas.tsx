import { TextInput } from '@mantine/core';
import type { QuotaKey } from '#admin/contract/tenants';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { InputError } from '../api/problem';
import { useRead } from '../api/read';
import type { ReadOf } from '../api/routes';
import { Act, textOf, useFieldErrors } from './act';
import { shareOf, showBytes, showCount, showPercent } from './amounts';
import { Meter } from './charts';
import { Loaded, Section } from './page';
import { SizeInput, sizeOf } from './size-input';

type Quotas = ReadOf<'/tenants/{tenant}/quotas'>;
const PATH = '/tenants/{tenant}/quotas';

/** In the order in which they are shown. */
const KEYS: Readonly<Record<QuotaKey, { name: string; bytes?: true }>> = {
  volumes: { name: 'Volumes' },
  volume_bytes: { name: 'Bytes of volumes', bytes: true },
  snapshots: { name: 'Snapshots' },
  buckets: { name: 'Buckets' },
  bucket_bytes: { name: 'Bytes in buckets', bytes: true },
  operations: { name: 'Operations under way' },
  streams: { name: 'Streams' },
};
const keys = Object.keys(KEYS) as QuotaKey[];
const EVERY_MS = 15_000;

export function QuotaSection({ tenant }: { tenant: string }) {
  const may = useMay();
  const read = useRead(PATH, { params: { tenant } }, { every: EVERY_MS });
  const data = read.data?.data;
  return (
    <Section
      title="Quotas"
      actions={
        data && may('admin', 'appliance') ? (
          <SetQuotas tenant={tenant} quotas={data} etag={read.data?.etag ?? null} />
        ) : undefined
      }
    >
      <Loaded read={{ ...read, data }}>
        {quotas => (
          <div className="wide-cards">
            {keys.map(key => (
              <Quota key={key} name={KEYS[key].name} bytes={KEYS[key].bytes === true} {...quotas[key]} />
            ))}
          </div>
        )}
      </Loaded>
    </Section>
  );
}

function Quota({ name, bytes, limit, used }: { name: string; bytes: boolean; limit: string | null; used: string }) {
  const show = bytes ? showBytes : showCount;
  if (limit === null)
    return (
      <div>
        <div>{name}</div>
        <div className="meter-text">{show(used)}, no limit</div>
      </div>
    );
  // Nothing is allowed: then it is full, whatever there is.
  const share = limit === '0' ? 1 : shareOf(used, limit);
  return (
    <div>
      <div>{name}</div>
      <Meter share={share} label={`Quota of ${name.toLowerCase()}`}>
        {show(used)} of {show(limit)}, {showPercent(share)}
      </Meter>
    </div>
  );
}

const SetQuotas = ({ tenant, quotas, etag }: { tenant: string; quotas: Quotas; etag: string | null }) => (
  <Act
    label="Set quotas"
    title={`Quotas of ${tenant}`}
    verb="Save"
    explain="Empty: no limit. A limit below what there is stops new ones and removes nothing."
    done="The quotas were set"
    run={async form => {
      const body: Partial<Record<QuotaKey, string | null>> = {};
      for (const key of keys) {
        const limit = KEYS[key].bytes ? (sizeOf(form, key) ?? null) : countOf(form, key);
        if (limit !== quotas[key].limit) body[key] = limit;
      }
      await call('PATCH', PATH, { params: { tenant }, body }, { etag });
      return undefined;
    }}
  >
    {keys.map(key =>
      KEYS[key].bytes ? (
        <SizeInput key={key} name={key} label={KEYS[key].name} defaultValue={quotas[key].limit ?? ''} />
      ) : (
        <CountInput key={key} name={key} label={KEYS[key].name} defaultValue={quotas[key].limit ?? ''} />
      ),
    )}
  </Act>
);

function CountInput({ name, label, defaultValue }: { name: string; label: string; defaultValue: string }) {
  const error = useFieldErrors(`/${name}`);
  return <TextInput name={name} label={label} defaultValue={defaultValue} error={error} autoComplete="off" />;
}

/** null: it is empty, so there is no limit. */
function countOf(form: FormData, name: string): string | null {
  const text = textOf(form, name);
  if (text === undefined) return null;
  if (!/^\d{1,19}$/.test(text)) throw new InputError(name, `"${text}" is no whole number: write digits, 0 or more`);
  return text;
}
