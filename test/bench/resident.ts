import { readFileSync } from 'node:fs';
import { median } from '#test/bench/measure';
import type { DaemonProcess } from '#test/support/appliance';

/** One collection of garbage less or more is not the figure. */
const SMOOTHED = 5;

/** MiB; VmHWM is the highest since /proc/PID/clear_refs got a 5. */
export const residentMiB = (pid: number, field: 'VmRSS' | 'VmHWM' = 'VmRSS'): number =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

/** User and system time of all threads, and of children that have ended; a tick is 10 ms. */
export function cpuMs(pid: number, { ended = false } = {}): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const own = Number(fields[11]) + Number(fields[12]);
  return (own + (ended ? Number(fields[13]) + Number(fields[14]) : 0)) * 10;
}

/** What a process keeps in memory, sampled each second until `stop`: before a load, under it, and afterwards. */
export class Resident {
  /** MiB, one a second. */
  readonly samples: number[] = [];
  /** Of the last seconds before the load. */
  before = 0;
  /** Per cent of a core, under the load. */
  busy = 0;
  private begun = { sample: 0, cpu: 0, at: 0 };
  private ended = 0;
  private readonly timer: NodeJS.Timeout;

  constructor(readonly process: DaemonProcess) {
    this.sample();
    this.timer = setInterval(() => this.sample(), 1_000);
  }

  begin(): void {
    this.before = this.now();
    this.begun = { sample: this.samples.length, cpu: cpuMs(this.process.pid), at: performance.now() };
  }

  end(): void {
    const { cpu, at } = this.begun;
    this.busy = ((cpuMs(this.process.pid) - cpu) / (performance.now() - at)) * 100;
    this.ended = this.samples.length;
  }

  /** Of the last seconds. */
  now(): number {
    return median(this.samples.slice(-SMOOTHED));
  }

  /** The highest that held for some seconds, in a part of the load: 0 is its begin, 1 its end. */
  highest(from = 0, to = 1): number {
    const under = this.samples.slice(this.begun.sample, this.ended);
    const part = under.slice(Math.floor(from * under.length), Math.ceil(to * under.length));
    const last = Math.max(1, part.length - SMOOTHED + 1);
    return Math.max(...Array.from({ length: last }, (_, at) => median(part.slice(at, at + SMOOTHED))));
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private sample(): void {
    if (this.process.exited) throw new Error(`${this.process.role} ended:\n${this.process.log().slice(-4_000)}`);
    this.samples.push(residentMiB(this.process.pid));
  }
}
