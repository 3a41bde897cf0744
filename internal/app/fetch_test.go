package app

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Each result of a fetch has its own label.
func TestEveryFetchResultIsCounted(t *testing.T) {
	t.Parallel()
	registry := telemetry.NewRegistry()
	metrics := telemetry.New(registry, telemetry.Build{})
	var want strings.Builder
	want.WriteString("# HELP recurgent_fetches_total Fetches of programs, by where the answer came from (live, or of the answers that are kept), or by what went wrong.\n# TYPE recurgent_fetches_total counter\n")
	for _, result := range fetch.Results() {
		metrics.Fetch(result)
		want.WriteString("recurgent_fetches_total{result=\"" + result + "\"} 1\n")
	}
	want.WriteString("recurgent_fetches_total{result=\"other\"} 0\n")
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want.String()),
		"recurgent_fetches_total"); err != nil {
		t.Error(err)
	}
}
