import { Button, Group } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useSay } from './toasts';

/** Lines to take along: by the clipboard, which is there over TLS and on localhost only, as a file, or selected. */
export function Yaml({ text, name }: { text: string; name: string }) {
  const say = useSay();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (): void =>
    void navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => say('The browser refused the clipboard: save it, or select it and copy that.'),
    );
  const save = (): void => {
    const url = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = `${name}.yaml`;
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <div>
      <Group gap="xs" mb="xs">
        {navigator.clipboard && (
          <Button size="compact-xs" variant="default" onClick={copy}>
            {copied ? 'Copied' : `Copy ${name}`}
          </Button>
        )}
        <Button size="compact-xs" variant="default" onClick={save}>
          Save {name}.yaml
        </Button>
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also for who has no mouse */}
      <section className="yaml" aria-label={`${name}.yaml`} tabIndex={0}>
        <pre className="json">{text}</pre>
      </section>
    </div>
  );
}
