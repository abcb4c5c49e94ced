/**
 * Puts faults before the methods of a block port, and every call into the fake's log. What is behind it is real: only
 * when an answer comes, and whether, is the fake's.
 */
import { randomUUID } from 'node:crypto';
import { isStorageError, StorageError } from '#platform/errors';
import { type Fault, faultError, hang, pause, takeFault, timedOut } from '#test/fakes/object/fake-faults';
import { logCall } from '#test/fakes/object/fake-object-backend';
import type { FakeState } from '#test/fakes/object/fake-state';

/** A call as data: kept back by a `late` fault, and made long after its caller was told `timeout`. */
export interface LateCall {
  port: 'volumes' | 'exporter';
  method: string;
  /** Without the signal. */
  args: unknown[];
}

export interface FaultyMethod {
  /** By which faults and the log know it. */
  resource: (...args: never[]) => string;
  /** What it did, for the log; `changed` without. */
  outcome?: (...args: never[]) => Promise<{ after(): Promise<string> }>;
}

export interface FaultyPort {
  port: LateCall['port'];
  state: FakeState;
  /** Called with what a `late` fault keeps back. */
  keepBack(call: string, late: LateCall, resource: string, fault: Fault): void;
}

type AnyMethod = (...args: unknown[]) => Promise<unknown>;

export function withFaults(
  { port, state, keepBack }: FaultyPort,
  inner: object,
  methods: Readonly<Record<string, FaultyMethod>>,
): Record<string, AnyMethod> {
  const wrapped: Record<string, AnyMethod> = {};
  for (const [name, { resource, outcome }] of Object.entries(methods)) {
    const method = (inner as Record<string, AnyMethod>)[name]!.bind(inner);
    const label = port === 'exporter' && name === 'health' ? 'exporter.health' : name;
    wrapped[name] = async (...all) => {
      const args = all.slice(0, -1);
      const signal = all.at(-1) as AbortSignal;
      const call = { call: randomUUID(), method: label, resource: resource(...(args as never[])) };
      if (signal.aborted) throw timedOut(label);
      const fault = state.write(() => {
        logCall(state, call, 'begin', null);
        return takeFault(state, label, call.resource);
      });
      const answer = async () => {
        if (fault?.mode === 'fail-before') throw refusalOf(label, fault);
        if (fault?.mode === 'hang') return hang(label, signal);
        if (fault?.mode === 'late') {
          keepBack(call.call, { port, method: name, args }, call.resource, fault);
          throw timedOut(label);
        }
        if (fault?.mode === 'delay') await pause(fault.delay_ms ?? 0, label, signal);
        const before = await outcome?.(...(args as never[]));
        const result = await method(...all);
        logCall(state, call, 'effect', (await before?.after()) ?? 'changed');
        if (fault?.mode === 'fail-after') throw refusalOf(label, fault);
        if (fault?.mode === 'hang-after') return hang(label, signal);
        return result;
      };
      try {
        const result = await answer();
        logCall(state, call, 'end', 'ok');
        return result;
      } catch (error) {
        logCall(state, call, 'end', isStorageError(error) ? error.kind : 'defect');
        throw error;
      }
    };
  }
  return wrapped;
}

/** JSON with bigints. */
export const encodeCall = (call: LateCall): string =>
  JSON.stringify(call, (_, value) => (typeof value === 'bigint' ? { $bigint: String(value) } : value));

export const decodeCall = (text: string): LateCall =>
  JSON.parse(text, (_, value) => (typeof value?.$bigint === 'string' ? BigInt(value.$bigint) : value));

/** The one refusal of a state that applyTarget's contract knows is that of a missing image. */
function refusalOf(method: string, fault: Fault): StorageError {
  const error = faultError(fault);
  if (method !== 'applyTarget' || error.kind !== 'failed_precondition') return error;
  return new StorageError(error.kind, error.message, { field: 'image' });
}
