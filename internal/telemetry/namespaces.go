package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// namespaceMeters are the metrics of one namespace, or of all those without metrics of their own.
type namespaceMeters struct {
	calls                     [len(callStatuses)]prometheus.Counter
	requests, prompt, answers prometheus.Counter
}

// newNamespaces creates metrics for each of the namespaces and one set for all others. Without names it creates none.
func (m *Metrics) newNamespaces(f factory, names []agent.Namespace) {
	if len(names) == 0 {
		return
	}
	const whose = " by namespace: those of --metrics-namespaces, and other for all others."
	calls := f.counterVec("recurgent_namespace_calls_total", "Calls that ended, nested ones included,"+whose,
		"namespace", "status")
	requests := f.counterVec("recurgent_namespace_model_requests_total", "Requests sent to the model's server,"+whose,
		"namespace")
	tokens := f.counterVec("recurgent_namespace_tokens_total", "Tokens which the provider counted,"+whose, "namespace",
		"direction")
	figures := func(label string) *namespaceMeters {
		n := &namespaceMeters{requests: requests.WithLabelValues(label),
			prompt: tokens.WithLabelValues(label, "prompt"), answers: tokens.WithLabelValues(label, "completion")}
		for i, status := range callStatuses {
			n.calls[i] = calls.WithLabelValues(label, status)
		}
		return n
	}
	m.namespaces = map[agent.Namespace]*namespaceMeters{}
	for _, name := range names {
		m.namespaces[name] = figures(string(name))
	}
	m.namespace = figures(other)
}

func (n *namespaceMeters) ask(u agent.Usage) {
	n.requests.Add(float64(max(u.ModelRequests, 0)))
	n.prompt.Add(float64(max(u.PromptTokens, 0)))
	n.answers.Add(float64(max(u.CompletionTokens, 0)))
}

// In returns the metrics for calls in the namespace. Only the figures by namespace differ; all others are shared.
func (m *Metrics) In(name agent.Namespace) *Metrics {
	if own := m.namespaces[name]; own != nil {
		return &Metrics{m.meters, own}
	}
	return m
}
