{{- define "switchback.labels" -}}
{{ include "switchback.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "switchback.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The port of an address such as 0.0.0.0:8080. */}}
{{- define "switchback.port" -}}
{{ regexFind "[0-9]+$" . }}
{{- end }}
