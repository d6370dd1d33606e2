{{- define "assay.fullname" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) }}
{{- $name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "assay.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "assay.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "assay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "assay.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "assay.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "assay.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "assay.secret" -}}
{{ .Values.secrets.existingSecret | default (include "assay.fullname" .) }}
{{- end }}

{{- /* Name under which each node reaches any other. */}}
{{- define "assay.nodesHost" -}}
{{ include "assay.fullname" . }}-nodes.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "assay.scheme" -}}
{{ ternary "HTTPS" "HTTP" (not (empty .Values.tls.existingSecret)) }}
{{- end }}

{{- define "assay.publicUrl" -}}
{{- if .Values.publicUrl }}{{ .Values.publicUrl }}
{{- else if .Values.ingress.enabled }}{{ ternary "https" "http" (not (empty .Values.ingress.tlsSecret)) }}://{{ .Values.ingress.host }}
{{- else }}{{ include "assay.scheme" . | lower }}://{{ include "assay.fullname" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}
{{- end }}
{{- end }}

{{- /* Environment of the program, for `serve`, for `cluster prepare` and for commands by kubectl exec. */}}
{{- define "assay.environment" -}}
- name: POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: ASSAY_STORE_DATA_DIR
  # Below the volume: its root belongs to another user, and holds more than a node's files.
  value: /var/lib/assay/node
- name: ASSAY_STORE_CREATE_IF_MISSING
  # `cluster prepare` has prepared the directory.
  value: "false"
- name: ASSAY_HTTP_LISTEN
  value: {{ printf "%s:8000" .Values.listenHost | quote }}
- name: ASSAY_CLUSTER_PEER_ADDRESS
  value: "$(POD_NAME).{{ include "assay.nodesHost" . }}:7400"
- name: ASSAY_CLUSTER_PEER_LISTEN
  value: {{ printf "%s:7400" .Values.listenHost | quote }}
- name: ASSAY_ADMIN_LISTEN
  value: {{ printf "%s:8001" .Values.listenHost | quote }}
- name: ASSAY_ADMIN_TLS_CERTIFICATES
  value: /etc/assay/admin/admin-tls.crt
- name: ASSAY_ADMIN_TLS_PRIVATE_KEY
  value: /etc/assay/admin/admin-tls.key
- name: ASSAY_ADMIN_URL
  value: https://{{ include "assay.nodesHost" . }}:8001
- name: ASSAY_ADMIN_CA
  value: /etc/assay/admin/admin-ca.crt
- name: ASSAY_ADMIN_TOKEN
  valueFrom: { secretKeyRef: { name: {{ include "assay.secret" . }}, key: admin-token } }
- name: ASSAY_API_KEY
  valueFrom: { secretKeyRef: { name: {{ include "assay.secret" . }}, key: api-key } }
- name: ASSAY_MASTER_KEY
  valueFrom: { secretKeyRef: { name: {{ include "assay.secret" . }}, key: master-key } }
- name: ASSAY_HTTP_PUBLIC_URL
  value: {{ include "assay.publicUrl" . | quote }}
{{- if .Values.tls.existingSecret }}
- name: ASSAY_HTTP_TLS_CERTIFICATES
  value: /etc/assay/tls/tls.crt
- name: ASSAY_HTTP_TLS_PRIVATE_KEY
  value: /etc/assay/tls/tls.key
{{- end }}
{{- if .Values.metrics.enabled }}
- name: ASSAY_HTTP_METRICS_LISTEN
  value: {{ printf "%s:9100" .Values.listenHost | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: ASSAY_{{ $name | replace "." "_" | upper }}
  value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "assay.mounts" -}}
- { name: data, mountPath: /var/lib/assay }
- { name: admin, mountPath: /etc/assay/admin, readOnly: true }
{{- if .Values.tls.existingSecret }}
- { name: tls, mountPath: /etc/assay/tls, readOnly: true }
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "assay.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: ["ALL"] }
{{- end }}
