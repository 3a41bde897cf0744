package cli

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// openTracer begins to send traces where a collector is named. The variables are those of the OpenTelemetry
// specification; what is not read here, its SDK reads.
func (d *daemon) openTracer(ctx context.Context, o Options, m *telemetry.Metrics, version string) error {
	to := telemetry.DefaultTraceOptions()
	to.Metrics, to.Logger, to.Version = m, d.log, version
	on, err := traceSettings(o, os.LookupEnv, &to)
	if err != nil || !on {
		return err
	}
	if d.tracer, err = telemetry.NewTracer(ctx, to); err != nil {
		return err
	}
	d.closers = append(d.closers, func() error {
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		d.flush(end) // for a start that failed: stop has done it already
		return nil
	})
	return nil
}

// traceSettings says whether traces are wanted, and fills in how.
func traceSettings(o Options, env func(string) (string, bool), to *telemetry.TraceOptions) (on bool, err error) {
	value := func(name string) string { v, _ := env(name); return strings.TrimSpace(v) }
	endpoint := value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") // goes over the endpoint of all signals, and is taken as it is
	if strings.EqualFold(value("OTEL_SDK_DISABLED"), "true") || endpoint == "" && o.OTLPEndpoint == "" {
		return false, nil
	}
	switch exporter := value("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "", "otlp":
	default:
		return false, &settingError{Name: "OTEL_TRACES_EXPORTER", Reason: strconv.Quote(exporter) + " is neither otlp nor none"}
	}
	name := "otlp-protocol"
	to.Protocol = o.OTLPProtocol
	if p := value("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"); p != "" {
		name, to.Protocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", p
	}
	if to.Protocol != telemetry.ProtocolHTTP && to.Protocol != telemetry.ProtocolGRPC {
		return false, &settingError{Name: name, Reason: strconv.Quote(to.Protocol) + " is neither " + telemetry.ProtocolHTTP + " nor " + telemetry.ProtocolGRPC}
	}
	if endpoint == "" {
		if err := webAddress("otlp-endpoint", o.OTLPEndpoint); err != nil {
			return false, err
		}
		to.Endpoint = o.OTLPEndpoint
	} else if err := webAddress("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint); err != nil {
		return false, err
	}
	if n, err := strconv.Atoi(value("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		to.Queue = n
	}
	return true, nil
}

// flush sends the spans that wait, for as long as ctx lasts: a collector that does not answer holds nothing up.
func (d *daemon) flush(ctx context.Context) {
	if err := d.tracer.Shutdown(ctx); err != nil {
		d.log.Warn().Err(err).Msg("the last traces were not sent")
	}
}
