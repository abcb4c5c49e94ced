import { humanBytes } from '../human-bytes.js';

const REDRAW_MS = 200;
const LINE_MS = 10_000;
const WIDTH = 24;

interface Terminal {
  isTTY?: boolean;
  write(text: string): unknown;
}

/** How far a pass over an image is: a bar that is drawn over on a terminal, a line from time to time elsewhere. */
export class Progress {
  #drawnAt = 0;
  #isDrawn = false;
  readonly #began = performance.now();

  constructor(
    private readonly what: string,
    private readonly output: Terminal = process.stderr,
  ) {
    this.#drawnAt = output.isTTY ? Number.NEGATIVE_INFINITY : this.#began;
  }

  /** @param at bytes of the image that are behind us @param moved bytes that had to be moved so far */
  show(at: number, total: number, moved: number): void {
    const now = performance.now();
    const { isTTY } = this.output;
    if (now - this.#drawnAt < (isTTY ? REDRAW_MS : LINE_MS)) return;
    this.#drawnAt = now;
    const share = total === 0 ? 1 : Math.min(1, at / total);
    const speed = humanBytes(Math.round(moved / Math.max(0.001, (now - this.#began) / 1000)));
    const figures = `${(share * 100).toFixed(0).padStart(3)} %  ${humanBytes(moved)}, ${speed}/s`;
    if (!isTTY) {
      this.output.write(`${this.what}: ${figures.trim()}\n`);
      return;
    }
    const filled = Math.round(share * WIDTH);
    this.output.write(`\r\u001b[K${this.what} [${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${figures}`);
    this.#isDrawn = true;
  }

  /** Of what happens meanwhile. */
  tell(line: string): void {
    this.end();
    this.output.write(`${line}\n`);
  }

  /** Leaves a clean line. */
  end(): void {
    if (this.#isDrawn) this.output.write('\r\u001b[K');
    this.#isDrawn = false;
  }
}
