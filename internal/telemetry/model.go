package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Model is when requests to the model last ended. A zero time means never.
type Model struct{ LastOK, LastFailed time.Time }

func newModelFigure() *prometheus.Desc {
	return prometheus.NewDesc("recurgent_model_last_request_timestamp_seconds",
		"When a request to the daemon's model ended last, by how, in seconds since 1970; 0 where none did.",
		[]string{"outcome"}, nil)
}

// collectModel sends the figures. A nil read means zero figures.
func collectModel(ch chan<- prometheus.Metric, d *prometheus.Desc, read func() Model) {
	var now Model
	if read != nil {
		now = read()
	}
	for outcome, at := range map[string]time.Time{"ok": now.LastOK, "failed": now.LastFailed} {
		seconds := 0.0
		if !at.IsZero() {
			seconds = float64(at.UnixMilli()) / 1000
		}
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, seconds, outcome)
	}
}

func (m *Metrics) newModel(f factory) {
	m.provider = f.set("recurgent_provider_requests_total",
		"Questions put to the model, retries not counted apart, by how they ended.", "outcome", providerOutcomes)
	m.providerDuration = f.histogram("recurgent_provider_request_duration_seconds",
		"Time of a question to the model, retries included.", modelBuckets)
	m.replies = f.set("recurgent_model_replies_total",
		"Replies to requests for a program, by where the program was: the arguments of a tool call, a call written into the text, a fence or bare source, or nowhere.", "form", replyForms)
	m.modelRequests = f.counter("recurgent_model_requests_total",
		"Requests sent to the model's server, retries included.")
	tokens := f.counterVec("recurgent_provider_tokens_total", "Tokens which the provider counted.", "direction")
	m.promptTokens, m.completionTokens = tokens.WithLabelValues("prompt"), tokens.WithLabelValues("completion")
	m.savedRequests = f.counter("recurgent_saved_model_requests_total",
		"Model requests that warm calls did not need, by what forging their programs took.")
	m.savedTokens = f.counter("recurgent_saved_tokens_total",
		"Tokens that warm calls did not need, by what forging their programs took.")
	m.repairs = f.set("recurgent_repairs_total", "Repairs by the model, by whether the repaired program answered.",
		"result", results)
	m.regenerations = f.counter("recurgent_regenerations_total", "Programs forged anew over an earlier generation.")
	m.verdicts = f.set("recurgent_verdicts_total", "What people said of calls, by verdict.", "verdict", verdictKinds)
	m.fetches = f.set("recurgent_fetches_total",
		"Fetches of programs, by where the answer came from (live, or of the answers that are kept), or by what went wrong.", "result", fetchResults)
	m.guardrails = f.set("recurgent_guardrails_total", "Programs refused by a guardrail, by type.", "type",
		guardrailTypes)
}

// ObserveProvider counts a question to the model. outcome is one of ok, rate_limited, server_error, network, timeout,
// rejected, no_answer, invalid_payload, cut_off, canceled and not_sent. d includes retries. traceID is the trace of the
// call that asked; "" means none.
func (m *Metrics) ObserveProvider(outcome string, d time.Duration, u agent.Usage, traceID string) {
	m.provider.inc(outcome)
	observe(m.providerDuration, d.Seconds(), traceLabel(traceID))
	m.modelRequests.Add(float64(max(u.ModelRequests, 0)))
	m.promptTokens.Add(float64(max(u.PromptTokens, 0)))
	m.completionTokens.Add(float64(max(u.CompletionTokens, 0)))
	if m.namespace != nil {
		m.namespace.ask(u)
	}
}

// ObserveReply counts a model's reply to a request for a program by its form. "" is not counted.
func (m *Metrics) ObserveReply(form string) {
	if form != "" {
		m.replies.inc(form)
	}
}
