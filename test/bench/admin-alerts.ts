import { uuidv7 } from '#platform/uuid';
import type { AdminHouse } from '#test/admin/admin-house';
import { SIGNING_SECRET, WebhookReceiver } from '#test/alerts/webhook-receiver';
import { type BenchOptions, type Figure, median } from '#test/bench/measure';
import { until } from '#test/support/parts';

/** How long it takes from the commit of a state to a webhook: a worker looks, writes and sends. It starts one. */
export async function alertFigures(house: AdminHouse, { quick }: BenchOptions): Promise<Figure[]> {
  const rounds = quick ? 2 : 10;
  const receiver = await WebhookReceiver.start();
  try {
    const target = { kind: 'webhook', url: receiver.url, secret: SIGNING_SECRET };
    const made = await house.call(house.root.admin, 'POST', '/receivers', { body: { name: 'bench', target } });
    if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    await house.appliance.worker();
    const told = async (mark: string): Promise<number> => {
      await park(house, mark);
      const committed = Date.now();
      const heard = await until(`${mark} is told`, () =>
        receiver.received.find(({ body }) => body.event === 'opened' && body.alert.object.endsWith(`/${mark}`)),
      );
      return heard.at - committed;
    };
    // The first look of a worker that has just begun is no measure.
    await told('warm-up');
    const latencies: number[] = [];
    for (let n = 0; n < rounds; n++) latencies.push(await told(`bench-${n}`));
    const worst = Math.max(...latencies);
    return [
      {
        name: 'an alert from its state to a webhook, median',
        value: `${median(latencies).toFixed(0)} ms (slowest ${worst.toFixed(0)} ms)`,
        limit: '< 5,000 ms, each',
        baseline: '',
        ok: worst < 5_000,
      },
    ];
  } finally {
    await receiver.close();
  }
}

const park = (house: AdminHouse, error: string) =>
  house.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, error)
     VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $4, $5, '{}', 'needs_attention', $6)`,
    [
      house.acme.id,
      uuidv7(),
      house.acme.backends.fake,
      uuidv7(),
      error,
      JSON.stringify({ kind: error, message: error, retry: 'person' }),
    ],
  );
