const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export const escaped = (text: string): string => text.replace(/[&<>"]/g, character => ENTITIES[character]!);

/** What stands between backticks as code. */
export const inline = (text: string): string => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>');
