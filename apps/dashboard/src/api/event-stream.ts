/** One message of a stream of server-sent events. */
export interface StreamMessage {
  id: string | null;
  event: string;
  data: string;
}

/** Splits text as it comes into messages (HTML standard, 9.2.6). Comments are heartbeats and give nothing. */
export class StreamParser {
  private rest = '';
  private id: string | null = null;
  private event = '';
  private data: string[] = [];

  *push(text: string): Generator<StreamMessage> {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') {
        if (this.data.length > 0 || this.event !== '')
          yield { id: this.id, event: this.event || 'message', data: this.data.join('\n') };
        this.event = '';
        this.data = [];
        continue;
      }
      const colon = line.indexOf(':');
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'id') this.id = value;
      else if (field === 'event') this.event = value;
      else if (field === 'data') this.data.push(value);
    }
  }
}
