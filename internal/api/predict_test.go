package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
)

func (f *fake) Predict(_ context.Context, q predict.Query) (predict.Answer, error) {
	if q.Name == "broken" {
		return predict.Answer{}, &predict.Failure{Code: "provider", Detail: "the model's server failed",
			Usage: agent.Usage{ModelRequests: 3}}
	}
	return predict.Answer{Outputs: json.RawMessage(`{"answer":"ok"}`), Attempts: 1,
		Messages: []predict.Message{{Role: "user", Content: "Question: q"}}}, f.note("Predict")
}

func (f *fake) Signature(_ context.Context, name string) (predict.Named, error) {
	s := contract.Signature{Inputs: []contract.Field{{Name: "question", Type: "any"}},
		Outputs: []contract.Field{{Name: "answer", Type: "string"}}}
	return predict.Named{Name: name, Signature: s, CreatedAt: at, UpdatedAt: at}, f.known("Signature", name, "qa")
}

func (f *fake) ListSignatures(ctx context.Context, after string, limit int) ([]predict.Named, error) {
	if err := f.note("ListSignatures"); err != nil {
		return nil, err
	}
	var all []predict.Named
	for _, name := range []string{"qa", "rank"} {
		if name > after && len(all) < limit {
			all = append(all, predict.Named{Name: name,
				Signature: contract.Signature{Inputs: []contract.Field{{Name: "question", Type: "any"}},
					Outputs: []contract.Field{{Name: "answer", Type: "string"}}},
				Demos: []json.RawMessage{json.RawMessage(`{"question":"q","answer":"a"}`)}, CreatedAt: at,
				UpdatedAt: at})
		}
	}
	return all, nil
}

func (f *fake) PutSignature(ctx context.Context, name string, _ json.RawMessage,
	_ string) (predict.Named, bool, error) {
	s, err := f.Signature(ctx, name)
	return s, err == nil, err
}

func (f *fake) DeleteSignature(_ context.Context, name, _ string) error {
	return f.known("DeleteSignature", name, "qa")
}

func TestPredictRoutes(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	sig := `{"inputs":[{"name":"question"}],"outputs":[{"name":"answer"}]}`
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/v1/predict", `{"signature":` + sig + `,"inputs":{"question":"q"},"debug":true}`, 200},
		{"POST", "/v1/predict", `{"signature":` + sig + `}`, 422},
		{"POST", "/v1/predict", `{"signature":5,"inputs":{}}`, 422},
		{"POST", "/v1/predict", `{"signature":` + sig + `,"inputs":[]}`, 422},
		{"POST", "/v1/predict", `{"signature":` + sig + `,"inputs":{},"temperature":1}`, 422},
		{"GET", "/v1/signatures", "", 200},
		{"GET", "/v1/signatures?limit=0", "", 400},
		{"GET", "/v1/signatures/qa", "", 200},
		{"PUT", "/v1/signatures/qa", sig, 201},
		{"DELETE", "/v1/signatures/qa", "", 204},
		{"GET", "/v1/signatures/other", "", 404},
		{"POST", "/v1/signatures/qa/predict", `{"inputs":{"question":"q"}}`, 200},
		{"POST", "/v1/signatures/qa/predict", `{"signature":` + sig + `,"inputs":{"question":"q"}}`, 422},
		{"POST", "/v1/signatures/broken/predict", `{"inputs":{"question":"q"}}`, 502},
	} {
		if a := g.ask(c.method, c.path, c.body); a.status != c.want {
			t.Errorf("%s %s %s: status %d, want %d: %.200s", c.method, c.path, c.body, a.status, c.want, a.body)
		}
	}
}

func TestSignaturesPage(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	var names []string
	for path := "/v1/signatures?limit=1"; ; {
		page := g.ask("GET", path, "").json(t)
		for _, n := range page["data"].([]any) {
			names = append(names, n.(map[string]any)["name"].(string))
		}
		next, more := page["next_cursor"].(string)
		if !more {
			break
		}
		path = "/v1/signatures?limit=1&after=" + next
	}
	if got := strings.Join(names, " "); got != "qa rank" {
		t.Errorf("pages hold %q", got)
	}
}
