{{/* The stock sidecar of COSI, in the version that the cluster's controller has; it reaches Trivet by the socket in a folder that both share, as the same user. */}}
{{- define "trivet.cosiSidecar" -}}
{{- $values := .Values.cosi.sidecar -}}
{{- $isNew := eq .Values.cosi.version "v1alpha2" -}}
# The stock sidecar of COSI {{ .Values.cosi.version }}. It reaches Trivet by the socket in the folder that both share, as the same user:
# the socket is open to nobody else. Of several pods the one that leads works.
- name: cosi-sidecar
  image: {{ if $isNew }}{{ required "cosi.sidecar.image: name the sidecar of the release that your controller is of; for v1alpha2 there is no default" $values.image }}{{ else }}{{ $values.image | default "registry.k8s.io/sig-storage/objectstorage-sidecar:v0.2.2" }}{{ end }}
  {{- if $isNew }}
  args: ["--leader-elect"{{ range $values.args }}, {{ . | quote }}{{ end }}]
  env:
    - { name: COSI_ENDPOINT, value: "unix:///var/lib/cosi/cosi.sock" }
  {{- else }}
  args: ["--driver-addr=unix:///var/lib/cosi/cosi.sock", "--v=2"{{ range $values.args }}, {{ . | quote }}{{ end }}]
  env:
    - name: POD_NAMESPACE
      valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
  {{- end }}
  resources:
    {{- toYaml $values.resources | nindent 4 }}
  securityContext:
    {{- include "trivet.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - { name: cosi, mountPath: /var/lib/cosi }
{{- end -}}

{{/* The community's sidecar for changed blocks. */}}
{{- define "trivet.snapshotMetadataSidecar" -}}
# Changed blocks for backup software in the cluster. It ends at the first call after what serves it went away, and is started again.
- name: snapshot-metadata
  image: {{ .Values.snapshotMetadata.image }}
  args:
    - "--csi-address=/csi/csi.sock"
    - "--tls-cert=/tls/tls.crt"
    - "--tls-key=/tls/tls.key"
    # The whole of a call, with all that its reader does meanwhile; 10 by default.
    - "--max-streaming-duration-min=60"
    # It asks about six times a call; with 5 and 10, its defaults, calls that follow each other wait for it.
    - "--kube-api-qps=50"
    - "--kube-api-burst=100"
  ports:
    - { name: metadata, containerPort: 50051 }
  resources:
    {{- toYaml .Values.snapshotMetadata.resources | nindent 4 }}
  securityContext:
    {{- include "trivet.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - { name: csi, mountPath: /csi }
    - { name: metadata-tls, mountPath: /tls, readOnly: true }
{{- end -}}

{{- define "trivet.snapshotMetadataVolumes" -}}
- name: csi
  emptyDir: {}
- name: metadata-tls
  secret:
    secretName: {{ .Values.snapshotMetadata.tlsSecretName }}
    defaultMode: 288
    items:
      - { key: tls.crt, path: tls.crt }
      - { key: tls.key, path: tls.key }
{{- end -}}
