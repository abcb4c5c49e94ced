import type { Handler, Writer } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import type { Tx, Write } from '#platform/database/database';

/** What a process that runs no operations knows of them. */
export interface OperationKind {
  kind: string;
  /** In their order. */
  steps: readonly string[];
  /** A person may stop it: it undoes what it did. */
  undoable: boolean;
  /** What becomes of the resource when a person gives the operation up. */
  leaves: string;
  /** The writes that give it up, for this transaction; `progress.failure` says why. No backend is asked. */
  giveUp(tx: Tx, operation: LeasedOperation): Promise<Write[]>;
}

const AS_BEFORE =
  'it is as if the call had never come; what the operation made at the backend stays there, and the audit reports it';

/** Handlers say it themselves, and none of this calls a backend: a gateway makes them over directories that it never opens. */
export class OperationKinds {
  private readonly kinds: ReadonlyMap<string, OperationKind>;

  constructor(handlers: readonly Handler[]) {
    this.kinds = new Map(handlers.map(handler => [handler.kind, describe(handler)]));
  }

  get(kind: string): OperationKind | undefined {
    return this.kinds.get(kind);
  }

  /** All, or those whose name is this or begins with it and a dot. */
  named(prefix?: string): string[] {
    const names = [...this.kinds.keys()].sort();
    return prefix === undefined ? names : names.filter(name => name === prefix || name.startsWith(`${prefix}.`));
  }

  undoable(): string[] {
    return [...this.kinds.values()].filter(({ undoable }) => undoable).map(({ kind }) => kind);
  }
}

const describe = (handler: Handler): OperationKind => ({
  kind: handler.kind,
  steps: handler.steps.map(({ name }) => name),
  undoable: handler.undo !== undefined,
  leaves: handler.giveUp?.leaves ?? AS_BEFORE,
  async giveUp(tx, operation) {
    const writes: Write[] = [];
    const writer: Writer = { write: (...item) => writes.push(item) };
    if (handler.giveUp?.write) handler.giveUp.write(writer, operation);
    else if (handler.fail) handler.fail(writer, operation, await handler.begin?.(tx, operation));
    else throw new Error(`${handler.kind} does not say what becomes of its resource when a person gives it up`);
    return writes;
  },
});
