{{/* Secrets: one that is there for all, one that is there for a group, or one that the chart makes. */}}

{{- define "trivet.givenSecret" -}}{{ include "trivet.fullname" . }}-given{{- end -}}
{{- define "trivet.generatedSecret" -}}{{ include "trivet.fullname" . }}-generated{{- end -}}

{{/* Of the key-encryption key and the first passwords. */}}
{{- define "trivet.keySecret" -}}
{{- .Values.existingSecret | default (include "trivet.generatedSecret" .) -}}
{{- end -}}

{{- define "trivet.databaseSecret" -}}
{{- .Values.database.existingSecret | default .Values.existingSecret | default (include "trivet.givenSecret" .) -}}
{{- end -}}

{{- define "trivet.rgwSecret" -}}
{{- .Values.rgw.existingSecret | default .Values.existingSecret | default (include "trivet.givenSecret" .) -}}
{{- end -}}

{{/* Empty: redis.url has no secret in it. */}}
{{- define "trivet.redisSecret" -}}{{ .Values.redis.existingSecret }}{{- end -}}

{{/* What of the values is secret, as YAML; empty when Secrets that are there have everything. */}}
{{- define "trivet.given" -}}
{{- $database := .Values.database.existingSecret | default .Values.existingSecret -}}
{{- $inline := or .Values.database.ownerUrl .Values.database.appUrl .Values.database.engineUrl -}}
{{- if and $database $inline -}}
{{- fail (printf "database: give the addresses either here or in the Secret %s, not in both (existingSecret, database.existingSecret)" $database) -}}
{{- end -}}
{{- $rgw := .Values.rgw.existingSecret | default .Values.existingSecret -}}
{{- if and $rgw (or .Values.rgw.accessKey .Values.rgw.secretKey) -}}
{{- fail (printf "rgw: give the keys either here or in the Secret %s, not in both (existingSecret, rgw.existingSecret)" $rgw) -}}
{{- end -}}
{{- if not $database }}
database-owner-url: {{ required "database.ownerUrl: required without a Secret that has it" .Values.database.ownerUrl | quote }}
database-app-url: {{ required "database.appUrl: required without a Secret that has it" .Values.database.appUrl | quote }}
database-engine-url: {{ required "database.engineUrl: required without a Secret that has it" .Values.database.engineUrl | quote }}
{{- end }}
{{- if and .Values.rgw.endpoint (not $rgw) }}
rgw-access-key: {{ required "rgw.accessKey: required without a Secret that has it" .Values.rgw.accessKey | quote }}
rgw-secret-key: {{ required "rgw.secretKey: required without a Secret that has it" .Values.rgw.secretKey | quote }}
{{- end }}
{{- end -}}

{{/*
Whether a Secret is in the cluster. What is made at random must be made once: without a cluster to look at nobody can know.
A namespace that every cluster has tells the two apart.
*/}}
{{- define "trivet.isThere" -}}
{{- if lookup "v1" "Secret" .root.Release.Namespace .name -}}
yes
{{- else if not (lookup "v1" "Namespace" "" "kube-system") -}}
{{- fail (printf "%s: the chart makes the Secret %s once, for which it has to look into the cluster; `helm template`, and what renders like it (Argo CD), cannot. Make that Secret yourself there (for a certificate: source existing)" .setting .name) -}}
{{- end -}}
{{- end -}}

{{/* The volume `secrets`: files by which Trivet reads `keys`. dict: root, values (for secretFiles), keys (each with its group), and
where the given ones are called otherwise, given. */}}
{{- define "trivet.secretsVolume" -}}
{{- $root := .root -}}
{{- $given := .given -}}
{{- $bySecret := dict -}}
{{- range .keys -}}
{{- $secret := include (printf "trivet.%sSecret" .group) $root -}}
{{- if and $given (eq $secret (include "trivet.givenSecret" $root)) }}{{ $secret = $given }}{{ end -}}
{{- $_ := set $bySecret $secret (append (get $bySecret $secret | default list) (dict "key" .key "path" .key)) -}}
{{- end -}}
{{- range $name, $from := .values.secretFiles -}}
{{- $_ := set $bySecret $from.secretName (append (get $bySecret $from.secretName | default list) (dict "key" $from.key "path" (lower $name))) -}}
{{- end -}}
- name: secrets
  projected:
    # 0440: root owns the files, and this user reads them by its group.
    defaultMode: 288
    sources:
      {{- range $secret, $items := $bySecret }}
      - secret:
          name: {{ $secret }}
          items:
            {{- range $items }}
            - { key: {{ .key }}, path: {{ .path }} }
            {{- end }}
      {{- end }}
{{- end -}}

{{- define "trivet.tlsVolume" -}}
# A renewed one is taken over within 30 s of its arrival here.
- name: tls
  secret:
    secretName: {{ .secretName }}
    defaultMode: 288
    items:
      - { key: tls.crt, path: tls.crt }
      - { key: tls.key, path: tls.key }
      - { key: ca.crt, path: ca.crt }
{{- end -}}
