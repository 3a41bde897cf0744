package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// An invalid trace setting ends the start with one line. A setting that disables traces is accepted.
func TestTraceSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		flag Options
		on   bool
		bad  string
	}{
		{},
		{flag: Options{OTLPEndpoint: "http://c:4318", OTLPProtocol: "http/protobuf"}, on: true},
		{flag: Options{OTLPEndpoint: "http://c:4317", OTLPProtocol: "grpc"}, on: true},
		{flag: Options{OTLPProtocol: "grpc"},
			env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/x"}, on: true},
		{flag: Options{OTLPEndpoint: "http://c:4318", OTLPProtocol: "grpc"},
			env: map[string]string{"OTEL_SDK_DISABLED": "true"}},
		{flag: Options{OTLPEndpoint: "http://c:4318", OTLPProtocol: "grpc"},
			env: map[string]string{"OTEL_TRACES_EXPORTER": "none"}},
		{flag: Options{OTLPEndpoint: "http://c:4318", OTLPProtocol: "grpc"},
			env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, bad: "OTEL_TRACES_EXPORTER"},
		{flag: Options{OTLPEndpoint: "http://c:4318", OTLPProtocol: "http/json"}, bad: "otlp-protocol"},
		{flag: Options{OTLPEndpoint: "c:4318", OTLPProtocol: "grpc"}, bad: "otlp-endpoint"},
		{flag: Options{OTLPProtocol: "grpc"}, env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "nowhere"},
			bad: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
	} {
		o := c.flag
		err := o.resolveTraces(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		on := o.Traces != nil
		if on != c.on || (err != nil) != (c.bad != "") || err != nil && !strings.HasPrefix(err.Error(), c.bad) {
			t.Errorf("%+v, %v: on %v, %v", c.flag.OTLPEndpoint, c.env, on, err)
		}
	}
	var stderr bytes.Buffer
	env := environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"})
	code := Main(Shell{Stdout: io.Discard, Stderr: &stderr, Env: env}, []string{"serve", "--listen", "127.0.0.1:0"})
	if code != ExitUsage || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), "pigeon") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}
