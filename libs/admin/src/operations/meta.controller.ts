import { Controller } from '@nestjs/common';
import { metaRoutes } from '#admin/contract/meta';
import { openApiDocument } from '#admin/openapi/document';
import { Serves } from '#admin/requests/serves';

/** What the API says of itself. It holds nothing that its repository does not. */
@Controller()
export class MetaController {
  private document: Record<string, unknown> | undefined;

  @Serves(metaRoutes.openApi)
  openApi(): Record<string, unknown> {
    this.document ??= openApiDocument();
    return this.document;
  }
}
