package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

// Gateways need a query, headers, Azure's key header, or an address that ends in the request path.
func TestGateways(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		base   string // after the server's address
		key    string
		header http.Header
		path   string
		query  string
		want   map[string]string // headers; "" is absent
	}{
		{"plain", "/v1", key, nil, "/v1/chat/completions", "", map[string]string{"Authorization": "Bearer " + key,
			"Api-Key": ""}},
		{"a slash at the end", "/v1/", key, nil, "/v1/chat/completions", "", nil},
		{"no key", "/v1", "", nil, "/v1/chat/completions", "", map[string]string{"Authorization": ""}},
		{"a query", "/v1?region=eu&key=open-sesame", key, nil, "/v1/chat/completions", "region=eu&key=open-sesame",
			map[string]string{"Authorization": "Bearer " + key}},
		{"the whole address", "/v1/chat/completions?x=1", key, nil, "/v1/chat/completions", "x=1", nil},
		{"Azure", "/openai/deployments/gpt-4o?api-version=2024-10-21", key, nil,
			"/openai/deployments/gpt-4o/chat/completions", "api-version=2024-10-21",
			map[string]string{"Api-Key": key, "Authorization": ""}},
		{"Azure by its version", "/openai/v1?api-version=preview", key, nil, "/openai/v1/chat/completions",
			"api-version=preview", map[string]string{"Api-Key": key, "Authorization": ""}},
		{"Azure's address as it is copied", "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21", key,
			nil, "/openai/deployments/gpt-4o/chat/completions", "api-version=2024-10-21", nil},
		{"headers", "/v1", key, http.Header{"Http-Referer": {"https://me.example"}, "X-Title": {"me"}},
			"/v1/chat/completions", "", map[string]string{"Authorization": "Bearer " + key,
				"Http-Referer": "https://me.example", "X-Title": "me"}},
		{"a login of its own", "/v1", key, http.Header{"Authorization": {"Basic b3BlbjpzZXNhbWU="}},
			"/v1/chat/completions", "", map[string]string{"Authorization": "Basic b3BlbjpzZXNhbWU="}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			change := func(o *provider.OpenAIOptions) {
				o.BaseURL, o.Key, o.Header = strings.TrimSuffix(o.BaseURL, "/v1")+tt.base, tt.key, tt.header
				o.Secrets = tt.header["Authorization"]
			}
			p, s := start(t, change)
			s.Answer("r", "m", openaitest.Code(source), openaitest.Reply{Status: 401,
				Body: errorBody("not with open-sesame, b3BlbjpzZXNhbWU= or " + tt.key)})
			if _, err := p.Program(t.Context(), request()); err != nil {
				t.Fatal(err)
			}
			r := s.Requests()[0]
			if r.Path != tt.path || r.Query != tt.query {
				t.Errorf("got %s?%s, want %s?%s", r.Path, r.Query, tt.path, tt.query)
			}
			for name, want := range tt.want {
				if got := r.Header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			_, err := p.Program(t.Context(), request())
			for _, secret := range []string{tt.key, tt.header.Get("Authorization")} {
				if err == nil || secret != "" && strings.Contains(err.Error(), secret) {
					t.Errorf("the error discloses a secret: %v", err)
				}
			}
			if strings.Contains(tt.base, "open-sesame") && strings.Contains(err.Error(), "open-sesame") {
				t.Errorf("the error discloses the query: %v", err)
			}
			doctor(t, s, change, false, "")
			s.Answer("r", "m", openaitest.Code(source))
			doctor(t, s, change, true, "")
		})
	}
}

func TestMaskURL(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://h/v1":                          "https://h/v1",
		"https://h/v1?key=secret&api-version=2": "https://h/v1?key=***&api-version=***",
		"https://h/v1?secret":                   "https://h/v1?***",
		"https://u:secret@h/v1":                 "https://u:***@h/v1",
		"127.0.0.1:8080/v1?key=secret":          "127.0.0.1:8080/v1?key=***",
		"u:secret@h:8080/v1":                    "u:***@h:8080/v1",
		"https://h\x00":                         "[URL]",
	} {
		if got := provider.MaskURL(given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}
