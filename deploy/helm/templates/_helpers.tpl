{{- define "recurgentd.name" -}}
{{- if contains "recurgentd" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-recurgentd" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "recurgentd.selector" -}}
app.kubernetes.io/name: recurgentd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "recurgentd.labels" -}}
{{ include "recurgentd.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
