import { Controller, Get, Header } from '@nestjs/common';
import { problemsHtml } from '#admin/problems/problem-docs';

const NOTHING_ELSE = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** Where `type` of a problem leads to. */
@Controller()
export class DocsController {
  @Get('docs/problems')
  @Header('content-type', 'text/html; charset=utf-8')
  @Header('content-security-policy', NOTHING_ELSE)
  @Header('x-content-type-options', 'nosniff')
  @Header('referrer-policy', 'no-referrer')
  problems(): string {
    return problemsHtml();
  }
}
