{{/* Begins the name of every object. Of a release that is called like the chart it is that alone. */}}
{{- define "trivet.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* A Deployment's selector can never be changed: these are those of the manifests before there was a chart. */}}
{{- define "trivet.selector" -}}
app.kubernetes.io/name: {{ include "trivet.fullname" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "trivet.labels" -}}
{{ include "trivet.selector" . }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end -}}

{{- define "trivet.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "trivet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "trivet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Where a pod may run: the values of its component. */}}
{{- define "trivet.scheduling" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .values.topologySpread }}
topologySpreadConstraints:
  {{- range .values.topologySpread }}
  - maxSkew: {{ .maxSkew }}
    topologyKey: {{ .topologyKey }}
    whenUnsatisfiable: {{ .whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "trivet.selector" (dict "root" $.root "component" $.component) | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "trivet.httpProbes" -}}
livenessProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{/* Endpoints still send new connections for a moment after a pod was told to end: so long it goes on. */}}
{{- define "trivet.drain" -}}
{{- /* Of a component's own settings first; a connector has no others. */ -}}
{{- $common := eq .component "connector" | ternary dict .root.Values.config -}}
{{- $shutdown := divf (.values.env.TRIVET_SHUTDOWN_MS | default $common.TRIVET_SHUTDOWN_MS | default "10000" | float64) 1000 -}}
{{- if le (.values.terminationGracePeriodSeconds | float64) (addf (.values.drainSeconds | float64) $shutdown) -}}
{{- fail (printf "%s.terminationGracePeriodSeconds: must be above %s.drainSeconds and TRIVET_SHUTDOWN_MS together, which are %v s" .component .component (addf (.values.drainSeconds | float64) $shutdown)) -}}
{{- end -}}
{{- if .values.drainSeconds -}}
lifecycle:
  preStop:
    exec: { command: [sleep, {{ .values.drainSeconds | quote }}] }
{{- end -}}
{{- end -}}

{{/* Settings for every process, from the values that are about what is outside. */}}
{{- define "trivet.settings" -}}
{{- if and .Values.redis.existingSecret .Values.redis.url }}
{{- fail "redis: give the address either in redis.url or in redis.existingSecret; the other one is \"\"" }}
{{- end }}
{{- if not .Values.redis.existingSecret }}
TRIVET_REDIS_URL: {{ required "redis.url: an address, or none" .Values.redis.url }}
{{- end }}
{{- if .Values.rgw.endpoint }}
TRIVET_RGW_ENDPOINT: {{ .Values.rgw.endpoint }}
# Goes into credentials: an address that the users of buckets can reach.
TRIVET_RGW_PUBLIC_ENDPOINT: {{ .Values.rgw.publicEndpoint | default .Values.rgw.endpoint }}
TRIVET_RGW_REGION: {{ .Values.rgw.region }}
{{- end }}
{{- range $name, $value := .Values.config }}
{{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{/* Environment that is a component's own: `env`, and files by `secretFiles`. */}}
{{- define "trivet.ownEnv" -}}
{{- range $name, $value := .values.env }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- range $name, $from := .values.secretFiles }}
- { name: {{ $name }}, value: "/run/trivet-secrets/{{ $name | lower }}" }
{{- end }}
{{- end -}}

{{/* What gateways and workers read of Secrets. */}}
{{- define "trivet.daemonKeys" -}}
- { group: key, key: kek }
- { group: database, key: database-app-url }
- { group: database, key: database-engine-url }
{{- if include "trivet.redisSecret" . }}
- { group: redis, key: redis-url }
{{- end }}
{{- end -}}

{{/* Pods begin anew when what they read at their start has changed. dict: root, values, port. */}}
{{- define "trivet.podAnnotations" -}}
{{ include "trivet.scrape" . | trim }}
trivet.dev/settings: {{ include "trivet.settings" .root | sha256sum | trunc 16 | quote }}
{{- with include "trivet.given" .root }}
trivet.dev/secrets: {{ . | sha256sum | trunc 16 | quote }}
{{- end }}
{{- with .values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* For a Prometheus that goes by annotations; one with an operator has a ServiceMonitor. */}}
{{- define "trivet.scrape" -}}
{{- if and .root.Values.metrics.scrapeAnnotations (not .root.Values.metrics.serviceMonitor.enabled) }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ .port | quote }}
prometheus.io/path: /metrics
{{- end }}
{{- end -}}
