import type { PublicationReply } from '#admin/contract/hosts';
import { call } from '../api/client';
import { InputError } from '../api/problem';
import { Act, textOf } from '../parts/act';
import { Copy } from '../parts/copy';
import { Facts } from '../parts/page';
import { PickField } from '../parts/pick-field';

interface PublishProps {
  tenant: string;
  /** Of what is given nothing is asked. */
  volume?: { id: string; name: string };
  host?: { id: string; name: string };
}

/** Lets a host reach a volume, and says where it finds it. */
export const Publish = ({ tenant, volume, host }: PublishProps) => (
  <Act
    label={volume ? 'Publish to a host' : 'Publish a volume'}
    title={`Publish ${volume?.name ?? 'a volume'} to ${host?.name ?? 'a host'}`}
    explain="Over iSCSI. Drivers do it by themselves when a pod needs its volume; a host of their node must not be given it besides."
    verb="Publish it"
    done="The volume is being published"
    run={async form => {
      const body = { volume: volume?.id ?? picked(form, 'volume'), host: host?.id ?? picked(form, 'host') };
      const { data } = await call('POST', '/tenants/{tenant}/publications', { params: { tenant }, body });
      return data.state === 'applied' ? <Connection publication={data} chap={data.chap} /> : undefined;
    }}
  >
    {!volume && <PickField name="volume" label="Volume" list="volumes" />}
    {!host && <PickField name="host" label="Host" list="hosts" />}
  </Act>
);

function picked(form: FormData, name: string): string {
  const id = textOf(form, name);
  if (id === undefined) throw new InputError(name, `choose a ${name}`);
  return id;
}

/** All that an initiator needs. */
const Connection = ({
  publication: { target, portals, lun, serialNumber },
  chap,
}: {
  publication: PublicationReply;
  chap: { user: string; password: string } | null;
}) => (
  <Facts
    facts={[
      ['Target', <Copy key="target" text={target ?? ''} label="the name of the target" />],
      ['Portals', portals.join(', ')],
      ['LUN', lun],
      ['Serial number', serialNumber],
      ...(chap
        ? ([
            ['CHAP user', chap.user],
            ['CHAP password', <Copy key="password" text={chap.password} label="the password" />],
          ] as const)
        : ([['CHAP', 'none']] as const)),
    ]}
  />
);
