import type { RangeBatch } from '#backends/extent-source';
import type { MessageEncoder } from '#cbt/pump';

/** One JSON object a line (media type application/x-ndjson). */
export const line = (object: object): Buffer => Buffer.from(`${JSON.stringify(object)}\n`);

/**
 * The REST form of a stream:
 *   {"capacity_bytes":N,"block_metadata_type":"VARIABLE_LENGTH"}   first
 *   {"ranges":[[offset,length],...]}                               as many as it takes, none when there is nothing
 *   {"complete":true}                                              last; without it something is missing
 * Like the gRPC messages it refuses ranges that are out of order or out of the volume.
 */
export class LineEncoder implements MessageEncoder {
  private end = 0;

  constructor(private readonly capacityBytes: number) {}

  head(): Buffer {
    return line({ capacity_bytes: this.capacityBytes, block_metadata_type: 'VARIABLE_LENGTH' });
  }

  encode({ offsets, lengths }: RangeBatch, from: number, to: number): Buffer {
    const { capacityBytes } = this;
    let { end } = this;
    let text = '{"ranges":[';
    for (let n = from; n < to; n++) {
      const offset = offsets[n] as number;
      const length = lengths[n] as number;
      if (!(offset >= end && length > 0 && offset + length <= capacityBytes))
        throw new Error(`range ${offset}+${length} after ${end}, of ${capacityBytes} bytes, cannot be sent`);
      end = offset + length;
      text += `${n > from ? ',' : ''}[${offset},${length}]`;
    }
    this.end = end;
    return Buffer.from(`${text}]}\n`);
  }
}

export const complete = (): Buffer => line({ complete: true });
