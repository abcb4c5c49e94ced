/** What is measured at each size. */
export interface Measured {
  name: string;
  /** Before each run, and not measured. */
  before?(): Promise<void>;
  run(): Promise<unknown>;
}
