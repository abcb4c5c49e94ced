import { Module } from '@nestjs/common';
import { AlertLog } from '#alerts/alert-log';
import { AlertWatch } from '#alerts/alert-watch';
import { ApplianceTenant } from '#alerts/appliance-tenant';
import { Receivers } from '#alerts/receivers';
import { Sender } from '#alerts/sender';
import { Silences } from '#alerts/silences';
import { OuterAddresses } from '#platform/config/outer-addresses';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { CONFIG } from '#platform/process/platform.module';
import { provide, provideClass } from '#platform/process/providers';

@Module({
  providers: [
    provideClass(ApplianceTenant, Database),
    provide(OuterAddresses, [CONFIG], config => new OuterAddresses(config.TRIVET_ALERT_NETWORKS)),
    provide(
      Sender,
      [CONFIG, Database, SecretBox, ApplianceTenant, OuterAddresses],
      (config, database, secrets, appliance, outer) =>
        new Sender({
          database,
          secrets,
          appliance,
          outer,
          publicUrl: config.TRIVET_PUBLIC_URL,
        }),
    ),
    provideClass(AlertWatch, Database, ApplianceTenant, Sender),
    provideClass(AlertLog, Database),
    provideClass(Receivers, Database, SecretBox, OuterAddresses),
    provideClass(Silences, Database),
  ],
  exports: [ApplianceTenant, Sender, AlertWatch, AlertLog, Receivers, Silences],
})
export class AlertsModule {}
