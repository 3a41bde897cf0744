package telemetry

import (
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// modelServers are the hosts for which the semantic conventions of OpenTelemetry define a gen_ai.provider.name. A host
// that begins with a dot includes all its subdomains.
var modelServers = []struct{ host, name string }{
	{".openai.com", "openai"}, {".anthropic.com", "anthropic"}, {".openai.azure.com", "azure.ai.openai"},
	{".cognitiveservices.azure.com", "azure.ai.openai"},
	{".services.ai.azure.com", "azure.ai.inference"}, {".models.ai.azure.com", "azure.ai.inference"},
	{"generativelanguage.googleapis.com", "gcp.gemini"},
	{"aiplatform.googleapis.com", "gcp.vertex_ai"}, {".mistral.ai", "mistral_ai"}, {".groq.com", "groq"},
	{".deepseek.com", "deepseek"}, {".x.ai", "x_ai"},
	{".cohere.com", "cohere"}, {".cohere.ai", "cohere"}, {".perplexity.ai", "perplexity"},
	{".ml.cloud.ibm.com", "ibm.watsonx.ai"},
}

// ModelServer returns the gen_ai.provider.name of a model server: the one from the semantic conventions if they know
// the host, otherwise the host without a port. It returns "" if the URL has no host.
func ModelServer(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	for _, s := range modelServers {
		if host == strings.TrimPrefix(s.host, ".") || strings.HasPrefix(s.host, ".") &&
			strings.HasSuffix(host, s.host) {
			return s.name
		}
	}
	switch {
	case strings.HasSuffix(host, "-aiplatform.googleapis.com"): // the host begins with a region
		return "gcp.vertex_ai"
	case strings.HasPrefix(host, "bedrock") && strings.HasSuffix(host, ".amazonaws.com"):
		return "aws.bedrock"
	}
	return host
}

// serverName returns the attribute for that server, or none if name is "". The slice has no spare capacity, so
// concurrent appends do not share memory.
func serverName(name string) []attribute.KeyValue {
	if name == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String("gen_ai.provider.name", name)}
}
