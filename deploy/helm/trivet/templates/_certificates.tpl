{{/*
The certificate of a door, by the values of its `tls`. dict: root, tls, setting, name (of its own objects), dnsNames.
existing: nothing is made. certManager: a Certificate. generated: a Secret, for ten years, made once.
*/}}
{{- define "trivet.certificate" -}}
{{- if eq .tls.source "certManager" }}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .tls.secretName }}
  namespace: {{ .root.Release.Namespace }}
spec:
  secretName: {{ .tls.secretName }}
  dnsNames:
    {{- toYaml .dnsNames | nindent 4 }}
  privateKey: { algorithm: ECDSA, size: 256, rotationPolicy: Always }
  issuerRef:
    name: {{ required (printf "%s.issuerRef.name: required with certManager" .setting) .tls.issuerRef.name }}
    kind: {{ .tls.issuerRef.kind }}
    group: {{ .tls.issuerRef.group }}
{{- else if eq .tls.source "generated" }}
{{- $data := include "trivet.generatedCertificate" . | fromYaml }}
apiVersion: v1
kind: Secret
metadata:
  name: {{ .tls.secretName }}
  namespace: {{ .root.Release.Namespace }}
type: kubernetes.io/tls
data:
  tls.crt: {{ index $data "tls.crt" }}
  tls.key: {{ index $data "tls.key" }}
  ca.crt: {{ index $data "ca.crt" }}
{{- end }}
{{- end -}}

{{/* Once a rendering; what is in the cluster stays. */}}
{{- define "trivet.generatedCertificate" -}}
{{- $cache := printf "certificate %s" .tls.secretName -}}
{{- if not (hasKey .root.Values $cache) -}}
{{- $data := dict -}}
{{- if include "trivet.isThere" (dict "root" .root "setting" (printf "%s.source" .setting) "name" .tls.secretName) -}}
{{- $data = (lookup "v1" "Secret" .root.Release.Namespace .tls.secretName).data -}}
{{- else -}}
{{- $ca := genCA "Trivet" 3650 -}}
{{- $made := genSignedCert (first .dnsNames) nil .dnsNames 3650 $ca -}}
{{- $data = dict "tls.crt" (b64enc $made.Cert) "tls.key" (b64enc $made.Key) "ca.crt" (b64enc $ca.Cert) -}}
{{- end -}}
{{- $_ := set .root.Values $cache $data -}}
{{- end -}}
{{- get .root.Values $cache | toYaml -}}
{{- end -}}
