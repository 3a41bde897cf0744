package cli

import (
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// resolveTraces fills in whether and how traces are sent. The variables are those of the OpenTelemetry specification; what is
// not read here, its SDK reads.
func (o *Options) resolveTraces(env func(string) (string, bool)) error {
	value := func(name string) string { v, _ := env(name); return strings.TrimSpace(v) }
	endpoint := value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") // goes over the endpoint of all signals, and is taken as it is
	if strings.EqualFold(value("OTEL_SDK_DISABLED"), "true") || endpoint == "" && o.OTLPEndpoint == "" {
		return nil
	}
	switch exporter := value("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return nil
	case "", "otlp":
	default:
		return &settingError{Name: "OTEL_TRACES_EXPORTER", Reason: strconv.Quote(exporter) + " is neither otlp nor none"}
	}
	to, name := telemetry.DefaultTraceOptions(), "otlp-protocol"
	to.Protocol = o.OTLPProtocol
	if p := value("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"); p != "" {
		name, to.Protocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", p
	}
	if to.Protocol != telemetry.ProtocolHTTP && to.Protocol != telemetry.ProtocolGRPC {
		return &settingError{Name: name, Reason: strconv.Quote(to.Protocol) + " is neither " + telemetry.ProtocolHTTP + " nor " + telemetry.ProtocolGRPC}
	}
	if endpoint == "" {
		if err := app.CheckURL("otlp-endpoint", o.OTLPEndpoint); err != nil {
			return asSetting(err)
		}
		to.Endpoint = o.OTLPEndpoint
	} else if err := app.CheckURL("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint); err != nil {
		return asSetting(err)
	}
	if n, err := strconv.Atoi(value("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		to.Queue = n
	}
	o.Traces = &to
	return nil
}
