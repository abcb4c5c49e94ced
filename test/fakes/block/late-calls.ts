import type { ApplianceIdentity } from '#backends/object-backend';
import { isStorageError } from '#platform/errors';
import { unleased } from '#platform/lease-signal';
import { decodeCall, encodeCall, type LateCall } from '#test/fakes/block/faulty-port';
import { type FakeBlockConfig, openUnfaulted } from '#test/fakes/block/unfaulted-store';
import type { Fault } from '#test/fakes/object/fake-faults';
import { logCall } from '#test/fakes/object/fake-object-backend';
import type { FakeState } from '#test/fakes/object/fake-state';

const DELIVERY_MS = 60_000;

interface Kept {
  call: string;
  method: string;
  resource: string;
  effect: string;
}

/** Where a call goes that was kept back: any process can deliver it, when its own sender is long dead. */
interface Destination {
  config: FakeBlockConfig;
  owner: ApplianceIdentity;
}

/** Calls that were sent, timed out, and are still on their way. */
export class LateCalls {
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #destination: string;

  constructor(
    private readonly state: FakeState,
    config: FakeBlockConfig,
    owner: ApplianceIdentity,
  ) {
    this.#destination = JSON.stringify({ config, owner } satisfies Destination);
  }

  keep(call: string, late: LateCall, resource: string, fault: Fault): void {
    const effect = JSON.stringify([this.#destination, encodeCall(late)]);
    const row = this.state.get<{ id: number }>(
      'INSERT INTO late_effects (call, method, resource, effect) VALUES (?, ?, ?, ?) RETURNING id',
      call,
      late.method,
      resource,
      effect,
    );
    if (fault.delay_ms === null) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void deliverLateCall(this.state, row!.id);
    }, fault.delay_ms);
    this.#timers.add(timer);
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

/**
 * Makes a call that was kept back, exactly as it was sent, its old fence included. Resolves to what came of it: ok, the
 * error's kind, or undefined when it was delivered before.
 */
export async function deliverLateCall(state: FakeState, id: number): Promise<string | undefined> {
  const late = state.get<Kept>(
    'UPDATE late_effects SET delivered = 1 WHERE id = ? AND delivered = 0 RETURNING call, method, resource, effect',
    id,
  );
  if (!late) return undefined;
  const [destination, text] = JSON.parse(late.effect) as [string, string];
  const { config, owner } = JSON.parse(destination) as Destination;
  const { port, method, args } = decodeCall(text);
  const store = openUnfaulted(state, config, owner);
  let outcome = 'ok';
  try {
    const target = store[port] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    // What is on its way is past every check of the lease.
    await target[method]!(...args, unleased(AbortSignal.timeout(DELIVERY_MS)));
  } catch (error) {
    outcome = isStorageError(error) ? error.kind : 'defect';
  }
  logCall(state, late, 'effect', `late ${outcome}`);
  return outcome;
}
