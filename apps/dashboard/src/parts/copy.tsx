import { UnstyledButton } from '@mantine/core';
import { useEffect, useState } from 'react';

/** Text to take along; the clipboard is there over TLS and on localhost only, so it can be selected as well. */
export function Copy({ text, label, short }: { text: string; label: string; short?: boolean }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <span className="copy">
      <code title={text}>{short ? `${text.slice(0, 8)}…${text.slice(-4)}` : text}</code>
      {navigator.clipboard && (
        <UnstyledButton
          className="copy-button"
          aria-label={`Copy ${label}`}
          onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
        >
          {copied ? 'copied' : 'copy'}
        </UnstyledButton>
      )}
    </span>
  );
}
