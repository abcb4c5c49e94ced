import { describe } from 'vitest';
import { describeExporter } from '#backends/conformance/exporter.conformance';
import { describeExporterLife } from '#backends/conformance/exporter-life.conformance';
import { hasTgtRbd, openRbdTgtHarness } from '#test/exporter/rbd-images';

describe.skipIf(!hasTgtRbd())('tgt on Ceph', () => {
  describeExporter('tgt on images of Ceph', () => openRbdTgtHarness());
  describeExporterLife('tgt on images of Ceph', () => openRbdTgtHarness());
});
