import { Gauge, type Registry } from 'prom-client';

/** A scrape must answer while the database hangs. */
const READ_MS = 2_000;

/** What only the database knows, read when Prometheus asks: once a scrape for all gauges over it. */
export class FigureSource<Figures> {
  #read: (() => Promise<Figures>) | undefined;
  #reading: Promise<Figures | undefined> | undefined;

  constructor(private readonly registry: Registry) {}

  /** Its errors leave the gauges out of that scrape. Without it they have no sample. */
  bind(read: () => Promise<Figures>): void {
    this.#read = read;
  }

  gauge(name: string, help: string, pick: (figures: Figures) => number): void {
    this.#add(name, help, [], (gauge, figures) => gauge.set(pick(figures)));
  }

  /** A sample for each value of the label. */
  gauges(
    name: string,
    help: string,
    label: string,
    pick: (figures: Figures) => Readonly<Record<string, number>>,
  ): void {
    this.#add(name, help, [label], (gauge, figures) => {
      for (const [value, figure] of Object.entries(pick(figures))) gauge.set({ [label]: value }, figure);
    });
  }

  #add(name: string, help: string, labelNames: string[], set: (gauge: Gauge, figures: Figures) => void): void {
    const current = (): Promise<Figures | undefined> => this.#current();
    new Gauge({
      name,
      help,
      labelNames,
      registers: [this.registry],
      async collect() {
        const figures = await current();
        // Nothing is better than an old figure: an alert on absence is honest.
        this.reset();
        if (figures) set(this, figures);
        else if (labelNames.length === 0) this.remove();
      },
    });
  }

  /** Undefined when the reading failed or took too long. */
  #current(): Promise<Figures | undefined> {
    const read = this.#read;
    if (!read) return Promise.resolve(undefined);
    this.#reading ??= new Promise<Figures | undefined>(resolve => {
      const timer = setTimeout(() => resolve(undefined), READ_MS);
      read()
        .then(resolve, () => resolve(undefined))
        .finally(() => clearTimeout(timer));
    }).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }
}
