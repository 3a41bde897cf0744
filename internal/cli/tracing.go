package cli

import (
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// resolveTraces decides whether and how traces are sent, by the variables of the OpenTelemetry specification. Its SDK
// reads the remaining ones.
func (o *Options) resolveTraces(env func(string) (string, bool)) error {
	value := func(name string) string { v, _ := env(name); return strings.TrimSpace(v) }
	// The endpoint for traces overrides the one for all signals.
	name, endpoint := "otlp-endpoint", o.OTLPEndpoint
	if e := value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); e != "" {
		name, endpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", e
	}
	exporter := value("OTEL_TRACES_EXPORTER")
	if endpoint == "" || exporter == "none" || strings.EqualFold(value("OTEL_SDK_DISABLED"), "true") {
		return nil
	}
	if exporter != "" && exporter != "otlp" {
		return &settingError{Name: "OTEL_TRACES_EXPORTER", Reason: strconv.Quote(exporter) +
			" is neither otlp nor none"}
	}
	if err := app.CheckURL(name, endpoint); err != nil {
		return asSetting(err)
	}
	to := telemetry.DefaultTraceOptions()
	if name == "otlp-endpoint" {
		to.Endpoint = endpoint // the SDK reads the other variable itself
	}
	name, to.Protocol = "otlp-protocol", o.OTLPProtocol
	if p := value("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"); p != "" {
		name, to.Protocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", p
	}
	if to.Protocol != telemetry.ProtocolHTTP && to.Protocol != telemetry.ProtocolGRPC {
		return &settingError{Name: name, Reason: strconv.Quote(to.Protocol) + " is neither " + telemetry.ProtocolHTTP +
			" nor " + telemetry.ProtocolGRPC}
	}
	if n, err := strconv.Atoi(value("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		to.Queue = n
	}
	o.Traces = &to
	return nil
}
