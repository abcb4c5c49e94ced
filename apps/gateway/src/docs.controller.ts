import { gzipSync } from 'node:zlib';
import { Controller, Get, Header, Headers, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { openApiDocument } from '#admin/openapi/document';
import { REFERENCE_POLICY, referenceHtml } from '#admin/openapi/reference-html';
import { problemsHtml } from '#admin/problems/problem-docs';

const NOTHING_ELSE = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** Pages for people who write programs against the API: without scripts, and without anything from elsewhere. */
@Controller()
export class DocsController {
  private reference: { plain: Buffer; packed: Buffer } | undefined;

  /** The reference of the API. */
  @Get('docs')
  @Header('content-type', 'text/html; charset=utf-8')
  @Header('content-security-policy', REFERENCE_POLICY)
  @Header('x-content-type-options', 'nosniff')
  @Header('referrer-policy', 'no-referrer')
  @Header('vary', 'accept-encoding')
  api(@Headers('accept-encoding') accepted = '', @Res({ passthrough: true }) reply: FastifyReply): Buffer {
    const { plain, packed } = this.made();
    if (!/\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(accepted)) return plain;
    reply.header('content-encoding', 'gzip');
    return packed;
  }

  /** Where `type` of a problem leads to. */
  @Get('docs/problems')
  @Header('content-type', 'text/html; charset=utf-8')
  @Header('content-security-policy', NOTHING_ELSE)
  @Header('x-content-type-options', 'nosniff')
  @Header('referrer-policy', 'no-referrer')
  problems(): string {
    return problemsHtml();
  }

  /** For the first who asks. */
  private made(): { plain: Buffer; packed: Buffer } {
    if (!this.reference) {
      const plain = Buffer.from(referenceHtml(openApiDocument()));
      this.reference = { plain, packed: gzipSync(plain) };
    }
    return this.reference;
  }
}
