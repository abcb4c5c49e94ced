import { Button } from '@mantine/core';
import { useMay } from '../api/me';
import { Act } from '../parts/act';
import { purge } from './empty-bin';

/** Names by ids. */
export type Chosen = ReadonlyMap<string, string>;

/** Those that were chosen in the recycle bin, also on pages before, for good. */
export function PurgeChosen({
  tenant,
  chosen,
  choose,
}: {
  tenant: string;
  chosen: Chosen;
  choose: (to: Chosen) => void;
}) {
  const may = useMay();
  if (!may('admin')) return null;
  const run = async (): Promise<undefined> => {
    const left = new Map(chosen);
    try {
      for (const id of chosen.keys()) {
        await purge(tenant, id);
        left.delete(id);
      }
    } finally {
      choose(left);
    }
  };
  return (
    <>
      {chosen.size > 0 && (
        <Button size="xs" variant="subtle" onClick={() => choose(new Map())}>
          Choose none
        </Button>
      )}
      <Act
        danger
        disabled={chosen.size === 0}
        label={chosen.size === 0 ? 'Delete chosen for good' : `Delete ${chosen.size} for good`}
        title={`Delete ${chosen.size} of the recycle bin of ${tenant} for good`}
        explain={`The data of ${[...chosen.values()].join(', ')} are gone then. Nothing brings them back.`}
        confirmName={tenant}
        done="The chosen volumes are being deleted"
        run={run}
      />
    </>
  );
}
